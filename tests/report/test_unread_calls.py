"""A reply that looks like a call and counts as prose is said where the results are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import toolshift
from toolshift.lm.call_texts.table import FORMATS
from toolshift.report.html.page import make_page
from toolshift.report.markdown import as_markdown
from toolshift.runs.run_folder import RunFolder

SCENES: dict[str, Any] = {"worlds": ["poi"], "kinds": ["listing"], "tasks": 2, "placebo": False}
TEXTS = [each.example for each in FORMATS if each.opening and each.sure]


def evaluated(text: str, out: Path) -> toolshift.Report:
    def writes(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> str:
        return text

    return toolshift.evaluate(writes, shifts=["query_typos:2"], out=out, **SCENES)


def test_the_first_screen_counts_replies_that_look_like_calls(tmp_path: Path) -> None:
    report = evaluated(TEXTS[0], tmp_path / "run")
    (agent,) = report.agents
    assert agent.unread is not None
    assert agent.unread.replies == agent.unread.episodes == agent.everything.episodes
    said = " ".join(report.summary(300).split())
    count = agent.unread.replies
    assert f"{count} replies hold what looks like a tool call in a form that cannot be read" in said
    assert said.index("what looks like a tool call") < said.rindex("unchanged"), "before the grid"
    assert f"toolshift trace RUN {agent.unread.example}" in said
    assert agent.unread.example in [r.episode for r in RunFolder.read(tmp_path / "run").records()]
    page = make_page([RunFolder.read(tmp_path / "run")])
    assert "a probable tool call that could not be read" in page
    assert "a probable tool call that could not be read" in as_markdown([report])


@pytest.mark.parametrize("text", ["The code is ABCD-2345.", "I use <tool_call> for (some) calls."])
def test_prose_is_not_counted(tmp_path: Path, text: str) -> None:
    report = evaluated(text, tmp_path / "run")
    assert report.agents[0].unread is None
    assert "looks like a tool call" not in report.summary(300)
