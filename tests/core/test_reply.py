"""What an agent may return: all that can be read is played and kept, all else is named."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from toolshift import evaluate
from toolshift.core.calls import MalformedCall, ToolCall
from toolshift.core.errors import UsageError
from toolshift.core.message import Reply, Usage
from toolshift.episode.contract import CallableAgent


def calling(arguments: Any, name: Any = "find") -> dict[str, Any]:
    return {
        "role": "assistant",
        "tool_calls": [{"function": {"name": name, "arguments": arguments}}],
    }


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        *((None, {}), ("", {}), ('{"a": 1}', {"a": 1}), ({"a": 1}, {"a": 1})),
        *(("{bad", "{bad"), ("3", "3"), (3, "3"), ([1], "[1]"), ("\ud800", "?")),
        ('{"a": "\\ud800"}', '{"a": "\\ud800"}'),
    ],
)
def test_arguments_are_an_object_or_the_text_that_came(arguments: Any, read: Any) -> None:
    (made,) = Reply.of(calling(arguments)).calls
    assert msgspec.structs.replace(made, extra={}) == call(read)
    kept = made.extra.get("function", {}).get("arguments", arguments)
    assert kept == arguments, "a text goes back with its spaces"


def call(read: Any, name: str = "find") -> ToolCall | MalformedCall:
    return MalformedCall(name, read) if isinstance(read, str) else ToolCall(name, read)


@pytest.mark.parametrize(("arguments", "read"), [(3, "3"), ("\ud800", "?"), ({"a": 1}, {"a": 1})])
def test_calls_of_a_reply_can_be_written_to_a_file(arguments: Any, read: Any) -> None:
    reply = Reply(calls=(ToolCall("find\ud800", arguments),), failure="none")
    assert Reply.of(reply) == Reply(calls=(call(read, "find?"),), failure="none")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("half \ud800 a sign", "half ? a sign"),
        (Reply("half \ud800"), "half ?"),
        ({"content": "Größe"}, "Größe"),
        ({"content": [{"type": "text", "text": "in "}, {"text": "parts"}]}, "in parts"),
        ({"content": None, "refusal": "No."}, "No."),
    ],
)
def test_what_is_said_can_be_written_to_a_file(message: Any, text: str) -> None:
    assert Reply.of(message).text == text


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (7, "not int"),
        ({"foo": 1}, "not foo"),
        ({"tool_calls": ["find"]}, "not 'find'"),
        ({"tool_calls": [{"function": None}]}, "a function with name"),
    ],
)
def test_what_cannot_be_read_is_named(message: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        Reply.of(message)


def nested(depth: int) -> dict[str, Any]:
    return {"a": nested(depth - 1)} if depth else {}


@pytest.mark.parametrize(
    "answer",
    [
        *("\ud800", calling(3), calling([1], None), calling({1: 2}), calling({"a": b"x"})),
        *(calling(nested(300)), calling({"a": float("nan")}), calling({"a": 10**400})),
    ],
    ids=range(8),
)
def test_an_odd_answer_is_kept_and_read_again(answer: Any, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"tasks": 1, "shifts": ["redirect"], "placebo": False, "out": tmp_path}
    agent = CallableAgent(lambda messages, tools: answer, "odd")
    first = evaluate(agent, **asked)
    assert evaluate(agent, **asked).agents[0].everything == first.agents[0].everything


def test_an_agent_that_exits_is_no_end_of_the_study() -> None:
    def exits(messages: Any, tools: Any) -> str:
        sys.exit(7)

    with pytest.raises(UsageError, match=r"on its first turn: SystemExit: 7 \(test_reply.py, line"):
        evaluate(CallableAgent(exits, "exits"), tasks=1, shifts=["redirect"])
    turns = iter(["No.", "No."])

    def exits_later(messages: Any, tools: Any) -> str:
        return next(turns, None) or exits(messages, tools)

    report = evaluate(CallableAgent(exits_later, "later"), tasks=3, shifts=["redirect"])
    assert report.agents[0].complete
    assert report.agents[0].crashed is not None
    assert report.agents[0].crashed.episodes == report.agents[0].everything.episodes - 2


def test_an_exit_in_a_batch_is_of_the_episode_that_exits() -> None:
    class Batched:
        name, batch, asked = "batched", 4, 0

        def reply(self, turn: Any) -> str:
            return "No."

        def reply_batch(self, turns: list[Any]) -> list[str]:
            self.asked += 1
            if self.asked == 2 or (self.asked == 3 and len(turns) == 1):
                sys.exit(7)
            return ["No."] * len(turns)

    report = evaluate(Batched(), tasks=4, shifts=["redirect"], placebo=False)
    assert report.agents[0].everything.episodes == 8
    assert report.agents[0].crashed is not None
    assert report.agents[0].crashed.episodes == 1


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ({"content": [{"type": "tool_use", "name": "f", "input": {"a": 1}}]}, "tool_use"),
        ({"content": None, "function_call": {"name": "f", "arguments": "{}"}}, "function_call"),
        ({"role": "model", "parts": [{"functionCall": {"name": "f"}}]}, "parts"),
        ({"tool_calls": [{"name": "f", "args": {"a": 1}, "id": "1"}]}, "args"),
        ({"tool_calls": [{"function": {"name": "f", "parameters": {}}}]}, "parameters"),
        ({"content": {"answer": "X"}}, "dict"),
    ],
)
def test_a_call_in_the_form_of_another_interface_is_named(
    message: dict[str, Any], names: str
) -> None:
    with pytest.raises(TypeError, match=names):
        Reply.of(message)


def test_parts_that_are_texts_or_refusals_are_words() -> None:
    parts = ["in ", {"type": "text", "text": "parts"}, {"type": "refusal", "refusal": ": no"}]
    assert Reply.of({"content": parts, "function_call": None}).text == "in parts: no"


@pytest.mark.parametrize("usage", [Usage(), Usage(3, 4), Usage(1, 2, 0.5, recalled=2)])
def test_usage_has_the_same_bytes_however_it_was_made(usage: Usage) -> None:
    wanted = msgspec.json.encode(usage)
    assert msgspec.json.encode(usage + Usage()) == wanted
    assert msgspec.json.encode(pickle.loads(pickle.dumps(usage))) == wanted
    assert msgspec.json.encode(msgspec.json.decode(wanted, type=Usage)) == wanted
    assert pickle.loads(pickle.dumps(usage)) == usage
