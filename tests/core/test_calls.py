"""Whatever an agent gives as a call is read, or is its malformed call; nothing raises."""

from __future__ import annotations

import datetime
import enum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.api import attempt
from toolshift.core.calls import (
    DEEPEST,
    LARGEST,
    LONGEST_NAME,
    MalformedCall,
    ToolCall,
    Unreadable,
    is_json,
    read_arguments,
    read_call,
)
from toolshift.core.message import Reply
from toolshift.core.step import Step
from toolshift.core.tool import JSON
from toolshift.episode.contract import CallableAgent
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.lm.parse_reply import parse_reply
from toolshift.worlds.registry import find_world

ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats()
    | st.text()
    | st.characters(categories=["Cs"])
    | st.binary()
    | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.sets(st.integers(), max_size=2)
        | st.dictionaries(st.text() | st.integers() | st.none(), inner, max_size=3)
    ),
    max_leaves=8,
)


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"a": found}
    return found


def endless() -> dict[str, Any]:
    found: dict[str, Any] = {}
    found["a"] = [found, found]
    return found


class Colour(enum.Enum):
    RED = object()


BAD: list[Any] = [
    *({1: 2}, {"a": b"x"}, {"a": {b"k": 1}}, b"{}", object(), {"a": object()}, {"a": Colour.RED}),
    *({"a": {1, 2}}, {"a": datetime.date(2026, 1, 1)}, {"a": "\ud800"}, {"\udfff": 1}),
    *(
        {"a": float("nan")},
        {"a": [float("inf")]},
        {"a": 2**64},
        {"a": -(2**63) - 1},
        {"a": 10**5000},
    ),
    *(nested(DEEPEST + 1), nested(300), nested(20_000), endless(), {"a": "x" * LARGEST}),
    *({"a": [0] * (LARGEST + 1)}, [1], 3, True),
    *('{"a": NaN}', '{"a": 1e999}', '{"a": ' + "9" * 5000 + "}", '{"a": "\\ud800"}', "{bad", "[1]"),
    *('{"a":' * 300 + "1" + "}" * 300, "[" * 100_000, '{"a":' * 100_000, '{"a":"' + "x" * LARGEST),
]
TEXTS = [
    *("find_place(a=NaN)", "find_place(a=" + "9" * 5000 + ")", "find_place(a=" + "9" * 25 + ")"),
    *('find_place(a="\\ud800")', "find_place(a=" + "[" * 100 + "]" * 100 + ")"),
    *("find_place(a=" + "[" * 100_000 + ")", "find_place(a=" + '{"a":' * 100_000 + ")"),
    '{"name": "find_place", "arguments": ' + '{"a":' * 300 + "1" + "}" * 301,
    '<tool_call>{"name": "find_place", "arguments": {"a": Infinity}}</tool_call>',
    '{"name": "find_place", "arguments": "{\\"a\\": NaN}"}',
]


def spoken(arguments: Any) -> dict[str, Any]:
    function = {"name": "find_place", "arguments": arguments}
    return {"content": "", "tool_calls": [{"function": function}]}


def played(reply: Reply) -> Episode:
    episode = Episode(make_scene(find_world("poi"), "hours", 0))
    episode.take(reply)
    return episode


@pytest.mark.parametrize("arguments", BAD, ids=range(len(BAD)))
def test_what_no_tool_can_take_is_the_agents_malformed_call(arguments: Any) -> None:
    call = read_call("find_place", arguments, "c1")
    assert isinstance(call, MalformedCall)
    assert (call.name, call.id) == ("find_place", "c1")
    assert len(call.text) <= LARGEST
    episode = played(Reply.of(spoken(arguments)))
    (step,) = episode.steps
    assert (step.error, step.ok, step.given) == ("malformed_arguments", False, {})
    assert episode.observation.messages[-2]["tool_calls"][0]["function"]["arguments"] == call.text
    assert msgspec.json.decode(JSON.encode(step), type=Step) == step


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_text_that_is_such_a_call_is_one_too(text: str) -> None:
    (call,) = parse_reply(text).calls
    assert isinstance(call, MalformedCall)
    assert call.name == "find_place"
    assert played(parse_reply(text)).steps[0].error == "malformed_arguments"


@given(ODD)
def test_arguments_of_any_form_are_an_object_that_a_file_can_hold_or_are_said_to_be_none(
    arguments: Any,
) -> None:
    call = read_call("find_place", arguments)
    if isinstance(call, ToolCall):
        assert msgspec.json.decode(JSON.encode(call.arguments)) == call.arguments
    else:
        assert call.text.encode()
    episode = played(Reply.of(spoken(arguments)))
    assert msgspec.json.decode(JSON.encode(episode.steps[0]), type=Step) == episode.steps[0]
    assert played(Reply(calls=(call,))).steps == episode.steps


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers(0, 9) | st.text()))
def test_an_object_is_read_alike_as_one_and_as_text(arguments: dict[str, Any]) -> None:
    assert read_arguments(arguments) == read_arguments(JSON.encode(arguments).decode()) == arguments
    assert read_arguments(arguments) is not arguments


@given(ODD, ODD)
def test_names_and_ids_of_any_form_become_short_texts(name: Any, own: Any) -> None:
    call = read_call(name, {}, own)
    assert len(call.name.encode()) <= 4 * LONGEST_NAME
    assert call.id.encode() is not None
    assert read_call("x" * 1000, {}).name == "x" * LONGEST_NAME


@given(st.text(alphabet='{}[]":,\\ud8NaInfty0123456789e+-. f(a=)', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    if text and not (is_json(text) and isinstance(msgspec.json.decode(text), dict)):
        with pytest.raises(Unreadable) as refused:
            read_arguments(text)
        assert refused.value.text == text
    else:
        found = read_arguments(text)
        assert msgspec.json.decode(JSON.encode(found)) == found


def test_the_limits_are_met_and_not_passed() -> None:
    assert read_arguments(nested(DEEPEST - 1)) == nested(DEEPEST - 1)
    assert read_arguments({"a": 2**64 - 1, "b": -(2**63)}) == {"a": 2**64 - 1, "b": -(2**63)}
    assert read_arguments({"a": (1, 2)}) == {"a": [1, 2]}


@pytest.mark.parametrize("arguments", [{1: 2}, {"a": b"x"}, nested(300), {"a": float("nan")}])
def test_an_agent_that_speaks_so_is_graded_and_ends_no_study(arguments: Any) -> None:
    agent = CallableAgent(lambda messages, tools: spoken(arguments), "odd")
    verdict = attempt(agent, "poi/hours/0")
    assert verdict.end == "budget"
    assert not verdict.void
    assert verdict.cause == "malformed_output"


def test_a_reply_of_an_agents_own_making_is_read_too() -> None:
    made = Reply(calls=(ToolCall("f", {1: b"x"}), ToolCall("f", '{"a": 1}')))  # type: ignore
    assert Reply.of(made).calls == (
        MalformedCall("f", "(not JSON: a key of type int)"),
        MalformedCall("f", '{"a": 1}'),
    )
