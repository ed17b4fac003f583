"""What a result says is what the plan says it would."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from toolshift_lab.arm import Scale
from toolshift_lab.outcomes import outcomes_of, sentence
from toolshift_lab.planned import Outcome, check_fixed, read_plan
from toolshift_lab.stage import _plan

from toolshift.measure.statistics import Interval

PLAN = Path(__file__).parents[2] / "studies" / "reads" / "plan.toml"
ASKED = Outcome("reads", "paft", 15, 20, "it reads", "it matches", "undecided")


def interval(estimate: float, low: float, high: float) -> Interval:
    return Interval(estimate, low, high, "t", 3)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (interval(0.03, -0.05, 0.14), "it reads"),
        (interval(0.03, -0.05, 0.16), "undecided"),
        (interval(0.18, 0.1, 0.26), "undecided"),
        (interval(0.44, 0.05, 0.8), "it matches"),
        (interval(0.44, -0.05, 0.9), "undecided"),
    ],
)
def test_a_sentence_holds_with_its_interval(found: Interval, said: str) -> None:
    assert sentence(ASKED, found) == said


def test_nothing_is_said_before_all_seeds_are_measured() -> None:
    planned = SimpleNamespace(name="paft", seeds=3, gate={})
    plan: Any = SimpleNamespace(outcomes=[ASKED], arms=[planned])
    arm = SimpleNamespace(arm="paft", endpoint="reads")
    for seeds, said in ((2, "2 of 3 seeds"), (3, "it reads")):
        arm.found = SimpleNamespace(interval=interval(0.03, -0.05, 0.14), seeds=seeds)
        told: Any = SimpleNamespace(arms=[arm], contrasts=[])
        assert said in outcomes_of(plan, told)


def test_the_plan_is_as_it_was_fixed_and_trains_on_nothing_that_is_held_out() -> None:
    plan = read_plan(PLAN)
    check_fixed(plan, PLAN)
    assert {arm.settings["steps"] for arm in plan.arms} == {750}
    assert not set(plan.dealt) & set(plan.probes)


def test_each_task_meets_one_of_the_stacks_that_are_dealt() -> None:
    scale = Scale(("listing", "hours"), 12, 2, 6, today=True, world="poi-2", home="poi-2")
    dealt = ("schema_noise:3*2", "distractor_tools:1*3", "description_paraphrase:3*1")
    rows = [cell for cell in _plan(("redirect:2",), dealt, scale, "dev").cells if cell.shifts]
    hands = [cell for cell in rows if cell.stack.partition(":")[0] not in ("redirect", "placebo")]
    assert sorted(cell.lineage for cell in hands) == sorted({cell.lineage for cell in rows})
    assert len({cell.stack for cell in hands}) == 3
