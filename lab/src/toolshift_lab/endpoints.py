"""What the arms of a planned study come to: endpoints over seeds and tasks, and their contrasts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from math import isnan, nan
from pathlib import Path
from statistics import mean
from typing import TypeVar

import msgspec
import numpy as np

from toolshift.core.shift import without_versions
from toolshift.measure.crossed import Crossed, crossed_difference, crossed_mean
from toolshift.measure.statistics import Interval, drop_is_defined, holm
from toolshift.runs.run_folder import RunFolder
from toolshift_lab.findings import LEAST_LOSS, over_seeds
from toolshift_lab.planned import Endpoint, PlanFile, as_cells_name
from toolshift_lab.stage import Stage

K = TypeVar("K", bound=Hashable)
PICTURE = "endpoints.svg"
LEAST_SEEDS = 3
"""Of either arm of a contrast that gets a p value: two say too little of how seeds differ."""
LEAST_P = 0.001
"""The least p value that is told: below it three seeds say less than the figure would."""
Scores = dict[str, dict[str, tuple[bool, bool]]]
"""By stack ("" for clean) and task: whether the episode passed, and whether it refused."""


class ArmEndpoint(msgspec.Struct, frozen=True):
    """An endpoint of one arm, in shares: a drop is clean minus shifted.

    Attributes:
        by_seed: the mean over the tasks, one a seed.
        clean: the clean accuracy on the tasks of a drop, over all seeds; NaN for other measures.
        kinds: of a drop, by kind of task.
        measure: of the endpoint.
        accuracy: the share passed under the shifts of a drop, which unlike the drop does not gain
            where fewer clean tasks pass; None for other measures.
    """

    arm: str
    endpoint: str
    found: Crossed
    by_seed: list[float]
    clean: float = nan
    kinds: dict[str, KindDrop] = {}
    measure: str = ""
    accuracy: Crossed | None = None

    @property
    def defined(self) -> bool:
        """Whether the figure says something: a drop of what was hardly there does not."""
        return _is_defined(self.clean)


class KindDrop(msgspec.Struct, frozen=True):
    """What the tasks of one kind lose, over all seeds, in shares of them."""

    clean: float
    drop: float
    tasks: int


class Contrast(msgspec.Struct, frozen=True):
    """The second arm's endpoint less the first's, by the seeds and tasks that both have.

    Attributes:
        p_holm: Holm's over all primary tests of the plan; NaN for secondary endpoints and where
            an arm has fewer than `LEAST_SEEDS`.
        clean: as of `ArmEndpoint`, of the arm that has less.
        won_back: by seed, the share of the first arm's drop that the second does not have; NaN
            where the first loses less than `LEAST_LOSS` points, empty where one is not defined.
        unpaired: the same with all seeds of both arms, which are not paired: a sensitivity
            analysis, since the plan pairs them.
        accuracy: of a drop, the contrast of the shares passed, not paired by seed; None for other
            measures.
    """

    first: str
    second: str
    endpoint: str
    found: Crossed
    p_holm: float
    clean: float = nan
    won_back: list[float] = []
    unpaired: Crossed | None = None
    accuracy: Crossed | None = None


class Endpoints(msgspec.Struct, frozen=True):
    """All endpoints of a plan that can be told from the stages that are there."""

    plan_sha256: str
    arms: list[ArmEndpoint]
    contrasts: list[Contrast]


def endpoints_of(plan: PlanFile, stages: Sequence[Stage]) -> Endpoints:
    """Reads the endpoints from the finished stages."""
    told = scores_of(stages)
    return compared(plan, {each.name: told[each.name] for each in plan.arms if each.name in told})


def scores_of(stages: Sequence[Stage]) -> dict[str, dict[int, Scores]]:
    """The scores of the stages that are measured, by arm and seed."""
    told: dict[str, dict[int, Scores]] = defaultdict(dict)
    for stage in stages:
        if stage.measured:
            told[stage.arm.name][stage.seed] = scores_of_run(stage.run)
    return told


def compared(plan: PlanFile, scores: Mapping[str, dict[int, Scores]]) -> Endpoints:
    """The endpoints of a plan, from scores by arm and seed."""
    every = (*plan.endpoints, *plan.secondary)
    arms = [
        ArmEndpoint(
            arm, each.name, _of_arm(each, list(table.values())), [*map(mean, table.values())],
            _clean(each, by_seed, _common_tasks(each, by_seed)), _by_kind(each, by_seed),
            each.measure, _accuracy(each, by_seed),
        )
        for arm, by_seed in ((arm, _scored_in_all(one)) for arm, one in scores.items())
        for each in every
        if (table := _table(each, by_seed))
    ]  # fmt: skip
    contrasts = []
    for pair in plan.contrasts:
        if pair.first in scores and pair.second in scores:
            contrasts += _contrast(plan, pair.first, pair.second, scores)
    return Endpoints(plan.sha256, [*map(_arm_as_told, arms)], _adjusted(contrasts))


def told_p(p: float, seeds: int) -> float:
    """A p value as it may be told: NaN with too few seeds, and never below `LEAST_P`."""
    return nan if isnan(p) or seeds < LEAST_SEEDS else max(p, LEAST_P)


def _as_told(found: Crossed) -> Crossed:
    return msgspec.structs.replace(found, p=told_p(found.p, found.seeds))


def _arm_as_told(arm: ArmEndpoint) -> ArmEndpoint:
    """An arm without p values, which would be of a true mean of 0: nobody asks that of one arm."""
    plain = msgspec.structs.replace(arm.found, p=nan)
    accuracy = arm.accuracy and msgspec.structs.replace(arm.accuracy, p=nan)
    return msgspec.structs.replace(arm, found=plain, accuracy=accuracy)


def _adjusted(contrasts: Sequence[Contrast]) -> list[Contrast]:
    """Contrasts whose p values are Holm's over all of them, as they may be told."""
    tested = [nan if each.found.seeds < LEAST_SEEDS else each.p_holm for each in contrasts]
    return [
        msgspec.structs.replace(
            each,
            found=_as_told(each.found),
            p_holm=told_p(p, each.found.seeds),
            unpaired=each.unpaired and _as_told(each.unpaired),
            accuracy=each.accuracy and _as_told(each.accuracy),
        )
        for each, p in zip(contrasts, holm(tested), strict=True)
    ]


def as_markdown(found: Endpoints) -> str:
    """The section of a study's page, in points."""
    rows = [
        f"| {each.arm} | {each.endpoint} | {_points(each)} | {_passes(each)} | {_design(each)} |"
        for each in found.arms
    ]
    said = [
        "## Endpoints of the plan",
        "",
        f"Plan `{found.plan_sha256[:16]}`. In points; in brackets 95% intervals that hold for "
        "other seeds and other tasks (both random). Where such studies are simulated, they hold "
        "the true mean in 91 to 100% of them, least often with three seeds that differ "
        "(`benchmarks/crossed_coverage.json`). With one seed they hold for other tasks alone. "
        "A drop is clean minus shifted on the same tasks. Where the "
        "clean accuracy on them is under one half, in a contrast that of either arm, a drop is not "
        "defined (n.d.): there was too little to lose for the figure to say much. "
        "A drop gains where fewer clean tasks pass; the accuracy under the same shifts does not. "
        "In the picture the wide bars are t intervals over the seeds alone, on these tasks, and "
        "the thin ones those of the table, dashed with one seed; a hollow point is n.d.",
        "",
        f"![each endpoint of each arm]({PICTURE})",
        "",
        "| arm | endpoint | points | passed under the shifts, percent | seeds x tasks |",
        "|---|---|---:|---:|---:|",
        *rows,
        "",
        *_kind_table(found.arms),
    ]
    if found.contrasts:
        said += [
            f"p is Holm's over all {_tests(found)} primary tests of this plan. It is never told "
            f"below {LEAST_P}, and not at all where an arm has fewer than {LEAST_SEEDS} seeds. "
            "Brackets are of one endpoint alone, so one may leave out 0 where p is above 0.05. The "
            "plan pairs arms by seed. Unpaired, with all seeds of both arms, is a sensitivity "
            "analysis that was added after the results had been seen; so is accuracy, the "
            "difference in the share passed under the shifts of a drop, not paired either.",
            "",
            "| contrast | endpoint | points | seeds x tasks | p, after Holm | unpaired | "
            "accuracy, unpaired |",
            "|---|---|---:|---:|---:|---:|---:|",
        ]
        said += [
            f"| {each.second} - {each.first} | {each.endpoint} | {_points(each)} | "
            f"{_design(each)} | {_p(each)} | {_maybe(each.unpaired)} | {_maybe(each.accuracy)} |"
            for each in found.contrasts
        ]
        said += _won_back(found.contrasts)
    return "\n".join([*said, ""])


def _won_back(contrasts: Sequence[Contrast]) -> list[str]:
    """The shares of drops that are won back, where several seeds have them."""
    told = [(each, over_seeds(each.won_back)) for each in contrasts if len(each.won_back) > 1]
    rows = [
        f"| {each.second} against {each.first} | {each.endpoint} | {_percent(one)} |"
        for each, one in told
        if not isnan(one.estimate)
    ]
    if not rows:
        return []
    return [
        "",
        "Of the first arm's drop, the share that the second does not have, in percent; in brackets "
        "t intervals over the seeds alone. Left out: drops that are not defined or are below "
        f"{LEAST_LOSS} points in some seed, and single seeds.",
        "",
        "| contrast | endpoint | won back |",
        "|---|---|---:|",
        *rows,
    ]


def _is_defined(clean: float) -> bool:
    return isnan(clean) or drop_is_defined(clean)


def _percent(one: Interval) -> str:
    """A share with its interval, where it has one: where all seeds agree there is none."""
    limits = "" if isnan(one.low) else f" [{100 * one.low:z.0f}, {100 * one.high:z.0f}]"
    return f"{100 * one.estimate:z.0f}{limits}"


def _design(told: ArmEndpoint | Contrast) -> str:
    return f"{told.found.seeds} x {told.found.tasks}"


def _passes(told: ArmEndpoint) -> str:
    """The accuracy under the shifts: of a share of passes that is the endpoint itself."""
    return _maybe(told.accuracy) if told.measure == "drop" else "-"


def _maybe(told: Crossed | None) -> str:
    return _percent(told.interval) if told else "-"


def _tests(found: Endpoints) -> int:
    return sum(not isnan(each.p_holm) for each in found.contrasts)


def _p(told: Contrast) -> str:
    """The adjusted p value as it may be told."""
    if not isnan(told.p_holm):
        return p_text(told.p_holm)
    return "secondary" if told.found.seeds >= LEAST_SEEDS else _few(told.found.seeds)


def _few(seeds: int) -> str:
    return "one seed" if seeds == 1 else f"{seeds} seeds"


def p_text(p: float) -> str:
    """A p value that is told."""
    return f"at most {LEAST_P}" if p <= LEAST_P else f"{p:.2g}"


def _kind_table(arms: Sequence[ArmEndpoint]) -> list[str]:
    """The drops by kind of task, endpoint by endpoint."""
    kinds = list(dict.fromkeys(kind for each in arms for kind in each.kinds))
    if not kinds:
        return []
    counts = sorted({one.tasks for each in arms for one in each.kinds.values()})
    said = [
        f"Drops by kind of task ({' or '.join(map(str, counts))} tasks each), as clean accuracy → "
        "points lost; in parentheses where the clean accuracy is under one half.",
        "",
        f"| endpoint | arm | {' | '.join(kinds)} |",
        f"|---|---|{'---:|' * len(kinds)}",
    ]
    for endpoint in dict.fromkeys(each.endpoint for each in arms if each.kinds):
        for each in arms:
            if each.endpoint == endpoint:
                cells = " | ".join(_kind_cell(each.kinds.get(kind)) for kind in kinds)
                said.append(f"| {endpoint} | {each.arm} | {cells} |")
    return [*said, ""]


def _kind_cell(told: KindDrop | None) -> str:
    if told is None:
        return "-"
    said = f"{100 * told.clean:.0f} → {100 * told.drop:z.0f}"
    return said if drop_is_defined(told.clean) else f"({said})"


def _of_arm(endpoint: Endpoint, table: list[list[float]]) -> Crossed:
    """The mean over seeds and tasks; a share is not below 0, as a drop may be."""
    found = crossed_mean(table)
    if endpoint.measure == "drop":
        return found
    above = msgspec.structs.replace(found.interval, low=max(0.0, found.interval.low))
    return msgspec.structs.replace(found, interval=above)


def _points(told: ArmEndpoint | Contrast) -> str:
    """An endpoint with its interval; a drop of too little is told so."""
    said = "" if _is_defined(told.clean) else f" (n.d.: clean {100 * told.clean:.0f}%)"
    return f"{_percent(told.found.interval)}{said}"


def scores_of_run(run: Path) -> Scores:
    """The scores of a run, from its episodes; a void one has none."""
    folder = RunFolder.read(run)
    found: Scores = defaultdict(dict)
    for record in folder.records():
        if not record.grade.void:
            cell = folder.cell(record)
            told = record.grade.passed, record.grade.refused
            found[without_versions(cell.stack)][cell.lineage] = told
    return found


def _scored_in_all(by_key: Mapping[K, Scores]) -> dict[K, Scores]:
    """The scores of the scenes that all have.

    Where one is void with one seed or arm, the mean of its task is over fewer shifts; it is to be
    so with all others too, or shifts are compared in place of seeds and arms.
    """
    scenes = [{(s, t) for s, tasks in one.items() for t in tasks} for one in by_key.values()]
    common = set.intersection(*scenes)
    return {
        key: {
            stack: {task: told for task, told in tasks.items() if (stack, task) in common}
            for stack, tasks in one.items()
        }
        for key, one in by_key.items()
    }


def _table(endpoint: Endpoint, by_seed: dict[int, Scores]) -> dict[int, list[float]]:
    """The endpoint by seed and task, of the tasks that every seed has; {} where there is none."""
    told = {seed: _by_task(endpoint, scores) for seed, scores in by_seed.items()}
    tasks = _common_tasks(endpoint, by_seed)
    return {seed: [each[task] for task in tasks] for seed, each in told.items()} if tasks else {}


def _common_tasks(endpoint: Endpoint, by_seed: dict[int, Scores]) -> list[str]:
    """The tasks that every seed has."""
    return sorted(set.intersection(*(set(_by_task(endpoint, each)) for each in by_seed.values())))


def _clean(endpoint: Endpoint, by_seed: dict[int, Scores], tasks: Sequence[str]) -> float:
    """The clean accuracy on the tasks of a drop, over all seeds; NaN for other measures."""
    if endpoint.measure != "drop":
        return nan
    start = _start_of(endpoint)
    return mean(float(scores[start][task][0]) for scores in by_seed.values() for task in tasks)


def _start_of(endpoint: Endpoint) -> str:
    """The stack that a drop is taken from, as cells name it; "" for the clean scenes."""
    return as_cells_name(endpoint.against) if endpoint.against else ""


def _by_kind(endpoint: Endpoint, by_seed: dict[int, Scores]) -> dict[str, KindDrop]:
    """A drop by kind of task; {} for other measures."""
    if endpoint.measure != "drop":
        return {}
    told = [_by_task(endpoint, scores) for scores in by_seed.values()]
    tasks: dict[str, list[str]] = defaultdict(list)
    for task in _common_tasks(endpoint, by_seed):
        tasks["/".join(task.split("/")[:2])].append(task)  # world and kind: see `Cell.lineage`
    return {
        kind: KindDrop(
            clean=_clean(endpoint, by_seed, mine),
            drop=mean(lost[task] for lost in told for task in mine),
            tasks=len(mine),
        )
        for kind, mine in tasks.items()
    }


def _by_task(endpoint: Endpoint, scores: Scores) -> dict[str, float]:
    clean, found = scores.get(_start_of(endpoint), {}), defaultdict(list)
    for shift in endpoint.shifts or ("",):
        for task, (passed, refused) in scores.get(as_cells_name(shift), {}).items():
            found[task].append(float(refused if endpoint.measure == "refused" else passed))
    if endpoint.measure != "drop":
        return {task: mean(values) for task, values in found.items()}
    return {t: clean[t][0] - mean(values) for t, values in found.items() if t in clean}


def _contrast(
    plan: PlanFile, first: str, second: str, scores: Mapping[str, dict[int, Scores]]
) -> list[Contrast]:
    seeds = scores[first].keys() & scores[second].keys()
    every = {(arm, seed): scores[arm][seed] for arm in (first, second) for seed in seeds}
    both = _scored_in_all(every) if every else {}
    found: list[Contrast] = []
    for endpoint in (*plan.endpoints, *plan.secondary) if seeds else ():
        one, other = (
            {seed: _by_task(endpoint, both[arm, seed]) for seed in sorted(seeds)}
            for arm in (first, second)
        )
        tasks = sorted(set.intersection(*(set(t) for t in (*one.values(), *other.values()))))
        if tasks:
            table = [[other[s][t] - one[s][t] for t in tasks] for s in sorted(seeds)]
            arms = ({s: both[arm, s] for s in seeds} for arm in (first, second))
            clean = min(_clean(endpoint, arm, tasks) for arm in arms)
            bound = 2.0 if endpoint.measure == "drop" else 1.0
            lost = [[mean(arm[s][t] for t in tasks) for s in sorted(seeds)] for arm in (one, other)]
            # For other measures than drops `clean` is NaN, which is never enough.
            shares = [*map(_share, *lost)] if drop_is_defined(clean) else []
            told = crossed_mean(np.array(table), bound=bound)
            p = told.p if endpoint in plan.endpoints else nan
            unpaired, accuracy = _unpaired(endpoint, scores[first], scores[second])
            found.append(
                Contrast(first, second, endpoint.name, told, p, clean, shares, unpaired, accuracy)
            )
    return found


def _unpaired(
    endpoint: Endpoint, first: dict[int, Scores], second: dict[int, Scores]
) -> tuple[Crossed | None, Crossed | None]:
    """The contrast with all seeds of both arms, and of a drop the one of accuracy."""
    every = {("first", s): one for s, one in first.items()}
    every |= {("second", s): one for s, one in second.items()}
    both = _scored_in_all(every)

    def difference(measured: Endpoint, bound: float) -> Crossed | None:
        by_key = {key: _by_task(measured, one) for key, one in both.items()}
        tasks = sorted(set.intersection(*map(set, by_key.values())))
        if not tasks:
            return None
        one, other = (
            [[told[t] for t in tasks] for (arm, _), told in by_key.items() if arm == name]
            for name in ("first", "second")
        )
        return crossed_difference(one, other, bound=bound)

    if endpoint.measure != "drop":
        return difference(endpoint, 1.0), None
    return difference(endpoint, 2.0), difference(_passed(endpoint), 1.0)


def _passed(endpoint: Endpoint) -> Endpoint:
    """The share passed under the shifts of a drop."""
    return msgspec.structs.replace(endpoint, measure="passed")


def _accuracy(endpoint: Endpoint, by_seed: dict[int, Scores]) -> Crossed | None:
    if endpoint.measure != "drop":
        return None
    passed = _passed(endpoint)
    return _of_arm(passed, list(_table(passed, by_seed).values()))


def _share(before: float, after: float) -> float:
    """The share of a loss that is not lost any more; NaN of one that is too small for it."""
    return 1 - after / before if before >= LEAST_LOSS / 100 else nan
