"""What a sequential run claims: its families, their verdicts, and how they are read again.

`runs.sequential` asks, `measure.betting` decides; here both meet. Nothing is stored beside the
episodes: the verdicts follow from them, from the plan and from the design in the manifest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from toolshift.measure.betting import limits, tasks_to_go, verdict
from toolshift.measure.metrics import shift_of
from toolshift.measure.statistics import Interval
from toolshift.runs.cell import Cell, build
from toolshift.runs.design import Design
from toolshift.runs.plan import Plan
from toolshift.runs.sequential import (
    ROUNDS,
    UNKNOWN,
    Changes,
    Claims,
    Family,
    Outcome,
    Pair,
    changes,
    in_order,
)

MARGIN = 10.0
"""Points that a shift may cost and still hold, where nothing else is said."""
CONFIDENCE = 0.95
GATE_CONFIDENCE = 0.9
Ended = Literal["decided", "out of reach", "stopped", "asked"]


class Claim(msgspec.Struct, frozen=True):
    """What was decided of a family.

    Attributes:
        verdict: "breaks" where the upper limit of the change is below what may be lost (0 for a
            shift), "holds" where the lower one is above the margin.
        change: of accuracy, after minus before, with limits that hold whenever the run stopped.
        tasks: that were read, of so many `planned`.
        ended: why no more were asked: it is decided; the tasks that are left would hardly decide;
            the run was stopped, or its budget is spent; or all were asked.
    """

    label: str
    verdict: Literal["breaks", "holds", "open"]
    change: Interval
    tasks: int
    planned: int
    ended: Ended

    @property
    def text(self) -> str:
        """The claim as a clause."""
        low, middle, high = (
            round(100 * one) + 0 for one in (self.change.low, self.change.estimate, self.change.high)
        ) if self.tasks else (0, 0, 0)  # fmt: skip
        seen = f"{self.tasks} of {self.planned} tasks"
        if self.tasks:
            seen = f"{middle:+d} [{low:+d},{high:+d}] points after {seen}"
        why = {"out of reach": ", the rest would hardly decide", "stopped": ", not asked further"}
        return f"{self.label} {self.verdict} ({seen}{why.get(self.ended, '')})"


def shift_claims(margin: float = MARGIN, budget: str = "") -> Claims:
    """Whether each shift breaks an agent, or costs it less than a margin.

    Args:
        margin: points.
        budget: as `read_budget` takes it.

    Returns:
        Claims of which each is wrongly "breaks" or "holds" in 2.5% of studies at most.
    """
    design = Design("sequential", "shifts", margin, budget)

    def families(plan: Plan) -> list[Family]:
        clean = {(c.lineage, c.trial): c for c in plan.cells if not c.shifts}
        pairs = [
            Pair(cell, clean[cell.lineage, cell.trial])
            for cell in plan.cells
            if cell.shifts and (cell.lineage, cell.trial) in clean
        ]
        return _by_label(pairs, shift_of)

    return _claims(design, families, 0.0, -margin / 100, CONFIDENCE)


def gate_claims(
    before: Mapping[str, Outcome],
    groups: Callable[[Plan], Mapping[str, Sequence[Cell]]],
    margin: float,
    budget: str = "",
) -> Claims:
    """Whether a build is worse than a baseline by more than a margin, family by family.

    Args:
        before: the baseline's outcomes by the ids of cells.
        groups: the cells of each family; one cell may be in several.
        margin: points.
        budget: as `read_budget` takes it.

    Returns:
        Claims of which each errs in 5% of gates at most; one that breaks ends the gate.
    """
    design = Design("sequential", "gate", margin, budget)

    def families(plan: Plan) -> list[Family]:
        return [
            family
            for label, cells in groups(plan).items()
            for family in _by_label(
                [Pair(cell, before.get(cell.id, UNKNOWN)) for cell in cells],
                lambda _, label=label: label,  # type: ignore[misc]
            )
        ]

    return _claims(design, families, -margin / 100, -margin / 100, GATE_CONFIDENCE, True)


def task_claims(budget: str = "") -> Claims:
    """Nothing but what becomes of each task: all are asked, those first whose calls differ."""
    design = Design("sequential", "tasks", 0.0, budget)

    def families(plan: Plan) -> list[Family]:
        clean = {(c.lineage, c.trial): c for c in plan.cells if not c.shifts}
        pairs = [
            Pair(cell, clean[cell.lineage, cell.trial]) for cell in plan.cells if cell.shifts
        ]
        alone = [Pair(cell, cell) for cell in clean.values()] if not pairs else []
        return _by_label(pairs or alone, shift_of, _calls_differ)

    def always_open(*_: object) -> str:
        return "open"

    parts = ROUNDS if budget else 1
    return Claims(
        design, families, always_open, lambda family, seen, left, listed: left, parts=parts
    )


def _calls_differ(cell: Cell) -> bool:
    """Whether a sound agent calls otherwise, or is answered otherwise, than in the clean scene."""
    scene = build(cell)
    sides = (
        [(step.name, step.arguments, step.text) for step in each.calls]
        for each in (scene, scene.clean)
    )
    return next(sides) != next(sides)


def _claims(
    design: Design,
    families: Callable[[Plan], Sequence[Family]],
    breaks: float,
    holds: float,
    confidence: float,
    ends_at_break: bool = False,
) -> Claims:
    rule = breaks, holds, confidence

    def judge(
        family: Family, lows: Sequence[float], highs: Sequence[float], listed: bool
    ) -> str:
        population = len(family.tasks) if listed else None
        return verdict(np.array(lows), np.array(highs), *rule, population)

    def to_go(family: Family, seen: Sequence[float], left: int, listed: bool) -> int | None:
        population = len(family.tasks) if listed else None
        return tasks_to_go(np.array(seen), left, *rule, population)

    return Claims(design, families, judge, to_go, ends_at_break)


def _by_label(
    pairs: Iterable[Pair],
    label_of: Callable[[Cell], str],
    first: Callable[[Cell], bool] | None = None,
) -> list[Family]:
    """Families of pairs, their tasks in the order in which they are asked."""
    groups: dict[str, dict[str, list[Pair]]] = defaultdict(lambda: defaultdict(list))
    for pair in pairs:
        groups[label_of(pair.after)][pair.after.lineage].append(pair)
    return [
        Family(
            label,
            tuple(
                tuple(tasks[name])
                for name in in_order((pair.after for all_ in tasks.values() for pair in all_), first)
            ),
        )
        for label, tasks in groups.items()
    ]


def claim_of(
    claims: Claims, family: Family, known: Mapping[str, Outcome], listed: bool, confidence: float
) -> tuple[Claim, Changes]:
    """What the episodes so far say of a family."""
    seen = changes(family, known)
    found = claims.verdict(family, seen.lows, seen.highs, listed)
    left = len(family.tasks) - len(seen.lows)
    ended: Ended = "decided" if found != "open" else "asked"
    if found == "open" and left:
        more = claims.to_go(family, seen.likely, left, listed)
        ended = "out of reach" if more is None else "stopped"
    population = len(family.tasks) if listed else None
    change = limits(np.array(seen.lows), np.array(seen.highs), confidence, population)
    claim = Claim(family.label, found, change, len(seen.lows), len(family.tasks), ended)  # type: ignore[arg-type]
    return claim, seen


def shift_claims_of(
    plan: Plan, known: Mapping[str, Outcome], design: Design, agent: str
) -> list[Claim]:
    """What a stored run says of each shift; nothing where only tasks were looked at."""
    if design.claim == "tasks":
        return []
    claims = shift_claims(design.margin)
    listed = agent in design.listed
    return [
        claim_of(claims, family, known, listed, CONFIDENCE)[0] for family in claims.families(plan)
    ]
