"""What a study found: the figures of its arms over seeds, as data; `train/page.py` writes them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import isnan, nan
from statistics import mean
from typing import Any

import msgspec

from toolshift.core.shift import TIERS, without_versions
from toolshift.measure.report import AgentReport
from toolshift.measure.statistics import Interval, seed_contrast
from toolshift.runs.run_folder import RunFolder
from toolshift.train.curves import CURVES, read_curves
from toolshift_lab.experiments import HELD_OUT, SCALES, TRAINED_ON, Study
from toolshift_lab.stage import Stage, check_lineage

MEASURES = {
    "clean": "accuracy in clean scenes",
    "placebo": "accuracy where only order of tools, phrasing and length of documentation change",
    "perception": "change of accuracy in tier 1, points",
    "interaction": "change in tier 2",
    "reasoning": "change in tier 3",
    "trained_on": "accuracy under shifts of tiers 1 and 2 that PAFT trains on, in other wordings",
    "held_out": "accuracy under three shifts of tiers 1 and 2; n.d. where training has one of them",
    "refusal_rate": "refusals among unsolvable scenes",
    "refused_rightly": "passes there: refused after the evidence, whatever reason is given",
    "over_refusal": "refusals among solvable scenes",
    "look_alike_refusal": "refusals of the look-alikes",
    "tool_error_rate": "calls that failed by the model's own doing, among all its calls",
    "exploration": "active exploration score",
    "chain_length": "calls an episode",
}
PERCENT = (
    "clean", "placebo", "trained_on", "held_out", "refusal_rate", "refused_rightly",
    "over_refusal", "look_alike_refusal", "tool_error_rate",
)  # fmt: skip
CLAIM = 3
"""Training seeds that a claim takes; with fewer a result is exploratory."""
ENDS = 20
"""Steps at the beginning and at the end of RL whose mean rewards are compared."""
LEAST_LOSS = 10
"""Points; of a smaller loss no share is given, for it would be a ratio of noise."""
POINTS = ("perception", "interaction", "reasoning")


class ArmResult(msgspec.Struct, frozen=True):
    """One arm: each measure by seed, accuracy by shift and by kind, causes, and what it cost.

    Attributes:
        beyond: by tier and seed, the change less that under the placebo, in points.
        told_apart: by tier and seed, whether that run's report tells the loss from chance and from
            the placebo: a test over its tasks, of which there are few.
        rows: by seed, of all its fits, as `steps`, `tokens`, `cpu_seconds` and `wall_seconds`.
        devices: by seed, what it was trained on; "-" where nothing was.
        rewards: by seed, of RL: the mean reward of its first and of its last `ENDS` steps, over the
            scenes as first drawn; NaN where it had fewer than twice as many.
        computed_in: by seed, the types of training and of measurement, which are the machine's.
        untrained: whether it is the base model, the same under every seed.
    """

    arm: str
    summary: str
    seeds: list[int]
    measures: dict[str, list[float]]
    shifts: dict[str, list[float]]
    kinds: dict[str, list[float]]
    causes: dict[str, int]
    cpu_seconds: list[float]
    rows: list[int]
    steps: list[int]
    tokens: list[int]
    void: int = 0
    beyond: dict[str, list[float]] = {}
    told_apart: dict[str, list[bool]] = {}
    computed_in: list[str] = []
    untrained: bool = False
    wall_seconds: list[float] = []
    devices: list[str] = []
    rewards: list[tuple[float, float]] = []

    @property
    def few_seeds(self) -> bool:
        """Whether it has fewer seeds than a claim needs."""
        return len(self.seeds) < CLAIM and not self.untrained

    @property
    def rose(self) -> list[bool]:
        """By seed, whether the reward of RL was higher at its end than at its beginning."""
        return [first < last for first, last in self.rewards]

    def interval(self, measure: str) -> Interval:
        """The mean over seeds with its interval; limits are NaN below two seeds."""
        return over_seeds(self.measures[measure])


class Findings(msgspec.Struct, frozen=True):
    """What a study found.

    Attributes:
        contrasts: differences of measures, paired by seed.
        won_back: by the same contrasts and by tier, the share of the first arm's loss that the
            second does not have, paired by seed; NaN where the first loses less than `LEAST_LOSS`.
        won_back_beyond: the same of what is lost beyond the placebo.
        graded_by: the versions of ToolShift whose verdicts these are.
    """

    study: str
    question: str
    scale: str
    evidence: bool
    arms: list[ArmResult]
    contrasts: dict[str, dict[str, list[float]]]
    won_back: dict[str, dict[str, list[float]]]
    missing: list[str]
    pool: str = "dev"
    won_back_beyond: dict[str, dict[str, list[float]]] = {}
    graded_by: list[str] = []

    @property
    def exploratory(self) -> bool:
        """Whether some arm has fewer seeds than a claim needs, whatever the study asks for."""
        return self.few_seeds or bool(self.missing)

    @property
    def few_seeds(self) -> bool:
        """Whether some arm that is there has fewer seeds than a claim needs."""
        return any(arm.few_seeds for arm in self.arms)


def find(study: Study, stages: Sequence[Stage], seeds: int = 0) -> Findings:
    """Reads what the finished stages of a study have measured."""
    wanted = max(seeds, study.seeds)
    mine = {arm.name: arm for arm in study.arms}
    done: dict[str, list[Stage]] = defaultdict(list)
    for stage in stages:
        if stage.measured and stage.arm.name in mine:
            done[stage.arm.name].append(stage)
    check_lineage([stage for rows in done.values() for stage in rows])
    arms = [_arm_result(done[name]) for name in mine if done[name]]
    by_name = {arm.arm: arm for arm in arms}
    pairs = {
        (one, other): (by_name[one], by_name[other])
        for one, other in study.contrasts
        if one in by_name and other in by_name
    }
    return Findings(
        study=study.name,
        question=study.question,
        scale=stages[0].scale,
        evidence=SCALES[stages[0].scale].evidence,
        arms=arms,
        contrasts={f"{b} - {a}": _difference(*arms) for (a, b), arms in pairs.items()},
        won_back={f"{b} against {a}": _won_back(*arms) for (a, b), arms in pairs.items()},
        won_back_beyond={
            f"{b} against {a}": _won_back(*arms, beyond=True) for (a, b), arms in pairs.items()
        },
        missing=[
            f"{s.arm.name}, seed {s.seed}" for s in stages if not s.measured and s.seed < wanted
        ],
        pool=stages[0].pool,
        graded_by=sorted(
            {RunFolder.read(s.run).manifest.graded_by for rows in done.values() for s in rows}
        ),
    )


def measures_of(report: AgentReport) -> dict[str, float]:
    """The measures of one trained model; undefined ones are NaN."""
    tiers = {row.label: row for row in report.tiers}
    found = {
        "clean": report.clean.accuracy.estimate,
        "placebo": report.placebo.accuracy.estimate if report.placebo else nan,
        **{tier: -100 * tiers[tier].drop.estimate if tier in tiers else nan for tier in TIERS[:3]},
        "trained_on": _mean_accuracy(report, TRAINED_ON),
        "held_out": _mean_accuracy(report, HELD_OUT),
        "refusal_rate": report.everything.refusal_rate.estimate,
        "over_refusal": report.everything.wrong_refusal.estimate,
        "refused_rightly": _right_refusals(report),
        "look_alike_refusal": nan,
        "tool_error_rate": report.everything.own_error_rate,
        "exploration": report.everything.exploration,
        "chain_length": report.everything.chain_length,
    }
    if report.look_alikes is not None:
        found["look_alike_refusal"] = report.look_alikes.wrong_refusal.estimate
    return found


def _mean_accuracy(report: AgentReport, shifts: tuple[str, ...]) -> float:
    """The mean over these shifts; NaN where one of them was not measured."""
    found = {without_versions(row.label): row.accuracy.estimate for row in report.shifts}
    return sum(found.get(name, nan) for name in shifts) / len(shifts)


def _right_refusals(report: AgentReport) -> float:
    """Passes in unsolvable scenes, over the shifts that make scenes so; NaN where none does."""
    rows = [row for row in report.shifts if row.unsolvable]
    scenes = sum(row.unsolvable for row in rows)
    passed = sum(row.accuracy.estimate * row.unsolvable for row in rows)
    return passed / scenes if scenes else nan


# -- figures ----------------------------------------------------------------------------------


def _arm_result(stages: Sequence[Stage]) -> ArmResult:
    reports = [stage.report() for stage in stages]
    measured = [measures_of(report) for report in reports]
    if stages[0].arm.meets(HELD_OUT):
        measured = [{**each, "held_out": nan} for each in measured]
    shifts: dict[str, list[float]] = defaultdict(list)
    kinds: dict[str, list[float]] = defaultdict(list)
    causes = Counter[str]()
    for report in reports:
        causes.update(report.everything.causes)
        for row in report.shifts:
            shifts[without_versions(row.label)].append(row.accuracy.estimate)
        for row in report.kinds:
            kinds[row.label].append(row.accuracy.estimate)
    fits = [stage.fits() for stage in stages]
    return ArmResult(
        arm=stages[0].arm.name,
        summary=stages[0].arm.summary,
        seeds=[stage.seed for stage in stages],
        measures={name: [each[name] for each in measured] for name in MEASURES},
        shifts=dict(shifts),
        kinds=dict(kinds),
        causes=dict(causes),
        cpu_seconds=[_sum(each, "cpu_seconds") if each else nan for each in fits],
        # A fit of an arm that aggregates has the rows of those before it.
        rows=[int(_sum(each[-1:] if stages[0].arm.aggregate else each, "rows")) for each in fits],
        steps=[int(_sum(each, "steps")) for each in fits],
        tokens=[int(_sum(each, "tokens")) for each in fits],
        void=sum(report.everything.void for report in reports),
        beyond={
            tier: [m[tier] - 100 * (m["placebo"] - m["clean"]) for m in measured] for tier in POINTS
        },
        told_apart={tier: [_tells(report, tier) for report in reports] for tier in POINTS},
        computed_in=[_computed_in(stage) for stage in stages],
        untrained=stages[0].arm.untrained,
        wall_seconds=[_sum(each, "wall_seconds") if each else nan for each in fits],
        devices=[_devices(each) for each in fits],
        rewards=[_rewards(s) for s in stages] if stages[0].arm.method == "grpo" else [],
    )


def _sum(fits: Sequence[dict[str, Any]], what: str) -> float:
    """What all fits of a stage took together."""
    return float(sum(each.get(what, 0) for each in fits))


def _rewards(stage: Stage) -> tuple[float, float]:
    """The mean reward of the first and of the last steps of RL."""
    lines = [
        (line["step"], line.get("reward_drawn", line["reward"]))
        for line in read_curves(stage.folder / "model" / CURVES)
        if "reward" in line
    ]
    last = max((step for step, _ in lines), default=0)
    if last < 2 * ENDS:
        return nan, nan
    begun = [reward for step, reward in lines if step <= ENDS]
    ended = [reward for step, reward in lines if step > last - ENDS]
    return (mean(begun), mean(ended)) if begun and ended else (nan, nan)


def _devices(fits: Sequence[dict[str, Any]]) -> str:
    """What the fits of a stage ran on, as "cpu" or "NVIDIA H200"."""
    found = [each.get("hardware", {}).get("device", "-") for each in fits]
    return " and ".join(dict.fromkeys(found)) or "-"


def _computed_in(stage: Stage) -> str:
    """The types that a stage was trained and measured in, as "bfloat16, float32"."""
    agent = RunFolder.read(stage.run).manifest.agents[0]["settings"]
    types = [
        made.get("hardware", {}).get("computes_in", made.get("settings", {}).get("precision", "-"))
        for made in stage.fits()
    ]
    trained = " and ".join(dict.fromkeys(types)) or "-"
    return f"{trained}, {agent.get('computed_in', agent['dtype'])}"


def _tells(report: AgentReport, tier: str) -> bool:
    """Whether a run's report tells the loss in a tier from chance and from the placebo."""
    return any(row.label == tier and row.significant for row in report.tiers)


def _difference(one: ArmResult, other: ArmResult) -> dict[str, list[float]]:
    """Other minus one, for the seeds that both have."""
    return {
        name: [
            other.measures[name][there] - one.measures[name][here]
            for here, there in _paired(one, other)
        ]
        for name in MEASURES
    }


def _paired(one: ArmResult, other: ArmResult) -> list[tuple[int, int]]:
    """Where each seed that both have stands in them."""
    return [
        (one.seeds.index(seed), other.seeds.index(seed))
        for seed in one.seeds
        if seed in other.seeds
    ]


def _won_back(one: ArmResult, other: ArmResult, beyond: bool = False) -> dict[str, list[float]]:
    """The share of one's loss that other does not have, for the seeds that both have."""
    before, after = ((arm.beyond if beyond else arm.measures) for arm in (one, other))
    return {
        tier: [
            1 - after[tier][there] / lost if lost <= -LEAST_LOSS else nan
            for here, there in _paired(one, other)
            for lost in [before[tier][here]]
        ]
        for tier in POINTS
        if tier in before and tier in after
    }


def over_seeds(values: Sequence[float]) -> Interval:
    """The mean over seeds; NaN where it is not defined for some, for the rest would flatter."""
    undefined = sum(map(isnan, values))
    if undefined or not values:
        said = f"{undefined} of {len(values)} seeds" if undefined < len(values) else "none"
        return Interval(nan, nan, nan, said, len(values))
    return seed_contrast(values)
