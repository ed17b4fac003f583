"""What comes beside a message or a call goes back to the agent as it came, and into no row."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.core.message import Reply, Turn
from toolshift.dialects import as_request, read_reply
from toolshift.episode.contract import CallableAgent, converse
from toolshift.episode.episode import Episode, messages
from toolshift.runs.cell import Cell, build

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=5,
)
BESIDE = st.dictionaries(
    st.sampled_from(["reasoning_content", "reasoning_details", "annotations", "x", "refusal"]),
    VALUES,
)
ON_A_CALL = st.dictionaries(st.sampled_from(["extra_content", "index", "x"]), VALUES)
SPACED = st.sampled_from(['{"q": "a"}', '{"q":"a"}', '{ "q" : "\\u0061" }', "{}"])


def episode() -> Episode:
    return Episode(build(Cell("poi", "hours", 0, 0, "dev", 200)))


@given(
    BESIDE,
    ON_A_CALL,
    SPACED,
    st.sampled_from(
        [None, "", "I look.", [{"type": "text", "text": "I look."}, {"type": "thinking"}]]
    ),
    st.booleans(),
)
def test_a_message_is_in_the_next_turn_as_the_agent_gave_it(
    beside: dict[str, Any], on_a_call: dict[str, Any], arguments: str, text: Any, two: bool
) -> None:
    names = ["find_x", "find_y"] if two else ["find_x"]
    calls = [
        {
            "id": f"own_{place}",
            "type": "function",
            **on_a_call,
            "function": {"name": name, "arguments": arguments},
        }
        for place, name in enumerate(names)
    ]
    spoken = {"role": "assistant", "content": text, "tool_calls": calls, **beside}
    asked: list[Turn] = []

    def agent(said: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Any:
        asked.append(Turn(said, tools))
        return json.loads(json.dumps(spoken)) if len(asked) == 1 else "Done."

    played = episode()
    converse(CallableAgent(agent, "own"), played)
    back, *results = asked[1].messages[2:]
    assert back == spoken
    assert [one["tool_call_id"] for one in results] == [call["id"] for call in calls]
    row = messages(played.scene, played.steps)[2]
    assert not row.keys() - {"role", "content", "tool_calls"}, "a trainer learns none of it"
    assert all(call.keys() == {"id", "type", "function"} for call in row["tool_calls"])


def test_words_beside_an_answer_go_back_too() -> None:
    call = {"id": "a", "function": {"name": "ask_user", "arguments": '{"question": "Which?"}'}}
    asked: list[Any] = []

    def agent(said: list[dict[str, Any]], tools: Any) -> Any:
        asked.append(said)
        first = {"content": "Hm.", "thoughts": ["a"], "tool_calls": [call]}
        return first if len(asked) == 1 else "Done."

    converse(CallableAgent(agent, "own"), episode())
    back = asked[1][2]
    assert back["content"] == "Hm."
    assert back["thoughts"] == ["a"]
    assert back["tool_calls"][0]["function"]["arguments"] == '{"question": "Which?"}'


def test_ids_that_do_not_tell_calls_apart_are_replaced() -> None:
    call = {"id": "same", "function": {"name": "find_x", "arguments": "{}"}}
    asked: list[Any] = []

    def agent(said: list[dict[str, Any]], tools: Any) -> Any:
        asked.append(said)
        return {"tool_calls": [call, call]} if len(asked) == 1 else "Done."

    converse(CallableAgent(agent, "own"), episode())
    calls = asked[1][2]["tool_calls"]
    assert len({one["id"] for one in calls}) == 2


def test_what_no_file_can_hold_is_left_out() -> None:
    reply = Reply.of({"content": "a", "handle": object(), "kept": 1})
    assert reply.extra == {"kept": 1}


def test_a_completion_is_read_and_so_is_a_clients_object() -> None:
    body = {
        "choices": [{"message": {"role": "assistant", "content": "Hi", "reasoning": "r"}}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2},
    }
    for given_back in (body, SimpleNamespace(model_dump=lambda **how: body)):
        reply = read_reply(given_back)
        assert (reply.text, reply.extra) == ("Hi", {"reasoning": "r"})
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (7, 2)
    with pytest.raises(TypeError, match="no `message`"):
        read_reply({"choices": [{"finish_reason": "stop"}]})


def test_a_turn_as_a_request() -> None:
    turn = episode().observation
    body = as_request(turn, "chat", "m", max_tokens=9)
    assert body["model"] == "m"
    assert body["messages"] == turn.messages
    assert body["max_tokens"] == 9


@pytest.mark.parametrize(
    ("choice", "failed"),
    [
        ({"finish_reason": "stop"}, False),
        ({"finish_reason": "error"}, True),
        ({"finish_reason": "stop", "error": {"message": "upstream"}}, True),
    ],
    ids=["ended", "broken", "an error"],
)
def test_an_answer_that_its_server_broke_off_is_a_failure(
    choice: dict[str, Any], failed: bool
) -> None:
    reply = read_reply({"choices": [{"message": {"content": "It"}, **choice}]})
    assert bool(reply.failure) is failed
