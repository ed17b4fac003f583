"""What a sequential run claims: its families, their verdicts, and how they are read again.

`runs.sequential` asks, `measure.betting` decides; here both meet. Nothing is stored beside the
episodes: the verdicts follow from them, from the plan and from the design in the manifest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import nan
from statistics import fmean
from typing import Literal

import msgspec
import numpy as np

from toolshift.measure.betting import Rule, limits, tasks_to_go, verdict
from toolshift.measure.metrics import shift_of
from toolshift.measure.statistics import Interval
from toolshift.runs.cell import Cell
from toolshift.runs.design import Design
from toolshift.runs.plan import Plan
from toolshift.runs.sequential import (
    UNKNOWN,
    Claims,
    Family,
    Outcome,
    Pair,
    Verdict,
    changes,
    in_order,
    name_of,
)

MARGIN = 10.0
"""Points that a shift may cost and still hold, where nothing else is said."""
CONFIDENCE = 0.95
LAST = 0.907
"""A gate errs with 5% in a family and a direction: 4.65% where all its tasks are asked, by the
exact limits of a fixed gate, and 0.35% before. So it takes hardly more tasks than a fixed one to
pass: 60 without a loss at a margin of 5, which is where that one passes too."""
EARLY = 0.993
Ended = Literal["decided", "out of reach", "stopped", "asked", "void", "nothing to lose"]


class Claim(msgspec.Struct, frozen=True):
    """What was decided of a family.

    Attributes:
        verdict: "breaks" where the upper limit of the change is below what may be lost (0 for a
            shift), "holds" where the lower one is above the margin.
        change: of accuracy, after minus before, with limits that hold whenever the run stopped.
        tasks: that were read, of so many `planned`.
        ended: why no more were asked: it is decided; the tasks that are left would hardly decide;
            the run was stopped, or its budget is spent; all were asked; every episode after is
            void; or so little passes before that not even losing all of it would be more than the
            margin.
        before: accuracy of these tasks before; NaN where none was read.
    """

    label: str
    verdict: Verdict
    change: Interval
    tasks: int
    planned: int
    ended: Ended
    before: float = nan

    @property
    def drop(self) -> Interval:
        """The change as a drop, before minus after."""
        middle, low, high = self.change.estimate, self.change.low, self.change.high
        return Interval(-middle, -high, -low, self.change.method, self.change.n)

    @property
    def text(self) -> str:
        """The family, with what was seen of it."""
        seen = f"{self.tasks} of {self.planned} tasks"
        if self.tasks:
            parts = self.change.estimate, self.change.low, self.change.high
            middle, low, high = (round(100 * part) + 0 for part in parts)
            seen = f"{middle:+d} [{low:+d},{high:+d}] points after {seen}"
        return f"{self.label} ({seen})"


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
        return families_by(pairs, shift_of)

    return _claims(design, families, shift_rule(margin))


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
            for family in families_by(
                [Pair(cell, before.get(cell.id, UNKNOWN)) for cell in cells],
                lambda _, label=label: label,  # type: ignore[misc]
            )
        ]

    return _claims(design, families, gate_rule(margin), True)


def shift_rule(margin: float) -> Rule:
    """The rule of a shift that may cost so many points."""
    return Rule(0.0, -margin / 100, CONFIDENCE)


def gate_rule(margin: float) -> Rule:
    """The rule of a gate with a margin in points."""
    return Rule(-margin / 100, -margin / 100, EARLY, LAST)


def _claims(
    design: Design,
    families: Callable[[Plan], Sequence[Family]],
    rule: Rule,
    ends_at_break: bool = False,
) -> Claims:
    def judge(
        family: Family, lows: Sequence[float], highs: Sequence[float], listed: bool
    ) -> Verdict:
        return verdict(np.array(lows), np.array(highs), rule, len(family.tasks), listed)

    def to_go(family: Family, seen: Sequence[float], listed: bool) -> int | None:
        return tasks_to_go(np.array(seen), rule, len(family.tasks), listed)

    return Claims(design, families, judge, to_go, ends_at_break)


def families_by(
    pairs: Iterable[Pair],
    label_of: Callable[[Cell], str],
    first: Callable[[Cell], bool] | None = None,
) -> list[Family]:
    """Families of pairs by a label, their tasks in the order in which they are asked."""
    groups: dict[str, dict[str, list[Pair]]] = defaultdict(lambda: defaultdict(list))
    for pair in pairs:
        groups[label_of(pair.after)][pair.after.lineage].append(pair)
    return [
        Family(
            label,
            tuple(
                tuple(tasks[name])
                for name in in_order(
                    (pair.after for all_ in tasks.values() for pair in all_), first
                )
            ),
        )
        for label, tasks in groups.items()
    ]


def is_finished(claims: Sequence[Claim]) -> bool:
    """Whether a run has come to its end, and was not stopped or out of budget."""
    return all(claim.ended != "stopped" for claim in claims)


def in_words(claims: Sequence[Claim]) -> list[str]:
    """What was decided and what stayed open, in sentences."""
    lines = []
    for decided in ("breaks", "holds"):
        if found := [claim.text for claim in claims if claim.verdict == decided]:
            lines.append(f"{decided.capitalize()} under {'; '.join(found)}.")
    for ended, why in _ENDS.items():
        if found := [claim.label for claim in claims if claim.ended == ended]:
            lines.append(f"Open, {why}: {', '.join(found)}.")
    return lines


_ENDS: dict[Ended, str] = {
    "out of reach": "because the remaining tasks can hardly decide it",
    "asked": "and no remaining task can decide it",
    "stopped": "because the budget is spent or the run was stopped",
    "void": "because every episode under it is void, so it was not measured",
    "nothing to lose": "because it passes too few of these tasks clean to lose more than the "
    "margin",
}


def claim_of(family: Family, known: Mapping[str, Outcome], rule: Rule, listed: bool) -> Claim:
    """What the episodes so far say of a family."""
    seen = changes(family, known)
    lows, highs, likely = np.array(seen.lows), np.array(seen.highs), np.array(seen.likely)
    planned = len(family.tasks)
    found = verdict(lows, highs, rule, planned, listed)
    ended: Ended = "decided" if found != "open" else "asked"
    if found == "open" and len(seen.lows) < planned:
        more = tasks_to_go(likely, rule, planned, listed)
        ended = "out of reach" if more is None else "stopped"
    change = limits(lows, highs, likely, rule, planned, listed)
    before = fmean(seen.passed) if seen.passed else nan
    if found == "holds" and before <= -rule.holds + 1e-9:
        found, ended = "open", "nothing to lose"
    elif found == "open" and _is_void(family, known):
        ended = "void"
    return Claim(family.label, found, change, len(seen.lows), planned, ended, before)


def _is_void(family: Family, known: Mapping[str, Outcome]) -> bool:
    """Whether episodes after were asked, and none of them has a verdict."""
    asked = [known.get(name_of(pair.after)) for pairs in family.tasks for pair in pairs]
    found = [outcome for outcome in asked if outcome is not None]
    return bool(found) and all(outcome.low < outcome.high for outcome in found)


def shift_claims_of(
    plan: Plan, known: Mapping[str, Outcome], design: Design, agent: str
) -> list[Claim]:
    """What a stored run says of each shift; nothing where that was not what it decided."""
    if design.claim != "shifts":
        return []
    families, rule = shift_claims(design.margin).families(plan), shift_rule(design.margin)
    return [claim_of(family, known, rule, agent in design.listed) for family in families]
