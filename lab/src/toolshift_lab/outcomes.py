"""What the results of a planned study say, in the sentences that were written before it was run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from statistics import mean
from typing import Any

from toolshift.core.files import stored
from toolshift.measure.statistics import Interval
from toolshift.runs.run_folder import RunFolder
from toolshift.train.curves import read_curves
from toolshift_lab.endpoints import Endpoints
from toolshift_lab.planned import Outcome, PlanFile
from toolshift_lab.stage import Stage

ENDS = 20
"""Steps at the beginning and at the end of RL whose mean rewards a gate compares."""

OPEN = "not said yet: {seeds} of {wanted} seeds are measured"


def outcomes_of(plan: PlanFile, told: Endpoints, stages: Sequence[Stage] = ()) -> str:
    """The section of a study's page; "" for a plan without outcomes."""
    if not plan.outcomes:
        return ""
    shut = not_learned(plan, stages)
    rows = [_row(each, plan, told, shut) for each in plan.outcomes]
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


def not_learned(plan: PlanFile, stages: Sequence[Stage]) -> dict[str, list[int]]:
    """The arms with a gate, and the seeds at which they did not pass it."""
    gates = {arm.name: arm.gate for arm in plan.arms if arm.gate}
    found: dict[str, list[int]] = {}
    for stage in stages:
        gate = gates.get(stage.arm.name)
        if gate and stage.measured and not passes_gate(gate, stage):
            found.setdefault(stage.arm.name, []).append(stage.seed)
    return found


def passes_gate(gate: Mapping[Any, float], stage: Stage) -> bool:
    """Whether the reward of a run rose as the plan asks, and its clean accuracy is enough."""
    told = read_curves(stored(stage.folder / "model" / "curves.jsonl"))
    earned = [line.get("reward_drawn", line["reward"]) for line in told if "reward" in line]
    rise = mean(earned[-ENDS:]) - mean(earned[:ENDS]) if earned else 0.0
    folder = RunFolder.read(stage.run)
    clean = [
        float(record.grade.passed)
        for record in folder.records()
        if not (record.grade.void or folder.cell(record).shifts)
    ]
    passed = mean(clean) if clean else 0.0
    return rise >= gate.get("reward", -inf) and passed >= gate.get("clean", 0.0)


def _row(outcome: Outcome, plan: PlanFile, told: Endpoints, shut: Mapping[str, list[int]]) -> str:
    name = f"{outcome.arm} - {outcome.less}" if outcome.less else outcome.arm
    limits = f"{outcome.below:g}, {outcome.above:g}"
    found, seeds = _found(outcome, told)
    wanted = _wanted(outcome, plan)
    closed = next((arm for arm in (outcome.arm, outcome.less) if arm in shut), "")
    if closed:
        at = ", ".join(map(str, shut[closed]))
        said, points = f"nothing is said: {closed} did not learn at seed {at}", "-"
    elif found is None or seeds < wanted:
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
