"""Run folders of format 1, which named two causes otherwise, are read by their names of today."""

from __future__ import annotations

import gzip
import json
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.running import Run
from toolshift.report.html.episode_index import Book
from toolshift.runs.run_folder import RunFolder

STORED = Path(__file__).parents[1] / "data" / "run_format_1"
FORMER, NOW = ("forced_completion", "over_refusal"), ("answered_without_evidence", "wrong_refusal")


def parsed(result: tuple[int, str, str]) -> Any:
    """What a command printed as JSON."""
    code, text, fault = result
    assert code == 0, fault
    return json.loads(text)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy of a run that version 0.2.0 has written."""
    shutil.copytree(STORED, tmp_path / "old")
    return tmp_path / "old"


def test_the_stored_run_has_the_former_names() -> None:
    assert json.loads((STORED / "manifest.json").read_text())["format"] == 1
    text = gzip.decompress((STORED / "episodes.jsonl.gz").read_bytes()).decode()
    assert all(f'"cause":"{name}"' in text for name in FORMER)


def test_report_names_causes_as_today(toolshift: Run, old: Path) -> None:
    code, text, _ = toolshift("report", old, "--details")
    assert code == 0
    assert "wrong refusal, 12" in text
    assert not any(name.replace("_", " ") in text for name in FORMER)
    report = parsed(toolshift("report", old, "--json"))
    assert report["format"] == 2
    causes = [set(each["everything"]["causes"]) for each in report["agents"]]
    assert causes == [{"answered_without_evidence"}, {"wrong_refusal"}]
    assert report["agents"][1]["everything"]["wrong_refusal"]["estimate"] == 1


def test_trace_compare_and_the_page_read_it(toolshift: Run, old: Path) -> None:
    traces = parsed(toolshift("trace", old, "--json"))
    assert {row["cause"] for row in traces} == {"", *NOW}
    agents = ("--agent", "never_refuses", "--agent", "always_refuses")
    found = parsed(toolshift("compare", old, old, *agents, "--json"))["comparison"]
    assert found["format"] == 2
    assert "significant" in found["everything"]
    book = Book([RunFolder.read(old)])
    assert len(book.rows(0, "")["rows"]) == 24
    assert set(book.catalog.causes) >= set(NOW)
    assert not set(book.catalog.causes) & set(FORMER)


def test_regrade_changes_no_verdict_for_a_new_name(toolshift: Run, old: Path) -> None:
    code, said, _ = toolshift("regrade", old)
    assert code == 0
    assert "24 episodes graded again: 0 verdicts changed" in said
    assert RunFolder.read(old).manifest.graded_by == "0.2.0"
    assert toolshift("regrade", old, "--write")[0] == 0
    assert json.loads((old / "manifest.json").read_text())["graded"] == version("toolshift")
    names = {record.grade.cause for record in RunFolder.read(old).records()}
    assert names == {"", *NOW}
