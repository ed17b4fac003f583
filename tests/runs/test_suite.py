"""Suites, selections and plans."""

from __future__ import annotations

from collections import Counter

import pytest

from toolshift.core.errors import UsageError
from toolshift.core.scene import Applied
from toolshift.core.shift import TIERS
from toolshift.runs.cell import Cell, build
from toolshift.runs.plan import Plan, make_plan
from toolshift.runs.suite import read_arms, read_stack, select
from toolshift.shifts.registry import find_shift


def tiers(plan: Plan) -> Counter[str]:
    return Counter(
        find_shift(cell.shifts[0].shift).tier if cell.shifts else "clean" for cell in plan.cells
    )


def assert_paired(plan: Plan) -> None:
    clean = {cell.lineage for cell in plan.cells if not cell.shifts}
    assert {cell.lineage for cell in plan.cells} == clean
    assert len({cell.id for cell in plan.cells}) == len(plan.cells)


def test_quick_is_small_balanced_and_paired() -> None:
    plan = make_plan(select("quick"))
    assert 200 <= len(plan.cells) <= 260
    assert_paired(plan)
    count = tiers(plan)
    assert min(count[tier] for tier in TIERS) >= 30
    assert count["none"] == 20


def test_paper_is_880_evaluation_tasks_over_the_four_tiers() -> None:
    plan = make_plan(select("paper", placebo=False))
    count = tiers(plan)
    assert [count[tier] for tier in TIERS] == [220] * 4
    assert count["clean"] == 220
    assert_paired(plan)
    severities = Counter(cell.shifts[0].severity for cell in plan.cells if cell.shifts)
    assert min(severities.values()) > 200


def test_standard_has_every_shift_at_every_severity() -> None:
    selection = select("standard", tasks=11)
    names = {(arm.shifts[0].shift, arm.shifts[0].severity) for arm in selection.arms}
    assert len(names) == len(selection.arms) == 3 * len({name for name, _ in names})


def test_the_same_selection_makes_the_same_plan() -> None:
    one, other = (make_plan(select("quick", tasks=5, seed=4)) for _ in range(2))
    assert one == other
    assert one.hash == other.hash
    assert one.hash != make_plan(select("quick", tasks=5, seed=5)).hash


def test_what_is_not_applicable_is_kept_with_its_reason() -> None:
    plan = make_plan(select(shifts=("reversed_order",), tasks=11, placebo=False))
    assert plan.skipped
    assert all(row.not_applicable for row in plan.skipped)
    assert len(plan.skipped) + len(plan.cells) == 22


def test_a_limited_arm_draws_more_tasks_with_their_clean_scenes() -> None:
    plan = make_plan(select(shifts=("reversed_order*9",), tasks=11, placebo=False))
    assert tiers(plan)["reasoning"] == 9
    assert_paired(plan)


def test_trials_and_seeds_multiply() -> None:
    once = make_plan(select(shifts=("query_typos",), tasks=3))
    more = make_plan(select(shifts=("query_typos",), tasks=3, trials=2, seeds=2))
    assert len(more.cells) == 4 * len(once.cells)
    assert_paired(more)


def test_shifts_compose_in_one_order_whatever_the_order_named() -> None:
    one = read_stack("query_typos:1+merged_tools:3")
    assert one == read_stack("merged_tools:3+query_typos:1")
    assert one == (Applied("merged_tools", 3), Applied("query_typos", 1))
    assert len(read_arms("perception+merged_tools", (1, 2))) == 2 * 2 * len(
        read_arms("perception", (1,))
    )
    with pytest.raises(UsageError, match="stands for"):
        read_stack("perception")


def test_a_task_that_has_changed_is_noticed() -> None:
    cell = Cell("poi", "listing", 0, 0, "dev", 200, task="000000000000")
    with pytest.raises(UsageError, match="another task"):
        build(cell)


def test_a_shift_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("toolshift.runs.cell.apply", broken)
    with pytest.raises(UsageError, match=r"query_redundancy:2 failed .* ZeroDivisionError"):
        make_plan(select(shifts=("query_redundancy",), tasks=2, seed=77, placebo=False))


def test_whole_families_can_be_held_out() -> None:
    plan = make_plan(select("standard", tasks=2, without=("perception", "redirect")))
    left = {applied.shift for cell in plan.cells for applied in cell.shifts}
    assert "reversed_order" in left
    assert not left & {"identity_erasure", "query_typos", "redirect"}
