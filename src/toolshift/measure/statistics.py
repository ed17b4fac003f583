"""Estimators and intervals for paired, clustered scores.

Every function here treats the *task* as the sampling unit: trials of one task
share its difficulty and are averaged before anything is said about spread.
Scores lie in [0, 1] (usually 0 or 1). What is undefined is NaN, never a lucky
number. A drop is clean minus shifted, so a positive drop is a loss.

``benchmarks/interval_coverage.py`` simulates the coverage of ``paired_drop``.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isnan, nan, sqrt

import msgspec
import numpy as np
import scipy  # type: ignore[import-untyped, unused-ignore]  # parts load at their first use
from numpy.typing import ArrayLike, NDArray

from toolshift.measure.exact import exact_limits, exact_p_value

Floats = NDArray[np.float64]
Scores = Mapping[str, Sequence[float]]

MAX_LEVERAGE = 0.6
"""Standard errors by which one task more may move the mean before the t interval is not used."""
SET_ASIDE = 5
"""Tasks furthest from the median that the standard error of the leverage leaves out."""


class Interval(msgspec.Struct, frozen=True):
    """A point estimate with confidence limits; all NaN when there are no data.

    Attributes:
        method: the estimator of the limits, e.g. ``"t"`` or ``"exact"``.
        n: clusters behind the estimate (tasks, or seeds for ``seed_contrast``).
    """

    estimate: float
    low: float
    high: float
    method: str
    n: int


def wilson(successes: float, trials: int, confidence: float = 0.95) -> Interval:
    """Wilson score interval for a proportion of independent trials.

    Source: Wilson (1927), without continuity correction.

    Args:
        successes: from 0 to `trials`; a sum of shares may be given.
        trials: how many.
        confidence: two-sided.

    Returns:
        The proportion with its limits; NaN without a trial.

    Raises:
        ValueError: for successes that are more than the trials, or fewer than none.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"successes must lie in 0..{trials}, got {successes}")
    if trials == 0:
        return Interval(nan, nan, nan, "wilson", 0)
    z = float(scipy.special.ndtri(0.5 + confidence / 2))
    rate = successes / trials
    centre = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * sqrt(rate * (1 - rate) / trials + (z / (2 * trials)) ** 2) / (1 + z * z / trials)
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Interval(rate, low, high, "wilson", trials)


def task_means(per_task: Iterable[Sequence[float]]) -> Floats:
    """The mean score of each task, of shape (tasks,); tasks without trials are left out."""
    return np.array([_score_mean(trials) for trials in per_task if len(trials)], np.float64)


def accuracy(per_task: Iterable[Sequence[float]]) -> float:
    """Accuracy: the mean over tasks of the share of its episodes that pass; NaN without any.

    So every task weighs the same, whatever number of scenes and trials of it were scored, as in
    the intervals and in paired drops. It is the estimate of ``cluster_rate``.
    """
    return _mean(task_means(per_task))


def cluster_rate(per_task: Sequence[Sequence[float]], confidence: float = 0.95) -> Interval:
    """``accuracy`` with the task as cluster.

    Wilson when every task has one binary trial; otherwise a t interval on
    per-task means (Miller 2024, arXiv:2411.00640), replaced where the leverage is high
    by the exact bounds described at ``paired_drop``, here on [0, 1].
    """
    kept = [trials for trials in per_task if len(trials)]
    single = all(len(trials) == 1 and trials[0] in (0, 1) for trials in kept)
    return rate_of_means(task_means(kept), single, confidence)


def rate_of_means(means: Floats, single: bool, confidence: float = 0.95) -> Interval:
    """``cluster_rate`` on the means of tasks.

    Args:
        means: mean score of each task, shape (tasks,).
        single: every task has one trial, which passed or failed.
        confidence: two-sided.

    Returns:
        As `cluster_rate`.
    """
    if single:
        return wilson(float(means.sum()), len(means), confidence)
    return _mean_interval(means, (0.0, 1.0), confidence)


def retention(clean: Scores, shifted: Scores, confidence: float = 0.95) -> Interval:
    """Shifted score on the tasks the agent solves when clean.

    A task counts as solved if more than half of its clean trials pass. Run-to-run
    variation lowers the figure even without a shift: read it beside ``flip_rate_of``.

    Args:
        clean: scores of each task's trials, by task.
        shifted: likewise.
        confidence: two-sided.

    Returns:
        A share from 0 to 1; NaN where no task is solved.
    """
    solved = [key for key in _paired_keys(clean, shifted) if _score_mean(clean[key]) > 0.5]
    return cluster_rate([shifted[key] for key in solved], confidence)


def pass_hat_of(counts: Sequence[tuple[int, int]]) -> list[float]:
    """Chance that k fresh trials of a task all pass, for k = 1, 2, ...: mean of C(c, k) / C(n, k).

    Up to the fewest trials of a task: to drop a task would change the population. Source:
    tau-bench, arXiv:2406.12045. Binomials follow from those before, so that the time grows with
    the number of trials of all tasks together.

    Args:
        counts: of each task how many trials passed, and of how many.

    Returns:
        The chances; none without tasks.
    """
    pairs = {pair: place for place, pair in enumerate(dict.fromkeys(counts))}
    places = np.array([pairs[pair] for pair in counts], dtype=np.intp)
    ways = [(1, 1)] * len(pairs)
    estimates = []
    for k in range(1, min((trials for _, trials in counts), default=0) + 1):
        ways = [
            (chosen * (passed - k + 1) // k, all_ * (trials - k + 1) // k)
            for (chosen, all_), (passed, trials) in zip(ways, pairs, strict=True)
        ]
        estimates.append(float(np.mean(np.array([part / whole for part, whole in ways])[places])))
    return estimates


def flip_rate_of(counts: Sequence[tuple[int, int]]) -> float:
    """Chance that two trials of one task disagree: mean of 2c(n-c) / n(n-1).

    Unbiased for 2p(1-p) in each task.

    Args:
        counts: of each task how many trials passed, and of how many.

    Returns:
        The mean over tasks with two trials or more; NaN if there is none.
    """
    chances = [2 * c * (n - c) / (n * (n - 1)) for c, n in counts if n > 1]
    return float(np.mean(chances)) if chances else nan


def paired_drop(clean: Scores, shifted: Scores, confidence: float = 0.95) -> Interval:
    """Mean clean-minus-shifted score over tasks present in both arms.

    Method ``"t"``: t interval on per-task mean differences with C-1 degrees of
    freedom (Miller 2024, arXiv:2411.00640), cut to [-1, 1].

    Method ``"exact"``: the bounds for the mean of a bounded variable
    of Gaffke (2005) and Learned-Miller and Thomas (2019, arXiv:1905.06208). The
    upper limit is the quantile of a Dirichlet(1, ..., 1) weighted mean of the
    differences and one added +1; the lower limit adds a -1. No distribution is
    assumed and any number of trials will do. One trial a task and one direction
    only gives Clopper-Pearson, and a test of zero drop is then exactly McNemar's
    (cf. Fay and Lumbard 2021, Stat. Med. 40:1147). Its general coverage is a
    conjecture that no simulation, ours included, has contradicted.

    The exact limits are taken where the ``leverage`` is above ``MAX_LEVERAGE``.

    Args:
        clean: scores of each task's trials, by task.
        shifted: likewise; tasks of one arm only are left out.
        confidence: two-sided.

    Returns:
        The mean difference from -1 to 1; NaN without a common task.
    """
    _, first, second = means_of_pairs(clean, shifted)
    return drop_of_means(first, second, confidence)


def drop_of_means(clean: ArrayLike, shifted: ArrayLike, confidence: float = 0.95) -> Interval:
    """``paired_drop`` on aligned arrays of per-task means, both of shape (tasks,).

    Args:
        clean: mean score of each task, shape (tasks,).
        shifted: of the same tasks in the same order.
        confidence: two-sided.

    Returns:
        As `paired_drop`.
    """
    first, second = np.asarray(clean, np.float64), np.asarray(shifted, np.float64)
    return _mean_interval(first - second, (-1.0, 1.0), confidence)


def leverage(values: ArrayLike, bounds: tuple[float, float]) -> float:
    """By how many standard errors one more task, at the end of the range, would move the mean.

    A t interval knows of the spread that was seen. Where a few tasks in a hundred break
    altogether, and many trials make all others nearly equal, a study sees none of the broken ones,
    or one or two, and is too sure. With a leverage of ``MAX_LEVERAGE`` the t interval still covers
    93.8%, however rare the breakage (a Poisson number of broken tasks beside normal noise). The
    standard error is that of the tasks without the ``SET_ASIDE`` furthest from the median: the
    broken tasks that were seen do not count as noise. Infinite where the others are all equal, and
    without two tasks.

    Args:
        values: one a task, shape (tasks,).
        bounds: the least and the greatest that a value can be.

    Returns:
        A number of standard errors, 0 or more.
    """
    seen = np.asarray(values, np.float64)
    if seen.size - SET_ASIDE < 2:
        return inf
    nearest = np.argsort(np.abs(seen - _median(seen)), kind="stable")[: seen.size - SET_ASIDE]
    spread, centre = float(seen[nearest].std(ddof=1)), seen.mean()
    furthest = max(bounds[1] - centre, centre - bounds[0])
    if spread < 1e-9:  # equal but for arithmetic, as 0.1 + 0.2 and 0.3 are
        return inf
    return float(furthest / (seen.size + 1) / (spread / sqrt(seen.size)))


def drop_p_value(clean: Scores, shifted: Scores) -> float:
    """Two-sided p value of no drop, by the test that ``paired_drop`` inverts.

    NaN without pairs. Where the leverage is high, and with one trial a task, it is the
    exact McNemar test; else it is the one-sample t test on differences.
    """
    _, first, second = means_of_pairs(clean, shifted)
    return drop_p_of_means(first, second)


def drop_p_of_means(clean: ArrayLike, shifted: ArrayLike, null: float = 0.0) -> float:
    """``drop_p_value`` on aligned per-task means, for a true drop of ``null``.

    Args:
        clean: mean score of each task, shape (tasks,).
        shifted: of the same tasks in the same order.
        null: the drop that is tested, from -1 to 1.

    Returns:
        Two-sided, from 0 to 1.
    """
    first, second = np.asarray(clean, np.float64), np.asarray(shifted, np.float64)
    return mean_p_value(first - second, (-1.0, 1.0), null)


def mean_p_value(values: Floats, bounds: tuple[float, float], null: float = 0.0) -> float:
    """Two-sided p value of a true mean of ``null``, for values within ``bounds``; NaN without any.

    The t test, or the exact one where the leverage is above ``MAX_LEVERAGE``.

    Args:
        values: one a task, shape (tasks,).
        bounds: the least and the greatest that a value can be.
        null: the mean that is tested.

    Returns:
        From 0 to 1.
    """
    if values.size == 0:
        return nan
    if leverage(values, bounds) <= MAX_LEVERAGE:
        distance = abs(_mean(values) - null) / float(values.std(ddof=1)) * sqrt(values.size)
        return float(2 * scipy.special.stdtr(values.size - 1, -distance))
    below = exact_p_value(values, bounds[0], null)
    above = exact_p_value(-values, -bounds[1], -null)
    return min(1.0, 2 * min(below, above))


def means_of_pairs(clean: Scores, shifted: Scores) -> tuple[list[str], Floats, Floats]:
    """The tasks of both arms in the order of their names, and their mean scores in each."""
    keys = _paired_keys(clean, shifted)
    return keys, task_means(clean[key] for key in keys), task_means(shifted[key] for key in keys)


def drop_is_defined(clean_accuracy: float) -> bool:
    """Whether a drop may be printed: clean accuracy of at least one half.

    Below it there is too little to lose; print shifted accuracy and ``retention``.
    """
    return clean_accuracy >= 0.5


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm (1979) step-down adjusted p values, in input order.

    NaN means "not testable": it stays NaN and does not count in the family.
    """
    adjusted = np.array(p_values, np.float64)
    tested = np.flatnonzero(~np.isnan(adjusted))
    order = tested[np.argsort(adjusted[tested], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * adjusted[order]))
    return [float(value) for value in adjusted]


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Benjamini-Hochberg (1995) adjusted p values, in input order; NaN as in ``holm``."""
    adjusted = np.array(p_values, np.float64)
    tested = np.flatnonzero(~np.isnan(adjusted))
    order = tested[np.argsort(adjusted[tested], kind="stable")][::-1]  # the largest first
    factors = order.size / np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(factors * adjusted[order]))
    return [float(value) for value in adjusted]


def seed_contrast(per_seed_values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Mean training contrast with the seed as cluster: t with S-1 degrees of freedom.

    Limits are NaN below two seeds, or when all seeds agree exactly: a spread of
    zero then says that the seeds were not independent, not that the effect is sure.
    """
    values = np.array(per_seed_values, np.float64)
    if values.size < 2 or np.ptp(values) == 0:
        return Interval(_mean(values), nan, nan, "t-seeds", values.size)
    return msgspec.structs.replace(_t_interval(values, (-inf, inf), confidence), method="t-seeds")


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else nan


def _median(values: Floats) -> float:
    """What `numpy.median` gives, in a third of its time; NaN where a value is."""
    ordered, middle = np.sort(values), values.size // 2
    if isnan(ordered[-1]):
        return nan
    return float(
        ordered[middle] if values.size % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    )


def _score_mean(trials: Sequence[float]) -> float:
    total = float(sum(trials))
    if isnan(total) or min(trials) < 0 or max(trials) > 1:
        raise ValueError(f"scores must lie in [0, 1], got {list(trials)}")
    return total / len(trials)


def _paired_keys(clean: Scores, shifted: Scores) -> list[str]:
    return sorted(key for key in clean.keys() & shifted.keys() if clean[key] and shifted[key])


def _mean_interval(values: Floats, bounds: tuple[float, float], confidence: float) -> Interval:
    if leverage(values, bounds) > MAX_LEVERAGE:
        return _exact_interval(values, bounds, confidence)
    return _t_interval(values, bounds, confidence)


def _t_interval(values: Floats, limits: tuple[float, float], confidence: float) -> Interval:
    centre, spread = float(values.mean()), float(values.std(ddof=1))
    half = float(scipy.special.stdtrit(values.size - 1, 0.5 + confidence / 2)) * spread
    half /= sqrt(values.size)
    low, high = max(limits[0], centre - half), min(limits[1], centre + half)
    return Interval(centre, low, high, "t", values.size)


def _exact_interval(values: Floats, limits: tuple[float, float], confidence: float) -> Interval:
    if values.size == 0:
        return Interval(nan, nan, nan, "exact", 0)
    low, high = exact_limits(values, limits, confidence)
    return Interval(float(values.mean()), low, high, "exact", values.size)
