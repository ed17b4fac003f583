"""Releases that invite to a wrong call: the layer makes none, and shows what the server said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from adapt.releases import RELEASES, name_of

import toolshift
from toolshift.adapt.layer import ASKING, REWRITING, TELLING, Intervention
from toolshift.core.calls import ToolCall
from toolshift.core.errors import UsageError
from toolshift.core.message import Reply, Turn
from toolshift.drift.lock import lock_tools

HINTED = "only a hint says that it writes"
"""Of such a release a list without hints shows the same words and texts, and nothing else."""
CASES = [(each, hints) for each in RELEASES for hints in (True, False)]
CASES = [(each, hints) for each, hints in CASES if hints or each["kind"] != HINTED]
WAYS: list[dict[str, Any]] = [{}, {"rewrite": True}, {"rewrite": True, "as_known": True}]


class Once:
    """An agent that makes one call and then says what it heard."""

    name = "once"

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.heard: list[Any] = []
        self.tools: list[Any] = []

    def reply(self, turn: Turn) -> Reply:
        self.heard, self.tools = list(turn.messages), list(turn.tools)
        return Reply("done") if turn.messages[-1]["role"] == "tool" else Reply(calls=(self.call,))


def chat(tools: list[dict[str, Any]], hints: bool) -> list[dict[str, Any]]:
    """Tools as a chat request has them, with the hints of MCP or without."""
    kept = ("name", "description", *(["annotations"] if hints else []))
    return [
        {
            "type": "function",
            "function": {
                **{key: tool[key] for key in kept if key in tool},
                "parameters": tool["inputSchema"],
            },
        }
        for tool in tools
    ]


@pytest.mark.parametrize(
    ("release", "hints"), CASES, ids=lambda one: name_of(one) if isinstance(one, dict) else str(one)
)
@pytest.mark.parametrize("way", WAYS, ids=["default", "rewrite", "as known"])
def test_no_release_moves_a_call_or_changes_a_result(
    release: dict[str, Any], way: dict[str, Any], hints: bool
) -> None:
    spoken = ToolCall(release["call"]["tool"], release["call"]["arguments"], "c1")
    inner, seen = Once(spoken), list[Intervention]()
    agent = toolshift.adapt(inner, lock_tools(release["was"]), record=seen.append, **way)
    tools = chat(release["now"], hints)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "?"}]
    reply = agent.reply(Turn(messages, tools))
    assert reply == Reply(calls=(spoken,))
    assert inner.tools == tools
    function = {"name": spoken.name, "arguments": json.dumps(spoken.arguments)}
    calls = [{"id": "c1", "type": "function", "function": function}]
    result = {"role": "tool", "tool_call_id": "c1", "content": release["answer"]}
    messages += [{"role": "assistant", "content": "", "tool_calls": calls}, result]
    again = agent.reply(Turn(messages, tools))
    # A read that failed may be made once more, with `rewrite`: the very same call.
    made = [(call.name, call.arguments) for call in again.calls if isinstance(call, ToolCall)]
    assert made in ([], [(spoken.name, spoken.arguments)])
    if made:
        assert {each.part for each in seen} <= {"notes", "retries"}
        assert "rewrite" in way
        return
    assert inner.heard[-1]["content"].startswith(release["answer"])
    assert (inner.heard[-1] is result) == ("failures" not in {each.part for each in seen})
    assert {each.part for each in seen} <= {"notes", "failures"}


def test_what_makes_calls_or_changes_results_is_on_only_where_it_is_asked_for() -> None:
    lock, inner = lock_tools([]), Once(ToolCall("x", {}))
    assert toolshift.adapt(inner, lock).parts == TELLING.keys()
    assert toolshift.adapt(inner, lock, rewrite=True).parts == {*TELLING, *REWRITING}
    for part in REWRITING:
        with pytest.raises(UsageError, match=rf"{part}.*so it needs rewrite=True"):
            toolshift.adapt(inner, lock, only=[part])
        assert toolshift.adapt(inner, lock, only=[part], rewrite=True).parts == {part}
    for part in ASKING:
        assert toolshift.adapt(inner, lock, only=[part]).parts == {part}
    with pytest.raises(UsageError, match=r"as_known.*so it needs rewrite=True"):
        toolshift.adapt(inner, lock, as_known=True)
