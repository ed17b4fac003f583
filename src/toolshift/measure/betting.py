"""Limits that hold at every time: a run may stop when it likes, and its errors are as stated.

A *change* is after minus before, the mean of one task, so it lies in [-1, 1]; a loss is below 0.
Capital is staked on the mean change being above `m`: at each task a fraction `b` of it at the odds
``(x + 1) / (m + 1)``. Where the mean is `m` or less the odds are fair or worse, so the capital
grows to ``1 / alpha`` with a chance of `alpha` at most, at any time (Ville). For the other side all
signs are turned. This is the hedged capital of Waudby-Smith and Ramdas, "Estimating means of
bounded random variables by betting", JRSS B 86 (2024): section 4.4 for the two sides, each with
half of the errors; appendix B for fixed fractions that are played side by side (`BETS`), section 5
for tasks drawn without replacement from a list. Fixed fractions make the capital the same in
whatever order tasks came, and monotone in each change: a change that is known only within limits
can be set to its worst.

Without replacement the claim is about the list: what all its tasks would have shown in this run. It
holds where asking again brings the same; otherwise the tasks are taken for draws from their like,
which is valid for a list too, and wider.
"""

from __future__ import annotations

from math import inf, log, nan
from typing import NamedTuple

import numpy as np

from toolshift.measure.exact import Floats, exact_limits, exact_p_value
from toolshift.measure.statistics import Interval
from toolshift.runs.sequential import Verdict

BETS: Floats = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
_LOG_SHARES: Floats = np.log([0.06, *[0.06] * 9, 0.40])
"""Of the capital that each fraction begins with; the whole of it, which pays most where nothing
or everything is lost, has 40%."""
_GIVE_UP = 0.2
"""Two-sided: how favourable the rest may be, from what was seen, before a claim is given up."""


def evidence(changes: Floats, mean: float, population: int | None = None) -> float:
    """The log of the capital that bets on a mean change above `mean`.

    Args:
        changes: one a task, in [-1, 1], shape (tasks,), in the order in which tasks are drawn.
        mean: the largest mean of the hypothesis.
        population: how many tasks the list has that they are drawn from; None for no list.

    Returns:
        At most log(1 / alpha) with a chance of 1 - alpha, however often it is looked at; infinity
        where the hypothesis is ruled out.
    """
    if not changes.size:
        return 0.0
    base: float | Floats = mean + 1.0
    if population is not None:
        before = np.concatenate(([0.0], np.cumsum(changes + 1.0)[:-1]))
        left = population - np.arange(changes.size)
        base = (population * (mean + 1.0) - before) / left
        if np.any(base < -1e-12) or population * (mean + 1.0) < np.sum(changes + 1.0) - 1e-9:
            return inf
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.where(changes + 1.0 <= 1e-12, 0.0, (changes + 1.0) / base)
        if population is not None:  # nothing but -1 is left, and -1 came
            odds = np.where((changes + 1.0 <= 1e-12) & (np.asarray(base) <= 1e-12), 1.0, odds)
        logs = np.log1p(np.outer(odds - 1.0, BETS)).sum(axis=0) + _LOG_SHARES
    top = float(logs.max())
    return top if top == inf else top + log(float(np.exp(logs - top).sum()))


class Rule(NamedTuple):
    """What decides a claim.

    Attributes:
        breaks: it breaks where the upper limit of the mean change is below this.
        holds: it holds where the lower limit is above this.
        confidence: two-sided, of the limits at every time; each verdict errs with half the rest.
        last: two-sided, of the exact limits where all planned tasks were asked, in their place;
            None for none. The errors of both add up.
    """

    breaks: float
    holds: float
    confidence: float
    last: float | None = None


def limits(
    lows: Floats,
    highs: Floats,
    likely: Floats,
    rule: Rule,
    planned: int,
    listed: bool = False,
) -> Interval:
    """The mean change, with the limits that decide.

    Args:
        lows: the least that each change can be, shape (tasks,); where it is known, the change.
        highs: the greatest, likewise.
        likely: what is taken for the estimate, likewise.
        rule: of the claim.
        planned: how many tasks there are.
        listed: these are the population, drawn without replacement.

    Returns:
        The estimate with its limits, within [-1, 1]; NaN without a task.
    """
    if not lows.size:
        return Interval(nan, nan, nan, "betting", 0)
    middle, low, high = float(likely.mean()), float(lows.mean()), float(highs.mean())
    method = "list"
    if lows.size < planned or not listed:
        if lows.size == planned and rule.last is not None:
            method = "exact"
            low = exact_limits(lows, (-1.0, 1.0), rule.last)[0]
            high = exact_limits(highs, (-1.0, 1.0), rule.last)[1]
        else:
            method, population = "betting", planned if listed else None
            low = _least(lows, rule.confidence, population)
            high = -_least(-highs, rule.confidence, population)
    return Interval(middle, min(low, middle), max(high, middle), method, lows.size)


def _least(changes: Floats, confidence: float, population: int | None, halvings: int = 40) -> float:
    """The least mean that is not ruled out, by halving."""
    needed = _needed(confidence)
    least, most = -1.0, 1.0
    for _ in range(halvings):
        middle = (least + most) / 2
        if evidence(changes, middle, population) >= needed:
            least = middle
        else:
            most = middle
    return least


def _needed(confidence: float) -> float:
    """The evidence that rules a mean out on one side."""
    return -log(0.5 - confidence / 2)


def verdict(lows: Floats, highs: Floats, rule: Rule, planned: int, listed: bool = False) -> Verdict:
    """What the limits say, without the limits themselves.

    Args:
        lows: as of `limits`, as all that follows.
        highs: likewise.
        rule: of the claim.
        planned: how many tasks there are.
        listed: these are the population.

    Returns:
        "breaks" before "holds", where both are so.
    """
    if not lows.size:
        return "open"
    low, high = float(lows.mean()), float(highs.mean())
    whole, population = lows.size == planned, planned if listed else None
    if high < rule.breaks and _shown(-highs, -rule.breaks, rule, whole, population):
        return "breaks"
    if low > rule.holds and _shown(lows, rule.holds, rule, whole, population):
        return "holds"
    return "open"


def _shown(changes: Floats, mean: float, rule: Rule, whole: bool, population: int | None) -> bool:
    """Whether a mean change above `mean` is shown, where their own mean is."""
    if whole and population is not None:
        return True
    if whole and rule.last is not None:
        return exact_p_value(changes, -1.0, mean) < 0.5 - rule.last / 2
    return evidence(changes, mean, population) >= _needed(rule.confidence)


def tasks_to_go(changes: Floats, rule: Rule, planned: int, listed: bool = False) -> int | None:
    """About how many more tasks decide, if the rest is as favourable as what was seen allows.

    To break, the rest loses as much as the lower limit of `_GIVE_UP`; to hold, it does as well as
    the mean so far, or changes nothing. Giving up costs verdicts, and makes none wrong.

    Args:
        changes: of the tasks so far, shape (tasks,).
        rule: of the claim.
        planned: how many tasks there are, these among them.
        listed: these are the population.

    Returns:
        None where not even all that are left would do.
    """
    worst, best, left = -1.0, 0.0, planned - changes.size
    if changes.size:
        worst = _least(changes, 1 - _GIVE_UP, planned if listed else None, halvings=10)
        best = max(float(changes.mean()), 0.0)

    def decides(more: int) -> bool:
        for mean, wanted in ((worst, "breaks"), (best, "holds")):
            rest = np.concatenate((changes, _spread(mean, more)))
            if verdict(rest, rest, rule, planned, listed) == wanted:
                return True
        return False

    if not left or not decides(left):
        return None
    least, most = 1, left
    while least < most:
        middle = (least + most) // 2
        least, most = (least, middle) if decides(middle) else (middle + 1, most)
    return least


def _spread(mean: float, count: int) -> Floats:
    """So many changes of 0 and one extreme, with this mean, one task between them."""
    whole = int(abs(mean) * count)
    rest = np.zeros(count)
    rest[:whole] = np.sign(mean)
    if whole < count:
        rest[whole] = mean * count - np.sign(mean) * whole
    return rest
