"""Statistics beside those of `statsmodels`, another implementation: every difference."""

from __future__ import annotations

from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.regression.linear_model import OLS
from statsmodels.stats import contingency_tables, proportion, weightstats
from statsmodels.stats.multitest import multipletests

from toolshift.measure import statistics as s
from toolshift.measure.crossed import _variance, crossed_mean
from toolshift.measure.exact import exact_limits
from toolshift.measure.gate_statistics import change_interval

CLOSE = 1e-9
PARTS = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
LEVELS = st.sampled_from([0.8, 0.9, 0.95, 0.99])
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def noisy(tasks: int, seed: int, centre: float = 0.1) -> np.ndarray:
    """Differences of scores, spread widely enough for the t interval, within -1 and 1."""
    return np.clip(np.random.default_rng(seed).normal(centre, 0.5, tasks), -0.95, 0.95)


# -- shares ------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(PARTS, LEVELS)
def test_wilson(part: tuple[int, int], level: float) -> None:
    found = s.wilson(*part, confidence=level)
    low, high = proportion.proportion_confint(*part, alpha=1 - level, method="wilson")
    assert (found.low, found.high) == pytest.approx((low, high), abs=CLOSE)


@settings(max_examples=60, deadline=None)
@given(PARTS, LEVELS)
def test_the_exact_limits_of_shares_are_clopper_pearson(
    part: tuple[int, int], level: float
) -> None:
    passed, tasks = part
    found = exact_limits(np.array([1.0] * passed + [0.0] * (tasks - passed)), (0.0, 1.0), level)
    expected = proportion.proportion_confint(passed, tasks, alpha=1 - level, method="beta")
    assert found == pytest.approx(expected, abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(PARTS)
def test_the_limits_of_the_gate_are_clopper_pearson_where_a_build_only_loses(
    part: tuple[int, int],
) -> None:
    lost, tasks = part
    found = change_interval(np.array([-1.0] * lost + [0.0] * (tasks - lost)))
    low, high = proportion.proportion_confint(lost, tasks, alpha=0.1, method="beta")
    assert -found.low == pytest.approx(high, abs=1e-7)
    # A difference: no build is known to gain nothing, so the other limit lets it gain.
    assert -found.high <= low + 1e-7


# -- pairs -------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 40), st.integers(0, 40))
def test_with_one_trial_a_task_the_p_value_of_a_drop_is_mcnemars(
    lost: int, gained: int, passed: int, failed: int
) -> None:
    clean = [1] * lost + [0] * gained + [1] * passed + [0] * failed
    shifted = [0] * lost + [1] * gained + [1] * passed + [0] * failed
    drops = np.subtract(clean, shifted, dtype=np.float64)
    if not clean or s.leverage(drops, (-1.0, 1.0)) <= s.MAX_LEVERAGE:
        return  # no task, or a t test: see below
    found = s.drop_p_of_means(clean, shifted)
    table = [[passed, lost], [gained, failed]]
    expected = contingency_tables.mcnemar(table, exact=True).pvalue if lost + gained else 1.0
    assert found == pytest.approx(expected, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(60, 300), st.integers(0, 10_000), LEVELS)
def test_the_t_interval_and_its_p_value(tasks: int, seed: int, level: float) -> None:
    drops = noisy(tasks, seed)
    found = s.drop_of_means(drops, np.zeros(tasks), level)
    peer = weightstats.DescrStatsW(drops)
    assert found.method == "t"
    assert (found.low, found.high) == pytest.approx(peer.tconfint_mean(1 - level), abs=CLOSE)
    p_value = peer.ttest_mean(0.0)[1]
    assert s.drop_p_of_means(drops, np.zeros(tasks)) == pytest.approx(p_value, abs=CLOSE)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12), LEVELS)
def test_the_contrast_of_seeds(values: list[float], level: float) -> None:
    if np.ptp(values) < 1e-6:
        return
    found = s.seed_contrast(values, level)
    low, high = weightstats.DescrStatsW(values).tconfint_mean(1 - level)
    assert (found.low, found.high) == pytest.approx((low, high), abs=CLOSE)


def test_the_variance_over_seeds_and_tasks_is_that_of_two_way_clusters() -> None:
    rng = np.random.default_rng(5)
    table = rng.normal(0, 0.1, (6, 1)) + rng.normal(0, 0.1, (1, 30)) + rng.normal(0, 0.1, (6, 30))
    seeds, tasks = np.indices(table.shape).reshape(2, -1)
    peer = OLS(table.ravel(), np.ones(table.size)).fit()
    covariances = [
        peer.get_robustcov_results(
            "cluster", groups=groups, use_correction=False, df_correction=False
        ).cov_params()[0, 0]
        for groups in (seeds, tasks, np.arange(table.size))
    ]
    # The peer divides by the number of clusters, we by one less, as an analysis of variance does.
    by_seed, by_task, rest = covariances
    unbiased = by_seed * 6 / 5 + by_task * 30 / 29
    whole = table - table.mean(axis=1)[:, None] - table.mean(axis=0)[None] + table.mean()
    noise = float((whole**2).sum()) / (5 * 29) / table.size
    assert _variance(table)[0] == pytest.approx(unbiased - noise, abs=CLOSE)
    assert rest < unbiased
    assert crossed_mean(table).interval.method == "crossed t"


# -- many tests --------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(P_VALUES)
@pytest.mark.parametrize(
    ("ours", "method"), [(s.holm, "holm"), (s.benjamini_hochberg, "fdr_bh")], ids=["holm", "bh"]
)
@pytest.mark.slow
def test_adjusted_p_values(ours, method, p_values: list[float]) -> None:
    assert ours(p_values) == pytest.approx(multipletests(p_values, method=method)[1], abs=CLOSE)


# -- the differences ---------------------------------------------------------------------------


def test_difference_no_trial_has_no_limits_and_does_not_fail() -> None:
    found = s.wilson(0, 0)
    assert isnan(found.low)
    assert isnan(found.high)


def test_difference_the_limits_of_none_and_of_all_are_0_and_1_to_the_bit() -> None:
    """The peer's are, for some numbers, a rounding error away."""
    for tasks in range(1, 300):
        assert s.wilson(0, tasks).low == 0
        assert s.wilson(tasks, tasks).high == 1


@pytest.mark.parametrize("ours", [s.holm, s.benjamini_hochberg])
def test_difference_what_cannot_be_tested_leaves_the_family(ours) -> None:
    """Among NaN the peer adjusts nothing well; ours leaves them out and keeps their places."""
    assert ours([]) == []
    found = ours([0.02, nan, 0.04])
    assert isnan(found[1])
    method = {s.holm: "holm", s.benjamini_hochberg: "fdr_bh"}[ours]
    assert [found[0], found[2]] == pytest.approx(multipletests([0.02, 0.04], method=method)[1])


def test_difference_limits_of_a_drop_stay_within_its_range() -> None:
    drops = np.array([0.9, -0.9] * 4 + [0.95, 0.99])
    low, high = weightstats.DescrStatsW(drops).tconfint_mean(1e-6)
    found = s._t_interval(drops, (-1.0, 1.0), 1 - 1e-6)
    assert low < -1 < 1 < high
    assert (found.low, found.high) == (-1, 1)


def test_difference_few_broken_tasks_have_exact_limits_and_not_those_of_t() -> None:
    """A t interval knows of the spread that was seen: without any it has no width."""
    drops = np.array([0.0] * 40)
    found = s.drop_of_means(drops, np.zeros(40))
    assert found.method == "exact"
    assert weightstats.DescrStatsW(drops).tconfint_mean(0.05) == (0, 0)
    assert found.low < -0.05 < 0.05 < found.high


def test_difference_seeds_that_agree_exactly_have_no_limits() -> None:
    """The peer gives an interval without width; ours none, for such seeds are not independent."""
    assert weightstats.DescrStatsW([0.25] * 4).tconfint_mean(0.05) == (0.25, 0.25)
    assert isnan(s.seed_contrast([0.25] * 4).low)
