"""Estimators and intervals for paired, clustered scores.

Every function here treats the *task* as the sampling unit: trials of one task
share its difficulty and are averaged before anything is said about spread.
Scores lie in [0, 1] (usually 0 or 1). What is undefined is NaN, never a lucky
number. A drop is clean minus shifted, so a positive drop is a loss.

``benchmarks/interval_coverage.py`` simulates the coverage of ``paired_drop``.
"""

from collections.abc import Mapping, Sequence
from math import comb, inf, isnan, nan, sqrt
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats  # type: ignore[import-untyped, unused-ignore]

from toolshift.measure.exact import exact_limits, exact_p_value

Floats = NDArray[np.float64]
Scores = Mapping[str, Sequence[float]]

# The boundary rule; the values were chosen by simulation (studies/statistics).
MINORITY_TASKS = 6
EDGE_TASKS = 1.0
EDGE_RATE = 0.05


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


class Discordance(msgspec.Struct, frozen=True):
    """Exact McNemar test: tasks lost and gained under the shift, two-sided p."""

    lost: int
    gained: int
    p_value: float


def wilson(successes: float, trials: int, confidence: float = 0.95) -> Interval:
    """Wilson score interval for a proportion of independent trials.

    Source: Wilson (1927), without continuity correction.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"successes must lie in 0..{trials}, got {successes}")
    if trials == 0:
        return Interval(nan, nan, nan, "wilson", 0)
    z = float(special.ndtri(0.5 + confidence / 2))
    rate = successes / trials
    centre = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * sqrt(rate * (1 - rate) / trials + (z / (2 * trials)) ** 2) / (1 + z * z / trials)
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Interval(rate, low, high, "wilson", trials)


def cluster_rate(per_task: Sequence[Sequence[float]], confidence: float = 0.95) -> Interval:
    """Mean score with the task as cluster; tasks without trials are left out.

    Wilson when every task has one binary trial; otherwise a t interval on
    per-task means (Miller 2024, arXiv:2411.00640), replaced near the boundaries
    by the exact bounds described at ``paired_drop``, here on [0, 1].
    """
    kept = [trials for trials in per_task if len(trials)]
    means = np.array([_score_mean(trials) for trials in kept])
    if all(len(trials) == 1 and trials[0] in (0, 1) for trials in kept):
        return wilson(float(means.sum()), len(means), confidence)
    if _is_boundary(means, (means,)):
        return _exact_interval(means, (0.0, 1.0), confidence)
    return _t_interval(means, (0.0, 1.0), confidence)


def retention(clean: Scores, shifted: Scores, confidence: float = 0.95) -> Interval:
    """Shifted score on the tasks the agent solves when clean.

    A task counts as solved if more than half of its clean trials pass. Run-to-run
    variation lowers the figure even without a shift: read it beside ``flip_rate``.
    """
    solved = [key for key in _paired_keys(clean, shifted) if _score_mean(clean[key]) > 0.5]
    return cluster_rate([shifted[key] for key in solved], confidence)


def pass_hat_k(per_task: Sequence[Sequence[float]], k: int) -> float:
    """Chance that k fresh trials of a task all pass: mean of C(c, k) / C(n, k).

    NaN without tasks, or if any task has fewer than k trials (dropping it would
    change the population). Source: tau-bench, arXiv:2406.12045.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    counts = [(_passes(trials), len(trials)) for trials in per_task]
    if not counts or any(trials < k for _, trials in counts):
        return nan
    return float(np.mean([comb(passed, k) / comb(trials, k) for passed, trials in counts]))


def flip_rate(per_task: Sequence[Sequence[float]]) -> float:
    """Chance that two trials of one task disagree: mean of 2c(n-c) / n(n-1).

    Unbiased for 2p(1-p) in each task; averaged over tasks with two trials or
    more, NaN if there is none.
    """
    counts = [(_passes(trials), len(trials)) for trials in per_task if len(trials) > 1]
    if not counts:
        return nan
    return float(np.mean([2 * c * (n - c) / (n * (n - 1)) for c, n in counts]))


def paired_drop(clean: Scores, shifted: Scores, confidence: float = 0.95) -> Interval:
    """Mean clean-minus-shifted score over tasks present in both arms.

    Interior, method ``"t"``: t interval on per-task mean differences with C-1
    degrees of freedom (Miller 2024, arXiv:2411.00640), cut to [-1, 1].

    Boundary, method ``"exact"``: the bounds for the mean of a bounded variable
    of Gaffke (2005) and Learned-Miller and Thomas (2019, arXiv:1905.06208). The
    upper limit is the quantile of a Dirichlet(1, ..., 1) weighted mean of the
    differences and one added +1; the lower limit adds a -1. No distribution is
    assumed and any number of trials will do. One trial a task and one direction
    only gives Clopper-Pearson, and a test of zero drop is then exactly McNemar's
    (cf. Fay and Lumbard 2021, Stat. Med. 40:1147). Its general coverage is a
    conjecture that no simulation, ours included, has contradicted.

    The boundary rule takes the exact limits if fewer than ``MINORITY_TASKS``
    tasks differ from the commonest difference, or if either arm's observed rate
    is within max(``EDGE_RATE``, ``EDGE_TASKS`` / C) of 0 or 1.
    """
    first, second = _paired_means(clean, shifted)
    return drop_of_means(first, second, confidence)


def drop_of_means(clean: ArrayLike, shifted: ArrayLike, confidence: float = 0.95) -> Interval:
    """``paired_drop`` on aligned arrays of per-task means, both of shape (tasks,)."""
    first, second = np.asarray(clean, np.float64), np.asarray(shifted, np.float64)
    drops = first - second
    if _is_boundary(drops, (first, second)):
        return _exact_interval(drops, (-1.0, 1.0), confidence)
    return _t_interval(drops, (-1.0, 1.0), confidence)


def drop_p_value(clean: Scores, shifted: Scores) -> float:
    """Two-sided p value of no drop, by the test that ``paired_drop`` inverts.

    NaN without pairs. At the boundaries with one trial a task it equals
    ``mcnemar``; in the interior it is the one-sample t test on differences.
    """
    return drop_p_of_means(*_paired_means(clean, shifted))


def drop_p_of_means(clean: ArrayLike, shifted: ArrayLike, null: float = 0.0) -> float:
    """``drop_p_value`` on aligned per-task means, for a true drop of ``null``."""
    first, second = np.asarray(clean, np.float64), np.asarray(shifted, np.float64)
    drops = first - second
    if drops.size == 0:
        return nan
    if not _is_boundary(drops, (first, second)):
        distance = abs(_mean(drops) - null) / float(drops.std(ddof=1)) * sqrt(drops.size)
        return float(2 * special.stdtr(drops.size - 1, -distance))
    below, above = exact_p_value(drops, -1.0, null), exact_p_value(-drops, -1.0, -null)
    return min(1.0, 2 * min(below, above))


def bootstrap_drop(
    clean: Scores,
    shifted: Scores,
    *,
    seed: int,
    resamples: int = 10_000,
    confidence: float = 0.95,
) -> Interval:
    """Percentile bootstrap over tasks: a cross-check on ``paired_drop``, not a rival.

    Resamples whole tasks (Efron 1979). It undercovers with few tasks, and has
    zero width when all tasks agree. Fixed by ``seed`` whatever the dict order.
    """
    first, second = _paired_means(clean, shifted)
    drops = first - second
    if drops.size < 2:
        return Interval(_mean(drops), nan, nan, "cluster-bootstrap", drops.size)
    values, counts = np.unique(drops, return_counts=True)
    # Resampling tasks is drawing counts of the distinct values: same law, less memory.
    draws = np.random.default_rng(seed).multinomial(drops.size, counts / drops.size, resamples)
    tails = [0.5 - confidence / 2, 0.5 + confidence / 2]
    low, high = np.quantile(draws @ values / drops.size, tails)
    return Interval(_mean(drops), float(low), float(high), "cluster-bootstrap", drops.size)


def mcnemar(clean: Scores, shifted: Scores) -> Discordance:
    """Exact (binomial, conditional) McNemar test for one binary trial per task.

    Source: McNemar (1947); p = 1 when no task is discordant.

    Raises:
        ValueError: a paired task has several trials or a score other than 0 or 1.
    """
    keys = _paired_keys(clean, shifted)
    if any(len(arm[key]) != 1 for arm in (clean, shifted) for key in keys):
        raise ValueError("McNemar needs one trial per task and arm; use paired_drop for more")
    pairs = [(_passes(clean[key]), _passes(shifted[key])) for key in keys]
    lost, gained = pairs.count((1, 0)), pairs.count((0, 1))
    if not pairs:
        return Discordance(0, 0, nan)
    p_value = stats.binomtest(lost, lost + gained).pvalue if lost + gained else 1.0
    return Discordance(lost, gained, float(p_value))


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
    tested = ~np.isnan(adjusted)
    if tested.any():
        adjusted[tested] = stats.false_discovery_control(adjusted[tested], method="bh")
    return [float(value) for value in adjusted]


def non_inferiority(change: Interval, margin: float) -> Literal["pass", "fail", "inconclusive"]:
    """Gate on the interval of *candidate minus baseline* (higher is better).

    Pass if the lower limit is above -margin, fail if the upper is below it, else
    inconclusive (also when undefined). ``paired_drop(candidate, baseline)`` is
    such an interval. With a 95% interval the one-sided error at the margin is 2.5%.
    """
    if not margin > 0:
        raise ValueError(f"margin must be positive, got {margin}")
    if change.low > -margin:
        return "pass"
    return "fail" if change.high < -margin else "inconclusive"


def minimum_detectable_effect(
    sd: float, n: int, power: float = 0.8, confidence: float = 0.95
) -> float:
    """Smallest mean difference that n clusters of spread ``sd`` find with ``power``.

    (t quantile of the test + t quantile of the power) * sd / sqrt(n), n-1 degrees
    of freedom, two-sided (Bloom 1995). NaN below two clusters or at zero spread,
    where the formula would promise to detect anything.
    """
    if n < 2 or not sd > 0:
        return nan
    critical = special.stdtrit(n - 1, 0.5 + confidence / 2) + special.stdtrit(n - 1, power)
    return float(critical) * sd / sqrt(n)


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


def _score_mean(trials: Sequence[float]) -> float:
    if any(isnan(score) or not 0 <= score <= 1 for score in trials):
        raise ValueError(f"scores must lie in [0, 1], got {list(trials)}")
    return float(sum(trials)) / len(trials)


def _passes(trials: Sequence[float]) -> int:
    if any(score not in (0, 1) for score in trials):
        raise ValueError(f"passes must be 0 or 1, got {list(trials)}")
    return int(sum(trials))


def _paired_keys(clean: Scores, shifted: Scores) -> list[str]:
    return sorted(key for key in clean.keys() & shifted.keys() if clean[key] and shifted[key])


def _paired_means(clean: Scores, shifted: Scores) -> tuple[Floats, Floats]:
    keys = _paired_keys(clean, shifted)
    first = np.array([_score_mean(clean[key]) for key in keys], np.float64)
    second = np.array([_score_mean(shifted[key]) for key in keys], np.float64)
    return first, second


def _is_boundary(values: Floats, arms: Sequence[Floats]) -> bool:
    """The rule stated at ``paired_drop``; also true of fewer than two tasks."""
    tasks = values.size
    if tasks < 2:
        return True
    counts = np.unique(values.round(9), return_counts=True)[1]
    if tasks - int(counts.max()) < MINORITY_TASKS:
        return True
    edge = max(EDGE_RATE, EDGE_TASKS / tasks)
    return any(min(arm.mean(), 1 - arm.mean()) < edge for arm in arms)


def _t_interval(values: Floats, limits: tuple[float, float], confidence: float) -> Interval:
    centre, spread = float(values.mean()), float(values.std(ddof=1))
    half = float(special.stdtrit(values.size - 1, 0.5 + confidence / 2)) * spread
    half /= sqrt(values.size)
    low, high = max(limits[0], centre - half), min(limits[1], centre + half)
    return Interval(centre, low, high, "t", values.size)


def _exact_interval(values: Floats, limits: tuple[float, float], confidence: float) -> Interval:
    if values.size == 0:
        return Interval(nan, nan, nan, "exact", 0)
    low, high = exact_limits(values, limits, confidence)
    return Interval(float(values.mean()), low, high, "exact", values.size)
