"""`toolshift trace` lists the episodes of a run, and marks where one went wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import toolshift
from toolshift.cli.trace import find_episode, trace
from toolshift.core.errors import UsageError
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import read_task


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
    assert lines[place + 1].strip().startswith("What identity_erasure changed here: find_place")
    assert lines[place + 2].startswith("> find_place")
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


# -- tasks of one's own ----------------------------------------------------------------------------

OWN_TASKS = Path(__file__).parents[2] / "examples" / "own_tools" / "tasks.yaml"


@pytest.fixture(scope="module")
def own_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "own"
    toolshift.evaluate(
        ["oracle"],
        worlds=[str(OWN_TASKS)],
        kinds=["status"],
        shifts=["identity_erasure:2"],
        placebo=False,
        out=folder,
    )
    return folder


def test_the_ids_of_own_tasks_are_listed(
    own_run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    trace.main([str(own_run)], standalone_mode=False)
    text = capsys.readouterr().out
    assert {"status-lamp", "total", "no-such-order"} <= set(text.split())
    assert "or the id of a task" in text
    trace.main([str(own_run), "--json"], standalone_mode=False)
    listed = json.loads(capsys.readouterr().out)
    assert {row["task"] for row in listed} == {"status-lamp", "total", "no-such-order"}
    trace.main([str(own_run), listed[0]["episode"]], standalone_mode=False)
    assert f"in task {listed[0]['task']}, my_shop@" in capsys.readouterr().out


def test_a_task_is_named_by_its_id(own_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(
        UsageError, match=r"has 2 episodes: name one of them: .*oracle, clean, passed"
    ):
        trace.main([str(own_run), "status-lamp"], standalone_mode=False)
    with pytest.raises(UsageError, match="no task of this id: did you mean status-lamp"):
        trace.main([str(own_run), "status-lmap"], standalone_mode=False)
    folder = RunFolder.read(own_run)
    lamp = [r for r in folder.records() if folder.task_id(folder.cell(r)) == "status-lamp"]
    found = find_episode(folder, lamp[1].episode)[0]
    assert found == lamp[1]


def test_a_run_without_such_ids_lists_scenes(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace.main([str(run), "--json"], standalone_mode=False)
    assert {row["task"] for row in json.loads(capsys.readouterr().out)} == {""}
    trace.main([str(run)], standalone_mode=False)
    assert "id of a task" not in capsys.readouterr().out


def test_a_scene_is_shown_by_the_id_of_its_task() -> None:
    assert read_task(f"{OWN_TASKS}/status/total").index == 1
    assert read_task(f"{OWN_TASKS}/status/1").index == 1
    with pytest.raises(UsageError, match=r"unknown task of .*/status 'totl': did you mean total"):
        read_task(f"{OWN_TASKS}/status/totl")
    with pytest.raises(UsageError, match="the index after the kind must be a number"):
        read_task("poi/booking/first")
