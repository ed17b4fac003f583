"""Suites, selections and plans."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from shifts.test_release import edited, made, poi, rename

from toolshift.core.errors import UsageError
from toolshift.core.scene import Applied
from toolshift.core.shift import TIERS, declared
from toolshift.runs.cell import Cell, build
from toolshift.runs.plan import Plan, make_plan
from toolshift.runs.suite import SHIFTS_3, Selection, select, suite_of
from toolshift.shifts.files import FILES
from toolshift.shifts.registry import find_shift
from toolshift.shifts.stacks import read_arms, read_stack


def tiers(plan: Plan) -> Counter[str]:
    return Counter(
        find_shift(cell.shifts[0].shift).tier if cell.shifts else "clean" for cell in plan.cells
    )


def assert_paired(plan: Plan) -> None:
    clean = {cell.lineage for cell in plan.cells if not cell.shifts}
    assert {cell.lineage for cell in plan.cells} == clean
    assert len({cell.id for cell in plan.cells}) == len(plan.cells)


def test_quick_is_small_balanced_and_paired() -> None:
    plan = make_plan(select(Selection("quick")))
    assert 200 <= len(plan.cells) <= 260
    assert_paired(plan)
    count = tiers(plan)
    assert min(count[tier] for tier in TIERS) >= 30
    assert count["none"] == 20


def test_paper_is_880_evaluation_tasks_over_the_four_tiers() -> None:
    plan = make_plan(select(Selection("paper", placebo=False)))
    count = tiers(plan)
    assert [count[tier] for tier in TIERS] == [220] * 4
    assert count["clean"] == 220
    assert_paired(plan)
    severities = Counter(cell.shifts[0].severity for cell in plan.cells if cell.shifts)
    assert min(severities.values()) > 200


def test_standard_has_its_shifts_at_every_severity_that_they_have() -> None:
    selection = select(Selection("standard", tasks=11))
    names = [(arm.shifts[0].shift, arm.shifts[0].severity) for arm in selection.arms]
    found = [find_shift(name) for name in SHIFTS_3]
    assert names == [(each.name, severity) for each in found for severity in each.severities]
    assert all(each.tier != "none" for each in found)


@pytest.mark.parametrize("suite", ["standard", "paper", "standard@2", "paper@2"])
def test_a_shift_that_comes_later_is_in_no_suite_that_is_there(
    suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = select(Selection(suite))
    monkeypatch.setitem(
        declared, "of_a_plugin", replace(find_shift("redirect"), name="of_a_plugin")
    )
    assert select(Selection(suite)) == before
    assert {arm.shifts[0].shift for arm in read_arms("all")} >= {"of_a_plugin", "crowded_list"}


def test_the_same_selection_makes_the_same_plan() -> None:
    one, other = (make_plan(select(Selection("quick", tasks=5, seed=4))) for _ in range(2))
    assert one == other
    assert one.hash == other.hash
    assert one.hash != make_plan(select(Selection("quick", tasks=5, seed=5))).hash


def test_what_is_not_applicable_is_kept_with_its_reason() -> None:
    plan = make_plan(select(Selection(shifts=("reversed_order",), tasks=11, placebo=False)))
    assert plan.skipped
    assert all(row.not_applicable for row in plan.skipped)
    assert len(plan.skipped) + len(plan.cells) == 22


def test_a_limited_arm_draws_more_tasks_with_their_clean_scenes() -> None:
    plan = make_plan(select(Selection(shifts=("reversed_order*9",), tasks=11, placebo=False)))
    assert tiers(plan)["reasoning"] == 9
    assert_paired(plan)


def test_trials_and_seeds_multiply() -> None:
    once = make_plan(select(Selection(shifts=("query_typos",), tasks=3)))
    more = make_plan(select(Selection(shifts=("query_typos",), tasks=3, trials=2, seeds=2)))
    assert len(more.cells) == 4 * len(once.cells)
    assert_paired(more)


def test_shifts_compose_in_one_order_whatever_the_order_named() -> None:
    one = read_stack("query_typos:1+split_tools:3")
    assert one == read_stack("split_tools:3+query_typos:1")
    assert one == (Applied("split_tools", 3), Applied("query_typos", 1))
    each = len(read_arms("perception", (1, 2)))
    assert len(read_arms("perception+split_tools", (1, 2))) == 2 * each
    with pytest.raises(UsageError, match="stands for"):
        read_stack("perception")


def test_a_task_that_has_changed_is_noticed() -> None:
    cell = Cell("poi", "listing", 0, 0, "dev", 200, task="000000000000")
    with pytest.raises(UsageError, match="not the task that was planned"):
        build(cell)


def test_whole_families_can_be_held_out() -> None:
    plan = make_plan(select(Selection("standard", tasks=2, without=("perception", "redirect"))))
    left = {applied.shift for cell in plan.cells for applied in cell.shifts}
    assert "reversed_order" in left
    assert not left & {"identity_erasure", "query_typos", "redirect"}


OVERLAPS = {
    "one arm twice": {"shifts": ("redirect:2", "redirect")},
    "a limit": {"shifts": ("redirect:2*3", "redirect:2", "redirect:2*9")},
    "a tier": {"shifts": ("reasoning", "merged_tools:2")},
    "severities": {"shifts": ("query_typos",), "severities": (1, 3, 1)},
    "one order or the other": {"shifts": ("query_typos:1+redirect:1", "redirect:1+query_typos:1")},
    "a tier on itself": {"shifts": ("perception+identity_erasure:2", "perception+perception")},
    "the placebo": {"shifts": ("placebo:2", "query_typos:1")},
    "worlds and kinds": {"worlds": ("poi", "poi"), "kinds": ("visit", "visit")},
}


@pytest.mark.parametrize("asked", OVERLAPS.values(), ids=OVERLAPS.keys())
def test_shifts_that_overlap_make_each_episode_once(asked: dict[str, Any]) -> None:
    plan = make_plan(select(Selection(tasks=4, **asked)))
    assert_paired(plan)
    assert all(
        len(scene.shifts) == len({one.shift for one in scene.shifts}) for scene in plan.cells
    )


def test_a_shift_that_overlaps_adds_nothing_to_the_run() -> None:
    once = make_plan(select(Selection(shifts=("redirect:2",), tasks=4)))
    assert once.cells == make_plan(select(Selection(shifts=("redirect:2",) * 2, tasks=4))).cells


def test_a_file_of_one_severity_is_one_shift_at_every_severity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FILES, "")
    file = made(tmp_path, poi(), edited(rename("get_hours", "fetch_hours")))
    named = (f"{file}:1", f"{file}:3", file)
    assert len(select(Selection(shifts=named)).arms) == 1


def test_a_shift_is_applied_once() -> None:
    with pytest.raises(UsageError, match="redirect is given twice"):
        read_stack("redirect:1+redirect:2")


def test_a_selection_is_built_from_what_callers_write() -> None:
    asked = Selection.of(worlds="poi", kinds=["visit"], severities=np.int64(2), tasks=np.int64(3))
    assert asked == Selection(worlds=("poi",), kinds=("visit",), severities=(2,), tasks=3)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"shfts": ("redirect",)}, "did you mean shifts"),
        ({"tasks": "many"}, "tasks: Expected `int"),
        ({"shifts": (1,)}, "shifts"),
        ({"placebo": 2}, "placebo"),
    ],
)
def test_an_argument_that_is_wrong_is_named(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Selection.of(**asked)


def test_a_realistic_suite_deals_each_task_one_release() -> None:
    asked = select(Selection("realistic", worlds=("poi",), tasks=10, placebo=False))
    plan = make_plan(asked)
    shifted = [row.cell for row in plan.rows if row.cell.shifts and not row.not_applicable]
    lineages = [cell.lineage for cell in shifted]
    assert len(set(lineages)) == len(lineages), "a task meets one release"
    assert len(shifted) >= 9
    assert len({cell.stack for cell in shifted}) >= 6
    assert [cell.stack for cell in make_plan(asked).cells] == [cell.stack for cell in plan.cells]
    other = make_plan(select(Selection("realistic", worlds=("poi",), tasks=10, seed=1)))
    assert {cell.stack for cell in other.cells} != {cell.stack for cell in plan.cells}


def test_an_arm_is_dealt_as_often_as_its_number_says() -> None:
    arms = (*read_arms("semantic_rename:2*3"), *read_arms("description_paraphrase:1*1"))
    asked = select(Selection("realistic", worlds=("poi",), tasks=8, placebo=False))
    plan = make_plan(msgspec.structs.replace(asked, arms=arms))
    dealt = Counter(cell.stack for cell in plan.cells if cell.shifts)
    assert dealt == {"semantic_rename:2": 6, "description_paraphrase:1": 2}


def test_a_limit_on_repeats_is_in_the_plan_and_none_leaves_its_hash_as_it_was() -> None:
    asked = Selection("quick", shifts=("clean",), tasks=1, max_repeats=6)
    plan = make_plan(select(asked))
    without = make_plan(select(msgspec.structs.replace(asked, max_repeats=0)))
    assert plan.selection.max_repeats == 6
    assert plan.hash != without.hash
    assert b"max_repeats" not in msgspec.json.encode(without)


@pytest.mark.parametrize("number", [1, -1])
def test_a_limit_on_repeats_that_no_agent_can_keep_is_refused(number: int) -> None:
    with pytest.raises(UsageError, match="max_repeats must be 0"):
        select(Selection("quick", max_repeats=number))


def test_worlds_of_ones_own_are_run_with_the_standard_suite_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It alone has what a release does to tools of one's own: parameters, types, defaults."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "default_suite_tools.py").write_text(
        'def get_price(item: str, size: str = "m") -> dict:\n'
        '    """Get the price of an item."""\n    return {"price": "12.50"}\n'
    )
    file = tmp_path / "tasks.yaml"
    file.write_text(
        "world: default_suite\n"
        "tools: {python: default_suite_tools}\n"
        'tasks: [{id: a, ask: "What is the price of the kettle?",\n'
        "  calls: [{name: get_price, arguments: {item: kettle}}], check: {answer: 12.50}}]\n"
    )
    own = Selection(worlds=(str(file),))
    named = suite_of(replace_suite(own, "standard"))
    assert suite_of(own).shifts == named.shifts
    assert suite_of(own).name == named.name
    assert suite_of(replace_suite(own, "quick")).name.startswith("quick@")
    # Where shifts are named only the number of tasks is left to a suite; ours stay as they were.
    assert suite_of(msgspec.structs.replace(own, shifts=("redirect",))).name.startswith("quick@")
    for worlds in ((), ("poi",), ("poi", str(file))):
        assert suite_of(Selection(worlds=worlds)).name.startswith("quick@")


def replace_suite(selection: Selection, name: str) -> Selection:
    return msgspec.structs.replace(selection, suite=name)


def test_a_family_of_training_is_said_to_be_one() -> None:
    with pytest.raises(UsageError, match=r"EFP is a family of shifts to train on.*transient_error"):
        read_arms("EFP")
