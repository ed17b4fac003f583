"""Statistics of the gate: is a build worse than the baseline by more than a margin?

A *change* is candidate minus baseline, so that a loss is negative. The limits are the exact ones
(`measure.exact`) everywhere, at 90%, so that either error at the margin is 5% at most. The t
interval is not used here: where a build only loses, its 95% limits still pass 6.7% of builds that
are worse by the margin (studies/gate).
"""

from __future__ import annotations

from math import sqrt
from typing import Literal

import numpy as np
import scipy  # type: ignore[import-untyped, unused-ignore]  # parts load at their first use

from toolshift.measure.exact import Floats, exact_limits, exact_p_value
from toolshift.measure.statistics import Interval

Verdict = Literal["pass", "fail", "inconclusive", "error"]
"""`error`: the runs did not measure it; neither the agent nor the number of tasks is at fault."""
CONFIDENCE = 0.9
CHANCE = 0.8
MAX_TASKS = 20_000


def change_interval(changes: Floats, confidence: float = CONFIDENCE) -> Interval:
    """The mean change with its exact limits; NaN where there is no task."""
    if not changes.size:
        return Interval(float("nan"), float("nan"), float("nan"), "exact", 0)
    low, high = exact_limits(changes, (-1.0, 1.0), confidence)
    return Interval(float(changes.mean()), low, high, "exact", changes.size)


def decide(changes: Floats, margin: float, confidence: float = CONFIDENCE) -> Verdict:
    """The verdict that `change_interval` stands for, ten times sooner.

    Pass where the lower limit is above -margin, fail where the upper limit is below it.
    """
    tail = 0.5 - confidence / 2
    if not changes.size:
        return "inconclusive"
    if changes.mean() > -margin:  # the upper limit is not below the mean, so no fail
        return "pass" if exact_p_value(changes, -1.0, -margin) < tail else "inconclusive"
    return "fail" if exact_p_value(-changes, -1.0, margin) < tail else "inconclusive"


def more_tasks(changes: Floats, margin: float, confidence: float = CONFIDENCE) -> int | None:
    """About how many tasks more would decide, with a chance of `CHANCE`; an estimate.

    Assumes that further tasks change like those seen. None without any task, and where the
    change is so near to the margin that `MAX_TASKS` would not do.
    """
    seen = changes.size
    if not seen:
        return None
    distance = float(changes.mean()) + margin
    least, most = seen + 1, MAX_TASKS
    if not _would_decide(changes, abs(distance), most, confidence):
        return None
    while least < most:
        middle = (least + most) // 2
        if _would_decide(changes, abs(distance), middle, confidence):
            most = middle
        else:
            least = middle + 1
    return least - seen


def _would_decide(changes: Floats, distance: float, tasks: int, confidence: float) -> bool:
    """Whether so many tasks of this spread would show a change at a distance from the margin.

    Normal approximation to the Dirichlet mean of the tasks and the one extreme value added.
    """
    # One task more that changed is supposed, or a handful of equal tasks would promise too much.
    variance = float(np.square(changes - changes.mean()).sum() + 1) / changes.size
    wanted = scipy.special.ndtri(0.5 + confidence / 2) + scipy.special.ndtri(CHANCE)
    pull = 1 / (tasks + 1)  # of the added value; it is at most 1 away from the middle
    spread = sqrt((variance + pull) / (tasks + 1))
    return bool(distance - pull > wanted * spread)
