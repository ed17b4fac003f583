"""The scorer and the metrics: the verdicts of `toolshift.episode.grade` in Inspect's terms."""

from __future__ import annotations

from math import sqrt
from typing import Any

import msgspec
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    grouped,
    metric,
    scorer,
)
from inspect_ai.solver import TaskState

from toolshift.connect.inspect.episodes import kept_of, scene_of
from toolshift.core.tool import JSON
from toolshift.episode.grade import Grade, regrade
from toolshift.measure import statistics as st
from toolshift.measure.metrics import Arms, scores, tier_of
from toolshift.measure.scored import Scored
from toolshift.runs.cell import Cell

GROUP = "arm"


@metric  # type: ignore[untyped-decorator]
def accuracy() -> Metric:
    """Accuracy as `toolshift run` has it: the mean over tasks of the share of samples that pass.

    Inspect's own takes the mean over samples, which differs where tasks have unequal numbers.
    """

    def mean_of_tasks(found: list[SampleScore]) -> float:
        return st.accuracy(_passes(found).values())

    return mean_of_tasks


@metric  # type: ignore[untyped-decorator]
def stderr() -> Metric:
    """The standard error of `accuracy`, with the task as cluster; 0 for a single task."""

    def of_tasks(found: list[SampleScore]) -> float:
        means = st.task_means(_passes(found).values())
        return float(means.std(ddof=1)) / sqrt(means.size) if means.size > 1 else 0.0

    return of_tasks


def _passes(found: list[SampleScore]) -> dict[str, list[float]]:
    return scores(row for row in map(_scored, found) if row is not None)


@metric  # type: ignore[untyped-decorator]
def shift_drop() -> Metric:
    """The drop of each tier, clean minus shifted and paired by task, as `toolshift run` has it.

    Beside each drop stand the ends of its 95% interval. Undefined, and left out, where the model
    passes under half of the same tasks clean.
    """

    def drops(samples: list[SampleScore]) -> dict[str, float]:
        arms = Arms(row for row in map(_scored, samples) if row is not None)
        found: dict[str, float] = {}
        for row in arms.table(_arm_of, "holm"):
            if row.defined:
                ends = {"": row.drop.estimate, "_low": row.drop.low, "_high": row.drop.high}
                found |= {f"drop_{row.label}{end}": value for end, value in ends.items()}
        return found

    return drops


def _arm_of(cell: Cell) -> str:
    return tier_of(cell)


def _scored(score: SampleScore) -> Scored | None:
    """A row for ToolShift's own measures, from what the score holds."""
    told: dict[str, Any] = score.score.metadata or {}
    cell = (score.sample_metadata or {}).get("cell")
    if cell is None or "grade" not in told:
        return None
    return Scored(
        str(score.sample_id), msgspec.convert(cell, Cell), msgspec.convert(told["grade"], Grade)
    )


@scorer(  # type: ignore[untyped-decorator]
    metrics=[
        accuracy(),
        stderr(),
        grouped(accuracy(), GROUP, all=False),
        grouped(stderr(), GROUP, all=False, name_template="{group_name}_stderr"),
        shift_drop(),
    ]
)
def graded() -> Scorer:
    """Grades the kept trace of a sample by rule; `inspect score` does so again from a log.

    1 for a pass and 0 for a failure, its cause in the explanation. What is not the model's doing
    (its infrastructure) is not scored. Where it may have brought that about, it has failed.
    An episode that a limit of Inspect's cut short counts as one that ran out of its budget.
    """

    async def score(state: TaskState, target: Target) -> Score:
        kept = kept_of(state)
        verdict = regrade(scene_of(state.metadata), kept.steps, kept.end or "budget")
        answers = [step.said or step.name for step in kept.steps if step.kind != "call"]
        told = {"grade": msgspec.json.decode(JSON.encode(verdict))}
        answer = answers[-1] if answers else ""
        if verdict.excused:
            return Score.unscored(reason=verdict.cause, answer=answer, metadata=told)
        why = verdict.cause or "passed"
        return Score(value=int(verdict.passed), answer=answer, explanation=why, metadata=told)

    return score
