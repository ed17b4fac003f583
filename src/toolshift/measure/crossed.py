"""Means over training seeds and tasks at once, both as random effects.

A study that trains several seeds and measures each on the same tasks speaks of other seeds and of
other tasks only where its interval holds both. ``benchmarks/crossed_coverage.py`` simulates how
often these intervals hold, and the power that a design has.
"""

from __future__ import annotations

from math import inf, nan, sqrt

import msgspec
import numpy as np
import scipy  # type: ignore[import-untyped, unused-ignore]  # parts load at their first use
from numpy.typing import ArrayLike, NDArray

from toolshift.measure.statistics import Interval, drop_of_means, drop_p_of_means

Floats = NDArray[np.float64]


class Crossed(msgspec.Struct, frozen=True):
    """A mean over seeds and tasks.

    Attributes:
        interval: that holds for other seeds and other tasks.
        p: two-sided, of a true mean of 0.
        seeds: how many.
        tasks: how many.
        seed_share: the share of the variance of the mean that lies in the seeds; NaN where there
            is none.
    """

    interval: Interval
    p: float
    seeds: int
    tasks: int
    seed_share: float = nan


def crossed_mean(values: ArrayLike, confidence: float = 0.95, bound: float = 1.0) -> Crossed:
    """The mean of a table of seeds by tasks, for other seeds and other tasks.

    The variance of the mean is (MS_seed + MS_task - MS_rest) / (S T), by the mean squares of a
    two-way layout without replication, and never less than either of the first two alone; its
    degrees of freedom are Satterthwaite's (1946), and no more than of the greater part. Where the
    interval over the tasks alone, which knows of bounds and of rare breakage, is wider, it is
    taken: as where all seeds agree.

    Args:
        values: differences of scores, shape (seeds, tasks).
        confidence: two-sided.
        bound: how far from 0 a value can be: 1 for a difference of scores, 2 for one of drops.

    Returns:
        The mean with its limits and its p value; with fewer than two seeds, that over tasks alone.

    Raises:
        ValueError: where there is no table, or a value is undefined or out of range.
    """
    table = np.asarray(values, np.float64) / bound
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"a table of seeds by tasks is wanted, not one of shape {table.shape}")
    if not (np.abs(table) <= 1).all():
        raise ValueError(f"differences of scores lie between -{bound:g} and {bound:g}")
    seeds, tasks = table.shape
    by_task = table.mean(axis=0)
    zero = np.zeros(tasks)
    alone = drop_of_means(by_task, zero, confidence)
    p_alone = drop_p_of_means(by_task, zero)
    variance, freedom, share = _variance(table) if min(seeds, tasks) > 1 else (0.0, inf, nan)
    if variance == 0:
        return Crossed(_scaled(alone, bound), p_alone, seeds, tasks)
    centre = float(table.mean())
    error = sqrt(variance)
    half = float(scipy.special.stdtrit(freedom, 0.5 + confidence / 2)) * error
    p = float(2 * scipy.special.stdtr(freedom, -abs(centre) / error))
    low, high = max(-1.0, min(centre - half, alone.low)), min(1.0, max(centre + half, alone.high))
    interval = Interval(centre, low, high, "crossed t", min(seeds, tasks))
    return Crossed(_scaled(interval, bound), max(p, p_alone), seeds, tasks, share)


def crossed_difference(
    first: ArrayLike, second: ArrayLike, confidence: float = 0.95, bound: float = 1.0
) -> Crossed:
    """The mean of a second group of seeds less that of a first, on the same tasks.

    Seeds of the two groups are not paired: they share nothing but their number. Tasks are. The
    variance is that of the seeds of each group, and that of the differences by task, less the
    noise that is in both, and never less than either part alone. Degrees of freedom and the
    interval over the tasks alone are as in `crossed_mean`.

    Args:
        first: scores, shape (seeds, tasks).
        second: as `first`, with seeds of its own and the same tasks in the same order.
        confidence: two-sided.
        bound: how far apart two scores can be: 1 for shares, 2 for drops.

    Returns:
        The difference with its limits and its p value. `seeds` is of the smaller group. Where a
        group has fewer than two seeds the seeds are not in it, and it speaks of the tasks alone.

    Raises:
        ValueError: where there is no table, the tasks differ in number, or a value is undefined or
            out of range.
    """
    groups = [np.asarray(each, np.float64) / bound for each in (first, second)]
    for table in groups:
        if table.ndim != 2 or 0 in table.shape:
            raise ValueError(f"a table of seeds by tasks is wanted, not one of shape {table.shape}")
    one, other = groups
    if one.shape[1] != other.shape[1]:
        raise ValueError(f"{one.shape[1]} tasks and {other.shape[1]} cannot be compared")
    by_task = other.mean(axis=0) - one.mean(axis=0)
    if not (np.abs(by_task) <= 1).all():
        raise ValueError(f"differences of scores lie between -{bound:g} and {bound:g}")
    seeds, tasks = min(len(one), len(other)), by_task.size
    zero = np.zeros(tasks)
    alone, p_alone = drop_of_means(by_task, zero, confidence), drop_p_of_means(by_task, zero)
    if min(seeds, tasks) < 2:
        return Crossed(_scaled(alone, bound), p_alone, seeds, tasks)
    parts = [_of_group(each) for each in groups]
    of_seeds = sum(each[0] for each in parts)
    noise = sum(each[1] for each in parts)
    of_tasks = float(by_task.var(ddof=1)) / tasks
    variance = max(of_seeds + of_tasks - noise, of_seeds, of_tasks)
    if variance < 1e-18:
        return Crossed(_scaled(alone, bound), p_alone, seeds, tasks)
    # Satterthwaite, of the seeds alone (Welch) and of all parts together.
    spread = sum(mine**2 / (len(t) - 1) for t, (mine, _) in zip(groups, parts, strict=True))
    welch = of_seeds**2 / spread if spread else inf
    free = tasks - 1
    spread += of_tasks**2 / free
    spread += sum(
        rest**2 / ((len(t) - 1) * free) for t, (_, rest) in zip(groups, parts, strict=True)
    )
    least = welch if of_seeds >= of_tasks else free
    freedom = min(max(variance**2 / spread, 1.0), max(least, min(welch, free)))
    centre, error = float(by_task.mean()), sqrt(variance)
    half = float(scipy.special.stdtrit(freedom, 0.5 + confidence / 2)) * error
    p = float(2 * scipy.special.stdtr(freedom, -abs(centre) / error))
    low, high = max(-1.0, min(centre - half, alone.low)), min(1.0, max(centre + half, alone.high))
    share = of_seeds / (of_seeds + of_tasks)
    interval = Interval(centre, low, high, "crossed t", min(seeds, tasks))
    return Crossed(_scaled(interval, bound), max(p, p_alone), seeds, tasks, share)


def _of_group(table: Floats) -> tuple[float, float]:
    """The variance of a group's mean by its seeds, and the part of it that is noise."""
    seeds, tasks = table.shape
    rows = table.mean(axis=1)
    rest = table - rows[:, None] - table.mean(axis=0)[None] + table.mean()
    noise = float((rest**2).sum()) / ((seeds - 1) * (tasks - 1))
    return float(rows.var(ddof=1)) / seeds, noise / (seeds * tasks)


def _scaled(one: Interval, bound: float) -> Interval:
    return Interval(one.estimate * bound, one.low * bound, one.high * bound, one.method, one.n)


def _variance(table: Floats) -> tuple[float, float, float]:
    """The variance of the mean, its degrees of freedom, and the share of the seeds in it."""
    seeds, tasks = table.shape
    centre = table.mean()
    rows, columns = table.mean(axis=1), table.mean(axis=0)
    of_seeds = tasks * float(((rows - centre) ** 2).sum()) / (seeds - 1)
    of_tasks = seeds * float(((columns - centre) ** 2).sum()) / (tasks - 1)
    rest = table - rows[:, None] - columns[None] + centre
    free = (seeds - 1) * (tasks - 1)
    noise = float((rest**2).sum()) / free
    both = max(of_seeds + of_tasks - noise, of_seeds, of_tasks)
    if both < 1e-18:
        return 0.0, inf, nan
    spread = of_seeds**2 / (seeds - 1) + of_tasks**2 / (tasks - 1) + noise**2 / free
    least = seeds - 1 if of_seeds >= of_tasks else tasks - 1
    freedom = min(max(both**2 / spread, 1.0), max(least, seeds - 1))
    return both / (seeds * tasks), freedom, of_seeds / (of_seeds + of_tasks)
