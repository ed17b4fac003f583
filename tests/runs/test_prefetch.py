"""Scripted agents play while the plan is made: the same run, and none of it lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolshift.agents.catalog import contestants
from toolshift.api import run_spec
from toolshift.core.errors import UsageError
from toolshift.runs.execute import RunSpec, planning
from toolshift.runs.plan import make_plan
from toolshift.runs.prefetch import Prefetch
from toolshift.runs.run_folder import AHEAD, RunFolder
from toolshift.runs.suite import Selection, select

SELECTION = select(
    Selection(tasks=4, trials=2, shifts=("redirect:2", "reversed_order:2*2", "fatal_error:2"))
)
AGENTS = ["oracle", "memorises_names"]
FILES = ("episodes.jsonl", "plan.jsonl", "report.json")


@pytest.fixture(scope="module")
def planned_first(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a run whose plan was complete before its first episode."""
    out = tmp_path_factory.mktemp("runs") / "out"
    run_spec(RunSpec(make_plan(SELECTION), contestants(AGENTS), out))
    return contents(out)


def contents(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in FILES}


def test_a_run_is_the_same_as_one_that_is_planned_first(
    planned_first: dict[str, bytes], tmp_path: Path
) -> None:
    run_spec(RunSpec(SELECTION, contestants(AGENTS), tmp_path / "out"))
    assert contents(tmp_path / "out") == planned_first
    assert not (tmp_path / "out" / AHEAD).exists()


def test_what_is_played_before_a_stop_is_not_played_again(
    planned_first: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, stop_at = tmp_path / "out", 12

    def stop(done: int) -> None:
        if done == stop_at:
            raise KeyboardInterrupt

    spec = RunSpec(SELECTION, contestants(AGENTS), out)
    with pytest.raises(KeyboardInterrupt), planning(spec, stop):
        pass
    with (out / AHEAD).open("ab") as file:
        file.write(b'{"row": torn')
    made: list[object] = []
    kept = Prefetch._keep
    monkeypatch.setattr(Prefetch, "_keep", lambda self, *row: made.append(row) or kept(self, *row))
    report = run_spec(RunSpec(SELECTION, contestants(AGENTS), out))
    assert contents(out) == planned_first
    rows = RunFolder.read(out).plan.rows
    assert len(made) == len({(row.cell.lineage, row.cell.shifts) for row in rows}) - stop_at
    assert report.agent("oracle").clean.accuracy.estimate == 1


def test_scenes_of_another_run_are_not_taken_up(
    planned_first: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / AHEAD).write_text('{"run":"another"}\n{"row":"damaged"}\n')
    run_spec(RunSpec(SELECTION, contestants(AGENTS), out))
    assert contents(out) == planned_first


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear reader")
    with pytest.raises(UsageError, match="is not empty and contains no run"):
        run_spec(RunSpec(SELECTION, contestants(AGENTS), tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_plan_with_nothing_to_run_leaves_no_folder(tmp_path: Path) -> None:
    nothing = select(Selection(tasks=2, kinds=("listing",), shifts=("truncation",)))
    with pytest.raises(UsageError, match="cannot be applied to any"):
        run_spec(RunSpec(nothing, contestants(AGENTS), tmp_path / "out"))
    assert not (tmp_path / "out").exists()
