"""What the measures of one agent say, in sentences: where it is weak, and why.

Only contrasts that can be told apart from chance and from the placebo arm are called a weakness;
what cannot is said to be so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING

import msgspec

from toolshift.measure.statistics import Interval

if TYPE_CHECKING:
    from toolshift.measure.metrics import Measures

FLOOR, CEILING = 0.1, 0.95
"""A clean accuracy up to `FLOOR` is at floor; a shifted one from `CEILING` on is at ceiling."""


class Weakness(msgspec.Struct, frozen=True):
    """A root cause of failures, and how much of them it explains.

    Attributes:
        share: of the failures of this agent, in [0, 1].
        tier: where it is commonest.
        example: an episode to open.
    """

    cause: str
    failures: int
    share: float
    tier: str
    example: str


def weaknesses(everything: Measures, tiers: Sequence[Measures]) -> list[Weakness]:
    """The causes behind an agent's failures, the commonest first; empty for a sound agent."""
    total = sum(everything.causes.values())
    found = []
    for cause, count in everything.causes.items():
        most = max(tiers, key=lambda row: row.causes.get(cause, 0), default=everything)
        tier = most.label if most.causes.get(cause) else everything.label
        found.append(Weakness(cause, count, count / total, tier, most.examples.get(cause, "")))
    return found


def diagnose(
    clean: Measures,
    placebo: Measures | None,
    tiers: Sequence[Measures],
    shifts: Sequence[Measures],
    weak: Sequence[Weakness],
) -> list[str]:
    """The sentences, the most important first."""
    said = [_clean(clean)]
    if placebo is not None and placebo.told_apart:
        said.append(
            f"Even the placebo arm moves it by {drop_of(placebo)}: it is sensitive to order "
            "and phrasing."
        )
    if clean.clean_defined:
        said += _stages(tiers) + _worst_shift(shifts)
    elif tiers:
        said.append(_undefined(tiers))
    void = sum(row.void for row in (clean, *([placebo] if placebo else []), *tiers))
    said += _refusals(tiers) + _cause(weak, void)
    return said


def points(interval: Interval) -> str:
    """A drop as a change of accuracy in points, with its limits: "-32 [-41,-22] points"."""
    if isnan(interval.estimate):
        return "not defined"
    low, middle, high = (
        round(-100 * value) + 0 for value in (interval.high, interval.estimate, interval.low)
    )
    return f"{middle:+d} [{low:+d},{high:+d}] points"


def drop_of(row: Measures) -> str:
    """A drop in points, beside the one with void episodes as failures where that differs."""
    if isnan(row.drop_all.estimate):
        return points(row.drop)
    return f"{points(row.drop)} ({points(row.drop_all)} with void episodes as failures)"


def percent(interval: Interval) -> str:
    """A rate with its limits: "85% [72,93]"."""
    if isnan(interval.estimate):
        return "not defined"
    low, middle, high = (
        round(100 * value) for value in (interval.low, interval.estimate, interval.high)
    )
    return f"{middle}% [{low},{high}]"


def kinds(void: Mapping[str, int]) -> str:
    """Void episodes by what made them so: "3 infrastructure, 1 simulator"."""
    return ", ".join(f"{count} {kind}" for kind, count in void.items())


def words(name: str) -> str:
    """A cause or a shift as plain words."""
    return name.replace("_", " ")


def _clean(clean: Measures) -> str:
    rate = clean.accuracy.estimate
    if isnan(rate):
        return f"No clean episode could be scored: all are void ({kinds(clean.void_kinds)})."
    solves = f"Solves {percent(clean.accuracy)} of the clean tasks"
    if rate <= FLOOR:
        return f"{solves}: at floor, where a shift has nothing to take away."
    if not clean.clean_defined:
        return f"{solves}: under half, so drops are not defined; read retention instead."
    return f"{solves}."


def _stages(tiers: Sequence[Measures]) -> list[str]:
    apart = [row for row in tiers if row.told_apart and row.drop.estimate > 0]
    rest = [row.label for row in tiers if not row.told_apart]
    if not apart:
        ceiling = all(not row.void and row.accuracy.estimate >= CEILING for row in tiers)
        if tiers and ceiling:
            return ["At ceiling in every tier: these shifts do not reach its limits."]
        return ["No tier can be told apart from the placebo arm or from chance."] if tiers else []
    worst = max(apart, key=lambda row: row.drop.estimate)
    said = [
        f"Weakest stage: {worst.label}, {drop_of(worst)} "
        f"({percent(worst.clean)} clean, {percent(worst.accuracy)} shifted)."
    ]
    if rest:
        said.append(f"Not distinguishable: {', '.join(rest)}.")
    return said


def _worst_shift(shifts: Sequence[Measures]) -> list[str]:
    apart = [row for row in shifts if row.told_apart and row.drop.estimate > 0]
    if not apart:
        return []
    worst = max(apart, key=lambda row: row.drop.estimate)
    said = f"What hurts most: {words(worst.label)}, {drop_of(worst)}"
    if worst.causes:
        cause, count = next(iter(worst.causes.items()))
        failed = sum(worst.causes.values())
        said += f", by {words(cause)} in {count} of its {failed} failures"
        if worst.examples.get(cause):
            said += f" (open {worst.examples[cause]})"
    return [said + "."]


def _undefined(tiers: Sequence[Measures]) -> str:
    kept = [f"{row.label} {percent(row.retention)}" for row in tiers if row.retention.n]
    if not kept:
        return "It passes no clean task, so there is nothing to retain under shift."
    return f"Of the tasks it passes clean, it keeps: {'; '.join(kept)}."


def _refusals(tiers: Sequence[Measures]) -> list[str]:
    said = []
    for row in tiers:
        if not row.unsolvable:
            continue
        text = f"Refuses {percent(row.refusal_rate)} of {row.unsolvable} unsolvable scenes"
        if not isnan(row.right_reason):
            text += f" ({row.right_reason:.0%} of these for the right reason)"
        if row.over_refusal.n:
            text += f", and {percent(row.over_refusal)} of the solvable ones beside them"
        said.append(text + ".")
    return said


def _cause(weak: Sequence[Weakness], void: int) -> list[str]:
    if not weak and void:
        return [f"No failure was scored, but {void} episodes are void and may hide some."]
    if not weak:
        return ["No failure in any arm."]
    first = weak[0]
    said = (
        f"Commonest cause of failure: {words(first.cause)}, {first.failures} "
        f"({first.share:.0%} of all failures), mostly in {first.tier}"
    )
    return [f"{said}; open {first.example}." if first.example else f"{said}."]
