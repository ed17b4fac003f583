"""`toolshift trace` lists the episodes of a run, and marks where one went wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import toolshift
from toolshift.cli.trace import trace
from toolshift.runs.run_folder import RunFolder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "first"
    agents = ["memorises_names", "oracle"]
    toolshift.evaluate(agents, shifts=["identity_erasure:2"], tasks=4, out=folder)
    return folder


def test_trace_lists_the_failures_first(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = list(RunFolder.read(run).records())
    failed = [record for record in records if not record.grade.passed]
    trace.main([str(run), "--json"], standalone_mode=False)
    listed = json.loads(capsys.readouterr().out)
    assert len(listed) == len(records)
    assert [row["episode"] for row in listed[: len(failed)]] == [r.episode for r in failed]
    assert listed[0]["cause"] == "memorised_name"
    trace.main([str(run)], standalone_mode=False)
    text = capsys.readouterr().out
    assert failed[0].episode in text
    assert "memorised" in text  # where the table is narrow the name stands on two lines


def test_trace_marks_the_guilty_step(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = next(r for r in RunFolder.read(run).records() if not r.grade.passed)
    trace.main([str(run), failed.episode], standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("* Here it goes wrong"))
    assert lines[place + 1].startswith("> find_place")
    assert any(line.startswith("Expected and not called: ") for line in lines)
    trace.main([str(run), failed.episode, "--json"], standalone_mode=False)
    assert json.loads(capsys.readouterr().out)["guilty_step"] == 0


def test_trace_lets_no_control_character_through(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "hostile"
    shutil.copytree(run, folder)
    log = folder / "episodes.jsonl"
    log.write_text(log.read_text().replace("PL-", r"\u001b[31m\u202ePL-"))
    first = next(RunFolder.read(folder).records())
    trace.main([str(folder), first.episode], standalone_mode=False)
    text = capsys.readouterr().out
    assert "[ESC][31m[U+202E]PL-" in text
    assert not {"\x1b", "\u202e"} & set(text)
