"""Two runs side by side: what was lost, what was gained, and what cannot be compared."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from scipy import stats

from toolshift.agents.catalog import contestants
from toolshift.api import run_spec
from toolshift.core.errors import UsageError
from toolshift.core.tool import JSON
from toolshift.measure.compare import (
    Contrast,
    compare,
    regrade_run,
    shifts_as_they_were,
)
from toolshift.measure.two_runs import by_cell, find_agent, same_shifts, version_notes
from toolshift.runs.cell import Cell
from toolshift.runs.execute import RunSpec
from toolshift.runs.plan import make_plan
from toolshift.runs.run_folder import Record, RunFolder
from toolshift.runs.suite import Selection, select

SHIFTS = ("identity_erasure:2", "redirect:2")
Ends = Callable[[Cell], str]


def play(path: Path, *agents: str, tasks: int = 22, shifts: tuple[str, ...] = SHIFTS) -> RunFolder:
    asked = Selection(shifts=shifts, tasks=tasks, placebo=False)
    run_spec(RunSpec(make_plan(select(asked)), contestants(list(agents)), path))
    return RunFolder.read(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return play(tmp_path_factory.mktemp("compare") / "run", "oracle")


def ending(run: RunFolder, path: Path, ends: Ends) -> RunFolder:
    """A copy of a run whose episodes are "passed", "failed", "void" or "missing" by their cell."""
    shutil.copytree(run.path, path)
    folder = RunFolder.read(path)
    kept = [_ended(record, ends(folder.cell(record))) for record in folder.records()]
    folder.write("episodes.jsonl", b"".join(JSON.encode(one) + b"\n" for one in kept if one))
    return folder


def _ended(record: Record, end: str) -> Record | None:
    cause = {"failed": "wrong_tool", "void": "infrastructure"}.get(end, "")
    grade = msgspec.structs.replace(
        record.grade, passed=end == "passed", void=end == "void", cause=cause
    )
    return None if end == "missing" else msgspec.structs.replace(record, grade=grade)


def row(table: list[Contrast], label: str) -> Contrast:
    return next(each for each in table if each.label == label)


def test_a_run_is_as_itself(run: RunFolder) -> None:
    found = compare(run, run)
    assert (found.before, found.after) == ("oracle", "oracle")
    assert (found.only_before, found.only_after, found.void, found.notes) == (0, 0, 0, [])
    assert found.everything.pairs == len(run.plan.cells)
    assert found.everything.change.estimate == 0
    assert (found.everything.lost, found.everything.gained) == (0, 0)
    assert found.everything.p_value == 1
    assert not any(each.significant for each in (*found.tiers, *found.cells, *found.shifts))


def failing_tier(cell: Cell) -> str:
    return "failed" if [s.shift for s in cell.shifts] == ["identity_erasure"] else "passed"


def test_what_fails_later_is_lost_and_the_other_way_round_gained(
    run: RunFolder, tmp_path: Path
) -> None:
    worse = ending(run, tmp_path / "worse", failing_tier)
    renamed = [cell for cell in run.plan.cells if failing_tier(cell) == "failed"]
    lost = row(compare(run, worse).tiers, "perception")
    assert (lost.lost, lost.gained) == (len(renamed), 0)
    assert (lost.before.estimate, lost.after.estimate, lost.change.estimate) == (1, 0, -1)
    assert lost.significant
    assert len(lost.examples) == 5
    later = {record.episode: worse.cell(record) for record in worse.records()}
    assert all(failing_tier(later[episode]) == "failed" for episode in lost.examples)
    gained = row(compare(worse, run).tiers, "perception")
    assert (gained.lost, gained.gained, gained.examples) == (0, len(renamed), [])
    assert (gained.before.estimate, gained.after.estimate, gained.change.estimate) == (0, 1, 1)
    assert gained.change.low > 0
    assert lost.change.high < 0


def test_each_table_has_its_rows_in_order(run: RunFolder) -> None:
    found = compare(run, run)
    assert [each.label for each in found.tiers] == ["perception", "interaction"]
    assert {each.label for each in found.shifts} == {"identity_erasure", "redirect"}
    assert [each.label.split(" / ")[0] for each in found.cells] == ["perception", "interaction"]
    assert found.clean is not None
    assert found.clean.label == "clean"
    pairs = [each.pairs for each in (found.clean, *found.tiers)]
    assert sum(pairs) == found.everything.pairs
    assert found.everything.tasks == found.clean.pairs == 22


def test_p_values_are_those_of_mcnemar_adjusted_over_the_table(
    run: RunFolder, tmp_path: Path
) -> None:
    names = [cell.lineage for cell in run.plan.cells if not cell.shifts]
    gone = set(names[:7])

    def end(cell: Cell) -> str:
        return "failed" if failing_tier(cell) == "failed" and cell.lineage in gone else "passed"

    found = compare(run, ending(run, tmp_path / "worse", end))
    lost = row(found.tiers, "perception").lost
    assert lost == 7
    alone = stats.binomtest(lost, lost).pvalue
    assert row(found.tiers, "perception").p_value == pytest.approx(2 * alone)
    assert row(found.tiers, "interaction").p_value == 1
    assert row(found.tiers, "perception").significant
    assert not row(found.tiers, "interaction").significant


def test_pairs_with_a_void_episode_in_either_run_are_left_out(
    run: RunFolder, tmp_path: Path
) -> None:
    def end(cell: Cell) -> str:
        return "void" if not cell.shifts and cell.index == 0 else failing_tier(cell)

    flaky = ending(run, tmp_path / "flaky", end)
    voids = sum(end(cell) == "void" for cell in run.plan.cells)
    assert voids
    for pair in ((run, flaky), (flaky, run)):
        found = compare(*pair)
        assert found.void == voids
        assert found.clean is not None
        assert found.clean.pairs == 22 - voids
        assert found.clean.change.estimate == 0


def test_scenes_of_one_run_only_are_counted(run: RunFolder, tmp_path: Path) -> None:
    fewer = ending(run, tmp_path / "fewer", lambda c: "passed" if c.shifts else "missing")
    found = compare(run, fewer)
    assert (found.only_before, found.only_after, found.clean) == (22, 0, None)
    found = compare(fewer, run)
    assert (found.only_before, found.only_after, found.clean) == (0, 22, None)


def test_runs_without_a_common_scene_are_refused(run: RunFolder, tmp_path: Path) -> None:
    empty = ending(run, tmp_path / "empty", lambda _: "missing")
    with pytest.raises(UsageError, match="no scene in common"):
        compare(run, empty)


def test_one_agent_of_several_must_be_named(tmp_path: Path) -> None:
    both = play(tmp_path / "both", "oracle", "memorises_names", tasks=2)
    with pytest.raises(UsageError, match=r"several agents \(oracle, memorises_names\)"):
        find_agent(both, "")
    with pytest.raises(UsageError, match="did you mean oracle"):
        find_agent(both, "oracel")
    assert find_agent(both, "memorises_names") == "memorises_names"
    found = compare(both, both, "oracle", "memorises_names")
    assert (found.before, found.after) == ("oracle", "memorises_names")
    assert row(found.tiers, "perception").lost > 0
    assert set(by_cell(both, "oracle")) == {cell.id for cell in both.plan.cells}
    assert {r.agent for r in by_cell(both, "oracle").values()} == {"oracle"}
    assert not any(record.steps for record in by_cell(both, "oracle").values())


def test_the_only_agent_needs_no_name(run: RunFolder) -> None:
    assert find_agent(run, "") == "oracle"


def of_version(run: RunFolder, path: Path, **changes: object) -> RunFolder:
    """A copy of a run with another manifest."""
    shutil.copytree(run.path, path)
    folder = RunFolder.read(path)
    folder.manifest = msgspec.structs.replace(folder.manifest, **changes)
    return folder


def test_shifts_of_other_versions_are_refused(run: RunFolder, tmp_path: Path) -> None:
    versions = {**run.manifest.shifts, "redirect": 99}
    other = of_version(run, tmp_path / "other", shifts=versions)
    same_shifts(run, run)
    shifts_as_they_were(run)
    with pytest.raises(UsageError, match=r"redirect is version 99 in .* and 1 in"):
        same_shifts(other, run)
    with pytest.raises(UsageError, match="version 99 of redirect, and the current version is 1"):
        shifts_as_they_were(other)
    fewer = of_version(run, tmp_path / "fewer", shifts={"identity_erasure": 1})
    same_shifts(run, fewer)


def test_another_toolshift_is_noted(run: RunFolder, tmp_path: Path) -> None:
    old = of_version(run, tmp_path / "old", toolshift="0.0.1")
    assert version_notes(run, run) == []
    (note,) = version_notes(old, run)
    assert "with ToolShift 0.0.1 and" in note


def test_only_verdicts_that_differ_are_said_to_be_regraded(run: RunFolder, tmp_path: Path) -> None:
    records, changed = regrade_run(run)
    assert len(records) == len(run.plan.cells)
    assert changed == []
    edited = ending(run, tmp_path / "edited", failing_tier)
    records, changed = regrade_run(edited)
    wrong = sum(failing_tier(cell) == "failed" for cell in run.plan.cells)
    assert len(changed) == wrong
    assert all(not one.before.passed and one.after.passed for one in changed)
    assert all(record.grade.passed for record in records)


def test_only_shifts_that_both_runs_have_in_another_version_are_noted(
    run: RunFolder, tmp_path: Path
) -> None:
    rest = {name: n for name, n in run.manifest.shifts.items() if not name.startswith("redirect")}
    other = of_version(run, tmp_path / "other", shifts={**rest, "redirect@7": 7, "typos": 1})
    (note,) = version_notes(run, other)
    assert note.startswith("redirect: the runs have different versions of it")
    fewer = of_version(run, tmp_path / "fewer", shifts=rest)
    assert version_notes(run, fewer) == version_notes(fewer, run) == []
