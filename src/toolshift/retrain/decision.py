"""Is a retrained model kept? Only where it wins on the new tools and loses nothing elsewhere.

Both runs are of the same scenes. The gate (`toolshift.measure.gate`) is asked shift by shift: the
new tools must be passed more often than before, the lower limit of the exact 90% interval above
0, and every other family (clean scenes on the old tools, and the further shifts that were asked
for) must pass at the margin.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean
from typing import Literal

import msgspec

from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.measure.gate import OVERALL, Family, Rules, in_points, judge
from toolshift.measure.metrics import shift_of
from toolshift.measure.statistics import Interval, paired_drop
from toolshift.runs.run_folder import RunFolder

Outcome = Literal["keep", "reject", "undecided", "not_needed"]
EXIT_CODES: dict[Outcome, int] = {"keep": 0, "not_needed": 0, "reject": 1, "undecided": 3}


class Decision(msgspec.Struct, frozen=True):
    """What was decided, and why.

    Attributes:
        outcome: keep or reject the new model; undecided where the intervals are too wide;
            not_needed where the old one lost less than the margin, and nothing was trained.
        sentence: the reason in words.
        cost: what the release cost the old model, clean minus shifted accuracy from -1 to 1.
        margin: points that may be lost.
        gain: on the new tools; None where nothing was trained.
        guarded: the families on which nothing may be lost.
    """

    outcome: Outcome
    sentence: str
    cost: Interval
    margin: float
    gain: Family | None = None
    guarded: tuple[Family, ...] = ()


def cost_of(run: RunFolder, release: str) -> tuple[Interval, float]:
    """What a release costs the one agent of a run, and its accuracy without it."""
    cells = {cell.id: cell for cell in run.plan.cells}
    arms: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in run.records():
        if not record.grade.excused:
            cell = cells[record.cell]
            arms[shift_of(cell)][cell.lineage].append(float(record.grade.passed))
    drop = paired_drop(arms[""], arms[release])
    if not drop.n:
        raise UsageError(
            f"no task was scored clean and under the release: `{command('report', run.path)}` "
            "shows why; use another --world, another --kind or more --tasks"
        )
    return drop, fmean(map(fmean, arms[""].values()))


def not_needed(cost: Interval, margin: float, clean: float) -> Decision | None:
    """The decision to train nothing, where the release costs less than the margin.

    A model that passes no more than the margin without the release cannot lose it, so that says
    nothing.
    """
    if 100 * cost.high > margin or 100 * clean <= margin:
        return None
    return Decision(
        "not_needed",
        f"not needed: the release costs {_points(cost)} points, less than {margin:g}",
        cost,
        margin,
    )


def decide(before: RunFolder, after: RunFolder, release: str, margin: float) -> Decision:
    """Compares the new model with the old one."""
    found = judge(before, after, Rules(margin, by="shift"))
    families = {family.label: family for family in found.families}
    gain = families.pop(release)
    families.pop(OVERALL)
    guarded = tuple(families.values())
    outcome, sentence = _outcome(gain, guarded, margin)
    return Decision(outcome, sentence, cost_of(before, release)[0], margin, gain, guarded)


def _outcome(gain: Family, guarded: tuple[Family, ...], margin: float) -> tuple[Outcome, str]:
    won = f"{in_points(gain.change)} points on the new tools"
    for family in guarded:
        if family.verdict == "fail":
            return "reject", (
                f"reject: {won}, but {in_points(family.change)} on {family.label}, worse by more "
                f"than {margin:g}"
            )
    if gain.change.n and gain.change.high <= 0:
        return "reject", f"reject: {won}, so it does not help"
    guarded = tuple(family for family in guarded if family.gated)
    for family in guarded:
        if family.verdict != "pass":
            return "undecided", f"undecided: {won}; {family.label}: {family.sentence}"
    if not gain.change.low > 0:
        return "undecided", f"undecided: {won}, which may be chance: more --tasks would decide"
    names = ", ".join(family.label for family in guarded)
    return "keep", f"keep: {won}, and nothing is worse by {margin:g} points ({names})"


def _points(drop: Interval) -> str:
    return f"{100 * drop.estimate:z.1f} [{100 * drop.low:z.1f}, {100 * drop.high:z.1f}]"
