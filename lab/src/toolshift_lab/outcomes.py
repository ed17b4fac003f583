"""What the results of a planned study say, in the sentences that were written before it was run."""

from __future__ import annotations

from toolshift.measure.statistics import Interval
from toolshift_lab.endpoints import Endpoints
from toolshift_lab.planned import Outcome, PlanFile

OPEN = "not said yet: {seeds} of {wanted} seeds are measured"


def outcomes_of(plan: PlanFile, told: Endpoints) -> str:
    """The section of a study's page; "" for a plan without outcomes."""
    if not plan.outcomes:
        return ""
    rows = [_row(each, plan, told) for each in plan.outcomes]
    return "\n".join(
        [
            "",
            "## What it says",
            "",
            "The sentences stood in the plan before anything of it was run. The first holds where "
            "the whole interval is below the first threshold, the second where the estimate is "
            "above the second threshold and the interval above 0, the third else.",
            "",
            "| arm | endpoint | points | thresholds | what it says |",
            "|---|---|---:|---:|---|",
            *rows,
            "",
        ]
    )


def _row(outcome: Outcome, plan: PlanFile, told: Endpoints) -> str:
    name = f"{outcome.arm} - {outcome.less}" if outcome.less else outcome.arm
    limits = f"{outcome.below:g}, {outcome.above:g}"
    found, seeds = _found(outcome, told)
    wanted = _wanted(outcome, plan)
    if found is None or seeds < wanted:
        said, points = OPEN.format(seeds=seeds, wanted=wanted), "-"
    else:
        said = sentence(outcome, found)
        points = f"{100 * found.estimate:z.0f} [{100 * found.low:z.0f}, {100 * found.high:z.0f}]"
    return f"| {name} | {outcome.endpoint} | {points} | {limits} | {said} |"


def sentence(outcome: Outcome, found: Interval) -> str:
    """The sentence that an interval, in shares, asks for."""
    if 100 * found.high < outcome.below:
        return outcome.then
    if 100 * found.estimate > outcome.above and found.low > 0:
        return outcome.instead
    return outcome.otherwise


def _found(outcome: Outcome, told: Endpoints) -> tuple[Interval | None, int]:
    """The interval of an outcome, and of how many seeds it is."""
    if outcome.less:
        pair = (outcome.less, outcome.arm, outcome.endpoint)
        for each in told.contrasts:
            if (each.first, each.second, each.endpoint) == pair:
                return each.found.interval, each.found.seeds
        return None, 0
    for arm in told.arms:
        if (arm.arm, arm.endpoint) == (outcome.arm, outcome.endpoint):
            return arm.found.interval, arm.found.seeds
    return None, 0


def _wanted(outcome: Outcome, plan: PlanFile) -> int:
    """How many seeds have to be there: those of the plan, and of a contrast those of both arms."""
    seeds = {arm.name: arm.seeds for arm in plan.arms}
    return min(seeds[name] for name in filter(None, (outcome.arm, outcome.less)))
