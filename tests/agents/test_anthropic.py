"""`anthropic:MODEL` against a server as strict as the provider."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from strict_messages import StrictMessages, serving

import toolshift
from toolshift.agents.catalog import make_agent
from toolshift.agents.chat import ChatAgent
from toolshift.core.errors import UsageError
from toolshift.dialects.anthropic import ANTHROPIC
from toolshift.dialects.form import Request
from toolshift.episode.contract import converse
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.runs.cell import build
from toolshift.runs.suite import read_task


def oracle_of(task: str, shifts: str = "") -> list[dict[str, Any]]:
    """The calls of the oracle in a scene, as blocks."""
    episode = Episode(build(read_task(task, shifts, 0)))
    make_agent("oracle").play(episode)  # type: ignore[union-attr]
    blocks = []
    for step in episode.steps:
        name, given = {"answer": ("final_answer", {"answer": step.said})}.get(
            step.kind, (step.name, step.given)
        )
        blocks.append({"type": "tool_use", "name": name, "input": given})
    return blocks


@pytest.mark.parametrize("shifts", ["", "identity_erasure:2", "redirect:2"])
def test_thoughts_and_signatures_go_back(shifts: str) -> None:
    task = "poi/booking/0"
    calls = oracle_of(task, shifts)

    def script(body: dict[str, Any]) -> list[dict[str, Any]]:
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        thought = {
            "type": "thinking",
            "thinking": "" if turn % 2 else "Hm.",
            "signature": f"s{turn}",
        }
        sealed = {"type": "redacted_thinking", "data": f"d{turn}"}
        said = ("I look.", "", " \n")[turn % 3]  # the API writes texts that it does not take
        return [thought, sealed, {"type": "text", "text": said}, calls[turn]]

    mind = StrictMessages(script)
    with serving(mind) as address:
        agent = ChatAgent("claude", address, "a-key-of-length-16", dialect="anthropic")
        episode = Episode(build(read_task(task, shifts, 0)))
        converse(agent, episode)
    assert mind.refused == []
    assert grade(episode).passed
    assert len(mind.requests) == len(calls)
    assert episode.usage.cached_tokens == 50 * len(calls)


def test_a_refused_field_is_named_and_can_be_left_out(tmp_path: Path) -> None:
    mind = StrictMessages(lambda body: [{"type": "text", "text": "Done."}])
    with serving(mind) as address:
        odd = ChatAgent("claude", address, "a-key-of-length-16", dialect="anthropic",
                        options={"top_secret": 1})  # fmt: skip
        with pytest.raises(UsageError, match="--unset top_secret"):
            converse(odd, Episode(build(read_task("poi/hours/0", "", 0))))


def test_a_run_by_its_spec(tmp_path: Path) -> None:
    mind = StrictMessages(lambda body: [{"type": "text", "text": "Done."}])
    with serving(mind) as address:
        made = toolshift.evaluate(
            ["anthropic:claude"], worlds=["poi"], kinds=["hours"], tasks=1, shifts=(),
            placebo=False, out=tmp_path / "run", base_url=address, api_key="a-key-of-length-16",
        )  # fmt: skip
    assert mind.refused == []
    assert made.summary()


@pytest.mark.parametrize("own", [{}, {"id": None}, {"id": "same"}, {"id": 3}])
def test_calls_without_ids_of_their_own_are_told_apart(own: dict[str, Any]) -> None:
    call = {"type": "tool_use", "name": "find", "input": {}, **own}
    body = {"id": "m", "type": "message", "content": [call, {**call, "name": "get"}]}
    answer = ANTHROPIC.read_answer(body)
    assert answer is not None
    ids = [one["id"] for one in answer.message["tool_calls"]]
    assert len(set(ids)) == 2
    assert all(isinstance(one, str) for one in ids)
    back = ANTHROPIC.write({}, Request([{"role": "user", "content": "x"}, answer.message]))
    assert [block["id"] for block in back["messages"][1]["content"]] == ids
