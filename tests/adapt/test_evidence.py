"""An ending is unsupported where nothing in the conversation speaks for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolshift.adapt.conversation import read_conversation
from toolshift.adapt.evidence import question_of, unsupported
from toolshift.core.message import Reply


def ended(name: str, arguments: dict[str, Any]) -> Reply:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return Reply.of({"role": "assistant", "content": "", "tool_calls": [{"function": function}]})


def refused(reason: str) -> Reply:
    return ended("refuse", {"reason": reason})


def answered(answer: str) -> Reply:
    return ended("final_answer", {"answer": answer})


def talk(*results: str) -> Any:
    said: list[dict[str, Any]] = [{"role": "user", "content": "Which ref has order ORD-77?"}]
    for number, text in enumerate(results):
        call = {"id": f"c{number}", "function": {"name": "get", "arguments": "{}"}}
        said.append({"role": "assistant", "content": "", "tool_calls": [call]})
        said.append({"role": "tool", "tool_call_id": f"c{number}", "content": text})
    return read_conversation(said, lambda text, call: text)


FAILED = '{"error":{"code":"failed","message":"The tool is down."}}'
GONE = '{"error":{"code":"unknown_tool","message":"Unknown tool get."}}'
FOUND = '{"ref":"KX7T-22QF"}'


@pytest.mark.parametrize(
    ("reply", "results", "missing", "lacks"),
    [
        (refused("service_failure"), [], [], "no call in this conversation has failed"),
        (refused("service_failure"), [FOUND], [], "no call in this conversation has failed"),
        (refused("service_failure"), [FAILED, FOUND], [], ""),
        (refused("not_found"), [], [], "no tool was called"),
        (refused("not_found"), [FOUND], [], ""),
        (refused("tool_unavailable"), [FOUND], [], "every tool that you know"),
        (refused("tool_unavailable"), [], ["get"], ""),
        (refused("tool_unavailable"), [GONE], [], ""),
        (refused("contradictory_request"), [], [], ""),
        (answered("KX7T-22QF"), [FOUND], [], ""),
        (answered("kx7t-22qf"), [FOUND], [], ""),
        (answered("ORD-77"), [], [], ""),
        (answered("40"), [FOUND], [], ""),
        (answered("ZZ7T-22QF"), [FOUND], [], "ZZ7T-22QF stands in no result"),
        (answered("Done."), [FOUND, FAILED], [], "the last call of get failed"),
        (answered("Done."), [FAILED, FOUND], [], ""),
        (Reply("The ref is ZZ7T-22QF."), [FOUND], [], "ZZ7T-22QF stands in no result"),
        (Reply("The ref is KX7T-22QF."), [FOUND], [], ""),
        (Reply("The total is 5."), [FOUND, FAILED], [], "the last call of get failed"),
        (Reply("The total is 5."), [FAILED, FOUND], [], ""),
        (Reply("There is no such order."), [FAILED], [], ""),
        (Reply("Which of the orders do you mean?"), [FAILED], [], ""),
        (ended("get", {}), [], [], ""),
        (Reply(), [], [], ""),
    ],
)
def test_what_an_ending_lacks(
    reply: Reply, results: list[str], missing: list[str], lacks: str
) -> None:
    found = unsupported(reply, talk(*results), missing)
    assert bool(found) == bool(lacks)
    assert lacks in found


def test_the_agent_may_say_the_same_again() -> None:
    told = question_of("no tool was called", refused("not_found"))
    assert told.startswith("Before you refuse: no tool was called.")
    assert question_of("x", answered("y")).startswith("Before you answer:")
