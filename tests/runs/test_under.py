"""Shifts that every scene stands under, the clean one too, so that they are no loss."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import toolshift
from toolshift.agents.catalog import contestants
from toolshift.core.errors import UsageError
from toolshift.core.scene import Applied
from toolshift.runs.cell import Cell, build
from toolshift.runs.minimise import as_test, find_smallest
from toolshift.runs.plan import make_plan
from toolshift.runs.suite import Selection, read_task, select

CROWD = (Applied("crowded_list", 2),)
TASK = Cell("poi", "booking", 1, 0, "dev", 200)


def test_a_cell_without_it_is_the_cell_that_it_was() -> None:
    assert b"under" not in msgspec.json.encode(TASK)
    crowded = msgspec.structs.replace(TASK, under=CROWD)
    assert crowded.id != TASK.id
    assert crowded.lineage == TASK.lineage
    plans = [make_plan(select(Selection(tasks=1, under=under))) for under in ("", "crowded_list")]
    assert plans[0].hash != plans[1].hash
    assert b"under" not in msgspec.json.encode(plans[0])


def test_the_clean_scene_stands_under_it_and_counts_as_clean() -> None:
    scene = build(msgspec.structs.replace(TASK, under=CROWD))
    assert len(scene.tools) == 212
    assert scene.shifts == ()
    assert scene.clean is scene
    assert scene.task == build(TASK).task


@pytest.mark.parametrize("shift", ["semantic_rename:3", "redirect:2", "merged_tools", "tool_gone"])
def test_a_shift_is_held_against_the_scene_under_it(shift: str) -> None:
    cell = read_task("poi/booking/1", shift, under="crowded_list:2")
    scene = build(cell)
    assert [one.shift for one in scene.shifts] == [shift.partition(":")[0]]
    assert scene.clean is build(msgspec.structs.replace(cell, shifts=()))
    plain = build(msgspec.structs.replace(cell, under=()))
    moved = {tool.name for tool in plain.tools} - {tool.name for tool in plain.clean.tools}
    assert moved <= {tool.name for tool in scene.tools}  # it chooses as it does without the crowd
    foreign = [tool for tool in scene.clean.tools if not tool.origin]
    assert len([tool for tool in scene.tools if not tool.origin]) == len(foreign) == 200


def test_what_changes_the_right_end_cannot_stand_under_all() -> None:
    with pytest.raises(UsageError, match="tool_gone changes the right outcome"):
        select(Selection(under="tool_gone"))


def test_a_run_says_it_resumes_and_is_read_again(tmp_path: Path) -> None:
    tools = tmp_path / "mine.json"
    tools.write_text('[{"name": "ship_crate", "inputSchema": {"type": "object"}}]')
    asked = {"worlds": ["poi"], "tasks": 2, "shifts": ["redirect"], "out": tmp_path / "run"}
    report = toolshift.evaluate("oracle", under=f"crowded_list_5+{tools}", **asked)
    tools.unlink()
    again = toolshift.read_run(tmp_path / "run")
    assert "under crowded_list_5:2+mine@" in report.summary()
    episodes = list(again.episodes)
    assert len(episodes) == 6
    assert all(episode.grade.passed for episode in episodes)
    with pytest.raises(UsageError, match="under"):
        toolshift.evaluate("oracle", under="crowded_list_6", **asked)


def test_one_scene_can_be_tried_under_it() -> None:
    assert toolshift.attempt("oracle", "poi/booking/1", under="crowded_list:3").passed
    assert not toolshift.attempt("cuts_the_list", "poi/booking/1", under="crowded_list:3").passed


def test_the_test_of_a_failure_stands_under_it_too() -> None:
    cell = read_task("poi/booking/1", "redirect:2", under="crowded_list_20")
    smallest = find_smallest(contestants(["gives_up"])[0], cell)
    assert smallest.cell.under == cell.under
    code = as_test(smallest, "gives_up", "gives_up")
    assert "under='crowded_list_20:2'," in code
    plain = find_smallest(contestants(["gives_up"])[0], read_task("poi/booking/1", "redirect:2"))
    assert "under" not in as_test(plain, "gives_up", "gives_up")
