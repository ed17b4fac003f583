"""The measures of one agent in sentences: where it is weak, and why.

Only contrasts that differ significantly from chance and from the placebo arm are called a weakness;
the others are called not significant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf, isnan

import msgspec

from toolshift.core.command_line import command
from toolshift.core.text import visible
from toolshift.episode.grade import UNCLEAR
from toolshift.measure.claims import Claim, in_words
from toolshift.measure.metrics import ALPHA, VOIDS_SAID, Measures
from toolshift.measure.power import POWER
from toolshift.measure.statistics import Interval

FLOOR, CEILING = 0.1, 0.95
"""A clean accuracy up to `FLOOR` is at floor; a shifted one from `CEILING` on is at ceiling."""
MAX_TASKS = 30
"""So few tasks can be looked at one by one: a loss is shown as a fact, not as an estimate."""
LONGEST_FAULT = 200
"""The most characters of an agent's error in a sentence."""


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


class Crashes(msgspec.Struct, frozen=True):
    """The episodes that an agent's own code ended.

    Attributes:
        said: why, most often: the exception, or what became of its program.
        example: an episode to open.
    """

    episodes: int
    said: str
    example: str


def weaknesses(everything: Measures, tiers: Sequence[Measures]) -> list[Weakness]:
    """The causes behind an agent's failures, the commonest first; empty for a sound agent."""
    failed = {cause: count for cause, count in everything.causes.items() if cause != UNCLEAR}
    total = sum(failed.values())
    ranked = []
    for cause, count in failed.items():
        most = max(tiers, key=lambda row: row.causes.get(cause, 0), default=everything)
        tier = most.label if most.causes.get(cause) else everything.label
        ranked.append(Weakness(cause, count, count / total, tier, most.examples.get(cause, "")))
    return ranked


def diagnose(
    clean: Measures,
    placebo: Measures | None,
    tiers: Sequence[Measures],
    shifts: Sequence[Measures],
    weak: Sequence[Weakness],
    broken: str = "",
) -> list[str]:
    """The sentences, the most important first; `broken` is what `broke_down` says, if it did."""
    sentences = [_clean(clean), *([broken] if broken else [])]
    if placebo is not None and placebo.significant:
        sentences.append(
            f"Even the placebo arm changes it by {drop_of(placebo)}: it is sensitive to order "
            "and phrasing."
        )
    if clean.clean_defined:
        sentences += _stages(tiers, shifts) + _worst_shift(shifts)
    elif tiers:
        sentences.append(_undefined(tiers))
    sentences += gaps(shifts)
    void = sum(row.void for row in (clean, *([placebo] if placebo else []), *tiers))
    sentences += _refusals(tiers) + _cause(weak, void)
    return sentences


def diagnose_claims(
    clean: Measures,
    tiers: Sequence[Measures],
    claims: Sequence[Claim],
    weak: Sequence[Weakness],
    broken: str = "",
) -> list[str]:
    """The sentences of a sequential run: what was decided, and what stayed open."""
    sentences = [_clean(clean), *([broken] if broken else []), *in_words(claims)]
    void = sum(row.void for row in (clean, *tiers))
    return sentences + _cause(weak, void)


def fault_in_line(said: str) -> str:
    """What an agent's code raised, in one line that is not too long."""
    reason = visible(" ".join(said.split()))
    return f"{reason[:LONGEST_FAULT]}…" if len(reason) > LONGEST_FAULT else reason


def broke_down(crashes: Crashes, episodes: int) -> str:
    """How often an agent's own code ended an episode, of so many, and why."""
    reason = fault_in_line(crashes.said)
    because = f": {reason}" if reason else ""
    return (
        f"Its own code broke down in {crashes.episodes} of {episodes} episodes{because} "
        f"({opened(crashes.example)})."
    )


def is_loss(row: Measures) -> bool:
    """Whether a row loses accuracy significantly: beyond chance and the placebo arm."""
    return row.significant and row.drop.estimate > 0


def untold(tiers: Sequence[Measures], shifts: Sequence[Measures]) -> Measures | None:
    """The greatest loss of points, where none is significant; else None."""
    if any(map(is_loss, (*tiers, *shifts))):
        return None
    for rows in (shifts, tiers):
        lost = [row for row in rows if row.drop.estimate > 0 and row.void < row.episodes]
        if lost:
            return max(lost, key=lambda row: row.drop.estimate)
    return None


def untold_loss(row: Measures, why: str) -> str:
    """A loss that is not significant: "Fails 2 of the 4 tasks that redirect touches (WHY): ..."."""
    failures, scored = sum(row.causes.values()), row.episodes - row.void
    unit = "task" if scored == row.accuracy.n else "episode"
    which = f"{failures} of the {scored} {unit}s"
    if failures == scored:
        which = f"all {scored} {unit}s" if scored > 1 else f"the one {unit}"
    before = round(100 * (1 - row.clean.estimate))
    trained = f", and {before}% of the same tasks clean" if before else ""
    touched = f"{words(row.label)} touches{f' ({why})' if why else ''}"
    doubted = doubt(row)
    return f"Fails {which} that {touched}{trained}{f': {doubted}' if doubted else ''}."


def doubt(row: Measures) -> str:
    """Why a row's loss is not significant: chance explains it, or the placebo arm does.

    Of few tasks a loss is a fact that chance does not explain away, so "" is said of it.
    """
    if isnan(row.p_value):
        return "not decided"
    if row.p_value >= ALPHA and row.clean.n <= MAX_TASKS:
        return ""
    if row.p_value >= ALPHA:
        return "too few tasks for a significant difference"
    return "not significant against the placebo arm"


def gaps(rows: Sequence[Measures]) -> list[str]:
    """Under what nothing was measured, or too little for a loss to be ruled out, in sentences."""
    dead = [row for row in rows if row.unmeasured]
    sentences = []
    if dead:
        of = Counter[str]()
        for row in dead:
            of.update(row.void_kinds)
        names = ", ".join(words(row.label) for row in dead)
        sentences.append(f"Not measured under {names}: no episode has a verdict ({kinds(of)}).")
    sentences += [
        f"Under {words(row.label)}, {row.void} of {row.episodes} episodes have no verdict "
        f"({kinds(row.void_kinds)})."
        for row in rows
        if row.void > VOIDS_SAID * row.episodes and not row.void_at_will and not row.unmeasured
    ]
    return sentences


def at_ceiling(tiers: Sequence[Measures], shifts: Sequence[Measures]) -> bool:
    """Whether the shifts seem too easy for an agent."""
    loss = untold(tiers, shifts)
    rows = [*tiers, *([loss] if loss else [])]
    return all(not row.void and row.accuracy.estimate >= CEILING for row in rows)


def smallest_loss(tiers: Sequence[Measures]) -> str:
    """The smallest drop that every tier would show, with power and level; "" without a drop.

    Under the exact test even a total loss is within chance where the tasks are very few.
    """
    limits = [row.detectable for row in tiers if row.defined]
    if not limits:
        return ""
    family = f" over {len(limits)} tiers" if len(limits) > 1 else ""
    terms = f"(power {POWER:.0%}, level {ALPHA:.0%}{family})"
    largest = inf if any(map(isnan, limits)) else max(limits)
    if largest > 1:
        return f"none: not even a total loss would be significant {terms}"
    return f"{100 * largest:.0f} points {terms}"


def bounds_of(row: Measures) -> str:
    """Accuracy with void and unclear episodes as failures and as passes, in words."""
    low, high = (f"{100 * bound:.0f}%" for bound in row.bounds)
    which = "unclear" if row.unclear and not row.void else "void"
    which = "void and unclear" if row.unclear and row.void else which
    return f"{low} with {which} episodes as failures, {high} as passes"


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
    """Void episodes by reason: "3 infrastructure, 1 simulator"."""
    return ", ".join(f"{count} {kind}" for kind, count in void.items())


def opened(episode: str) -> str:
    """The command that shows an episode; RUN is replaced by the run's folder when printed."""
    return command("trace", "RUN", episode, travels=True)


def words(name: str) -> str:
    """A cause or a shift as plain words."""
    return name.replace("_", " ")


def _clean(clean: Measures) -> str:
    if isnan(clean.accuracy.estimate):
        return f"No clean episode could be scored: all are void ({kinds(clean.void_kinds)})."
    rate = clean.stated.estimate
    beside = f" ({bounds_of(clean)})" if clean.void_matters else ""
    solves = f"Solves {percent(clean.stated)} of the clean tasks{beside}"
    if rate <= FLOOR:
        return f"{solves}: at floor, so a shift cannot lower it."
    if not clean.clean_defined:
        return f"{solves}: under half, so drops are not defined; read retention instead."
    return f"{solves}."


def _stages(tiers: Sequence[Measures], shifts: Sequence[Measures]) -> list[str]:
    apart = [row for row in tiers if is_loss(row)]
    rest = [row.label for row in tiers if not row.significant and not row.unmeasured]
    if not apart:
        if tiers and at_ceiling(tiers, shifts):
            return ["At ceiling in every tier: these shifts are too easy to find its limits."]
        if loss := untold(tiers, shifts):
            return [untold_loss(loss, _main_cause(loss))]
        if any(map(is_loss, shifts)):
            return []  # the sentence on the worst shift says it
        if all(row.unmeasured for row in tiers):
            return []  # the sentence on what was not measured says it
        return ["No tier differs significantly from clean or from the placebo arm."]
    worst = max(apart, key=lambda row: row.drop.estimate)
    sentences = [
        f"Weakest stage: {worst.label}, {drop_of(worst)} "
        f"({percent(worst.clean)} clean, {percent(worst.stated)} shifted"
        f"{f', {bounds_of(worst)}' if worst.void_matters else ''})."
    ]
    if rest:
        sentences.append(f"Not significant: {', '.join(rest)}.")
    return sentences


def _main_cause(row: Measures) -> str:
    cause = next(iter(row.causes), "")
    example = row.examples.get(cause, "")
    return f"{words(cause)}; {opened(example)}" if example else words(cause)


def _worst_shift(shifts: Sequence[Measures]) -> list[str]:
    apart = [row for row in shifts if is_loss(row)]
    if not apart:
        return []
    worst = max(apart, key=lambda row: row.drop.estimate)
    sentence = f"Largest loss: {words(worst.label)}, {drop_of(worst)}"
    if worst.causes:
        cause, count = next(iter(worst.causes.items()))
        failed = sum(worst.causes.values())
        sentence += f", by {words(cause)} in {count} of its {failed} failures"
        if worst.examples.get(cause):
            sentence += f" ({opened(worst.examples[cause])})"
    return [sentence + "."]


def _undefined(tiers: Sequence[Measures]) -> str:
    kept = [f"{row.label} {percent(row.retention)}" for row in tiers if row.retention.n]
    if not kept:
        return "It passes no clean task, so there is nothing to retain under shift."
    return f"Of the tasks it passes clean, it keeps: {'; '.join(kept)}."


def _refusals(tiers: Sequence[Measures]) -> list[str]:
    sentences = []
    for row in tiers:
        if not row.unsolvable:
            continue
        scenes = "scene" if row.unsolvable == 1 else "scenes"
        text = (
            f"Refuses {percent(row.refusal_rate)} of {row.unsolvable} unsolvable {scenes} in "
            f"{row.label}"
        )
        if not isnan(row.right_reason):
            text += f" ({row.right_reason:.0%} of these for the right reason)"
        if row.wrong_refusal.n:
            text += f", and {percent(row.wrong_refusal)} of the similar solvable ones"
        sentences.append(text + ".")
    return sentences


def _cause(weak: Sequence[Weakness], void: int) -> list[str]:
    if not weak and void:
        return [f"No failure was scored, but {void} episodes are void and may hide some."]
    if not weak:
        return ["No failure in any arm."]
    first = weak[0]
    sentence = (
        f"Most frequent cause of failure: {words(first.cause)}, {first.failures} "
        f"({first.share:.0%} of all failures), mostly in {first.tier}"
    )
    return [f"{sentence}: {opened(first.example)}" if first.example else f"{sentence}."]
