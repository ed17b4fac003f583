"""A reply without text and without a call is counted where the results are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import toolshift
from toolshift.core.step import Step
from toolshift.measure.scored import texts_beside
from toolshift.report.html.page import make_page
from toolshift.report.scene import transcript
from toolshift.runs.run_folder import RunFolder

SCENES: dict[str, Any] = {"worlds": ["poi"], "kinds": ["listing"], "tasks": 2, "placebo": False}
THOUGHT = "The user wants the code, so the answer is ABCD-2345."


def evaluated(message: dict[str, Any], out: Path) -> toolshift.Report:
    def replies(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
        return {"role": "assistant", **message}

    return toolshift.evaluate(replies, shifts=["query_typos:2"], out=out, **SCENES)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"content": None, "reasoning_content": THOUGHT}, "reasoning_content"),
        ({"content": "", "reasoning": THOUGHT}, "reasoning"),
        (
            {"content": " \n", "reasoning_details": [{"type": "text", "text": THOUGHT}]},
            "reasoning_details",
        ),
        ({"content": [{"type": "thinking", "thinking": THOUGHT, "signature": "c2ln"}]}, "content"),
    ],
)
def test_a_text_in_thoughts_alone_is_said(
    tmp_path: Path, message: dict[str, Any], field: str
) -> None:
    report = evaluated(message, tmp_path / "run")
    (agent,) = report.agents
    assert agent.empty is not None
    assert agent.empty.replies == agent.empty.episodes == agent.everything.episodes
    assert agent.empty.beside == (field,)
    said = " ".join(report.summary(300).split())
    assert f"{agent.empty.replies} replies are empty (no text, no tool call)" in said
    assert f"There is text only in {field}." in said
    folder = RunFolder.read(tmp_path / "run")
    steps = next(r for r in folder.records() if r.episode == agent.empty.example).steps
    assert f"  only in {field}: {THOUGHT}" in transcript(steps)
    page = make_page([folder])
    assert "Empty replies" in page


@pytest.mark.parametrize("text", ["", "<think>I look it up first, and then</think>"])
def test_an_empty_reply_without_more_is_counted(tmp_path: Path, text: str) -> None:
    (agent,) = evaluated({"content": text, "id": "msg_1"}, tmp_path / "run").agents
    assert agent.empty is not None
    assert agent.empty.beside == ()


@pytest.mark.parametrize(
    "message",
    [
        {"content": "The code is ABCD-2345.", "reasoning_content": THOUGHT},
        {"content": "<think>Soon done.</think>The code is ABCD-2345."},
    ],
)
def test_a_reply_with_text_is_not_empty(tmp_path: Path, message: dict[str, Any]) -> None:
    report = evaluated(message, tmp_path / "run")
    assert report.agents[0].empty is None
    assert "empty" not in report.summary(300)


def test_names_and_ids_are_no_texts() -> None:
    step = Step(
        "answer", 0, prose=True, beside={"id": "msg_0123", "refusal": None, "usage": {"n": 1}}
    )
    assert texts_beside(step) == {}
