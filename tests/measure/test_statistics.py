"""Statistics against textbook values, scipy, and their own invariants."""

from math import comb, inf, isnan, nan
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from toolshift.measure import statistics as s
from toolshift.measure.exact import dirichlet_cdf


def arms(clean, shifted):
    """Mappings of one trial a task from two sequences of scores."""
    return (
        {f"task-{i}": [score] for i, score in enumerate(clean)},
        {f"task-{i}": [score] for i, score in enumerate(shifted)},
    )


def clopper_pearson(successes, trials):
    found = stats.binomtest(successes, trials).proportion_ci(0.95, "exact")
    return found.low, found.high


def mixed_arms(tasks=60, trials=4, seed=0):
    rng = np.random.default_rng(seed)
    ease = rng.beta(2, 2, tasks)
    return (
        {f"t{i}": rng.binomial(1, p, trials).tolist() for i, p in enumerate(ease)},
        {f"t{i}": rng.binomial(1, 0.7 * p, trials).tolist() for i, p in enumerate(ease)},
    )


binary_trials = st.lists(st.sampled_from([0, 1]), min_size=1, max_size=4)
task_pairs = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3),
    st.tuples(binary_trials, binary_trials),
    min_size=1,
    max_size=25,
)


# Single rates


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 17), (48, 50), (48, 48), (1, 1)])
def test_wilson_agrees_with_scipy(successes, trials):
    expected = stats.binomtest(successes, trials).proportion_ci(0.95, "wilson")
    found = s.wilson(successes, trials)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert found.estimate == successes / trials


def test_wilson_matches_newcombes_printed_example():
    # Newcombe (1998), Stat. Med. 17:857: 81/263 gives 0.2553 to 0.3662.
    found = s.wilson(81, 263)
    assert (found.low, found.high) == pytest.approx((0.2553, 0.3662), abs=5e-5)


def test_wilson_without_trials_is_nan_and_bad_counts_are_refused():
    assert isnan(s.wilson(0, 0).estimate)
    with pytest.raises(ValueError, match="successes"):
        s.wilson(4, 3)
    with pytest.raises(ValueError, match="successes"):
        s.wilson(-0.5, 3)


def test_cluster_rate_is_wilson_for_one_binary_trial():
    assert s.cluster_rate([[1]] * 30 + [[0]] * 10) == s.wilson(30, 40)


def test_cluster_rate_is_t_on_task_means_in_the_interior():
    per_task = [[0, 1, 1], [1, 1, 1], [0, 0, 1], [0, 0, 0]] * 10
    means = [np.mean(trials) for trials in per_task]
    expected = stats.ttest_1samp(means, 0).confidence_interval(0.95)
    found = s.cluster_rate(per_task)
    assert found.method == "t"
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_cluster_rate_at_the_boundary_is_clopper_pearson_on_tasks():
    found = s.cluster_rate([[1, 1, 1]] * 49 + [[0, 0, 0]])
    assert found.method == "exact"
    assert (found.low, found.high) == pytest.approx(clopper_pearson(49, 50))
    assert s.cluster_rate([[1, 1]] * 20).low == pytest.approx(clopper_pearson(20, 20)[0])


def test_cluster_rate_leaves_out_empty_tasks_and_is_nan_without_any():
    assert s.cluster_rate([[1], [], [0]]).n == 2
    assert isnan(s.cluster_rate([[]]).low)


def test_repeating_every_trial_does_not_narrow_the_interval():
    per_task = [[0, 1], [1, 1], [0, 0]] * 10
    assert s.cluster_rate([trials * 5 for trials in per_task]) == s.cluster_rate(per_task)


@pytest.mark.parametrize("score", [nan, -0.1, 1.5])
def test_scores_outside_the_unit_interval_are_refused(score):
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        s.cluster_rate([[score]])


def counts(per_task):
    return [(sum(trials), len(trials)) for trials in per_task]


def test_pass_hat_matches_hand_counts():
    # C(2,2)/C(4,2) = 1/6; C(4,2)/C(4,2) = 1; C(1,2) = 0.
    found = s.pass_hat_of(counts([[1, 1, 0, 0], [1] * 4, [1, 0, 0, 0]]))
    assert found[1] == pytest.approx(7 / 18)
    assert len(s.pass_hat_of(counts([[1, 1], [1]]))) == 1
    assert s.pass_hat_of([]) == []


def test_all_pass_hats_at_once_are_those_by_the_formula_to_the_bit():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        count = int(rng.integers(1, 9))
        sizes = [count + int(rng.integers(0, 3)) for _ in range(17)]
        pairs = [(int(rng.integers(0, size + 1)), size) for size in sizes]
        formula = [
            float(np.mean([comb(passed, k) / comb(trials, k) for passed, trials in pairs]))
            for k in range(1, min(sizes) + 1)
        ]
        assert s.pass_hat_of(pairs) == formula


def test_the_time_of_pass_hats_grows_with_the_trials():
    def once(trials):
        pairs = [(trials - n, trials) for n in range(20)]
        begun = process_time()
        s.pass_hat_of(pairs)
        return process_time() - begun

    def seconds(trials):
        return min(once(trials) for _ in range(5))  # a pause of the machine is in one of them

    once(100)
    assert seconds(1600) < 24 * seconds(200)  # with the square 64 times


@given(st.lists(st.lists(st.sampled_from([0, 1]), min_size=4, max_size=4), min_size=1, max_size=9))
def test_pass_hat_falls_with_k_from_the_mean(per_task):
    curve = s.pass_hat_of(counts(per_task))
    assert curve[0] == pytest.approx(np.mean(per_task))
    assert curve == sorted(curve, reverse=True)


def test_flip_rate_counts_disagreeing_pairs():
    assert s.flip_rate_of(counts([[1, 0], [1, 1], [0]])) == pytest.approx(0.5)
    assert s.flip_rate_of(counts([[1, 1, 0, 0]])) == pytest.approx(4 / 6)
    assert isnan(s.flip_rate_of(counts([[1], [0]])))


def test_flip_rate_is_unbiased_for_two_p_q():
    trials = np.random.default_rng(1).binomial(1, 0.3, (20_000, 3)).tolist()
    assert s.flip_rate_of(counts(trials)) == pytest.approx(0.42, abs=0.01)


def test_retention_is_the_rate_on_solved_tasks():
    clean, shifted = arms([1] * 20 + [0] * 10, [1] * 15 + [0] * 5 + [1] * 10)
    assert s.retention(clean, shifted) == s.wilson(15, 20)
    assert isnan(s.retention(*arms([0, 0], [1, 1])).estimate)


# Drops


def test_interior_drop_is_the_paired_t_interval_and_test():
    clean, shifted = mixed_arms()
    first = [np.mean(trials) for trials in clean.values()]
    second = [np.mean(trials) for trials in shifted.values()]
    expected = stats.ttest_rel(first, second)
    limits = expected.confidence_interval(0.95)
    found = s.paired_drop(clean, shifted)
    assert (found.method, found.n) == ("t", 60)
    assert (found.low, found.high) == pytest.approx((limits.low, limits.high))
    assert s.drop_p_value(clean, shifted) == pytest.approx(expected.pvalue)


def test_one_direction_of_loss_gives_clopper_pearson():
    # 100% to 98% on 50 tasks, where t alone covers 64%.
    found = s.paired_drop(*arms([1] * 50, [1] * 49 + [0]))
    assert found.method == "exact"
    assert found.high == pytest.approx(clopper_pearson(1, 50)[1])
    assert found.low < 0 < found.estimate


def test_total_collapse_has_width():
    found = s.paired_drop(*arms([1] * 48, [0] * 48))
    # The 2.5% tail allows a task in 1 - .025^(1/48) to have been gained, each worth 2.
    assert found.low == pytest.approx(1 - 2 * (1 - 0.025 ** (1 / 48)))
    assert (found.estimate, found.high) == (1, 1)
    assert s.drop_p_value(*arms([1] * 48, [0] * 48)) == pytest.approx(2**-47)


def broken_now_and_then(
    rng: np.random.Generator, tasks: int, trials: int, passes: float, broken: float
) -> tuple[np.ndarray, np.ndarray]:
    """Task means of both arms; a task fails altogether with a chance, and else is as before."""
    clean = rng.binomial(trials, passes, tasks) / trials
    shifted = rng.binomial(trials, passes, tasks) / trials
    return clean, np.where(rng.random(tasks) < broken, 0.0, shifted)


@pytest.mark.parametrize("trials", [8, 32])
def test_many_trials_of_tasks_that_all_held_do_not_rule_out_a_broken_one(trials: int) -> None:
    """No two differences need be equal: what a broken task would weigh decides."""
    clean, shifted = broken_now_and_then(np.random.default_rng(2), 50, trials, 0.94, 0.0)
    assert np.unique(clean - shifted).size > 3
    found = s.drop_of_means(clean, shifted)
    assert found.method == "exact"
    assert found.high > 0.05
    rate = s.cluster_rate([[mean] for mean in shifted])
    assert rate.method == "exact"
    assert rate.low < shifted.mean() - 0.05


@pytest.mark.parametrize(("tasks", "trials", "broken"), [(50, 32, 0.02), (20, 8, 0.05)])
def test_intervals_cover_under_rare_total_breakage(tasks: int, trials: int, broken: float) -> None:
    """The t interval covers 77% and 89% here (studies/statistics)."""
    rng, true = np.random.default_rng(5), 0.95 * broken
    studies = [broken_now_and_then(rng, tasks, trials, 0.95, broken) for _ in range(100)]
    # An interval holds what its test does not reject; testing one drop is far cheaper.
    covered = [s.drop_p_of_means(*study, true) >= 0.05 for study in studies]
    assert np.mean(covered) >= 0.95


def test_leverage_is_the_pull_of_one_task_more_in_standard_errors() -> None:
    values = np.array([0.0, 0.2] * 20)
    kept = np.sort(np.abs(values - 0.1))[:35].size
    nearest = values[np.argsort(np.abs(values - 0.1), kind="stable")[:kept]]
    expected = (1 - 0.1) / 41 / (nearest.std(ddof=1) / np.sqrt(40))
    assert s.leverage(values, (0.0, 1.0)) == pytest.approx(expected)
    # Over a wider range one task may pull farther; the farther end counts.
    assert s.leverage(values, (-1.0, 1.0)) == pytest.approx(expected / 0.9 * 1.1)
    assert s.leverage(1 - values, (0.0, 1.0)) == pytest.approx(expected)


def test_broken_tasks_that_were_seen_are_no_noise() -> None:
    quiet = np.array([0.0, 0.02] * 25)
    seen = np.concatenate([quiet[:45], np.ones(5)])
    assert s.leverage(seen, (-1.0, 1.0)) > s.MAX_LEVERAGE
    assert s.drop_of_means(seen, np.zeros(50)).method == "exact"


def test_leverage_is_infinite_where_the_other_tasks_are_all_equal_or_too_few() -> None:
    assert s.leverage(np.array([0.1 + 0.2, 0.3] * 20), (-1.0, 1.0)) == inf
    assert s.leverage(np.array([0.5] * 30 + [0.0, 1.0] * 2), (0.0, 1.0)) == inf
    assert s.leverage(np.array([0.0, 1.0, 0.5, 0.25, 0.75, 0.4]), (0.0, 1.0)) == inf
    assert s.leverage(np.array([0.0, 1.0, 0.5, 0.25, 0.75, 0.4, 0.6]), (0.0, 1.0)) < inf


def test_accuracy_weighs_every_task_the_same() -> None:
    assert s.accuracy([[1, 1, 1], [0]]) == 0.5
    assert s.accuracy([[1], []]) == 1
    assert isnan(s.accuracy([[]]))
    assert s.task_means([[1, 0], [], [1]]).tolist() == [0.5, 1]
    assert s.cluster_rate([[1, 1, 1], [0]]).estimate == 0.5


def test_no_difference_at_all_is_uncertain_not_zero_width():
    found = s.paired_drop(*arms([1, 0] * 10, [1, 0] * 10))
    assert found.low == pytest.approx(-found.high)
    assert found.high > 0.1
    assert s.drop_p_value(*arms([1, 0] * 10, [1, 0] * 10)) == 1


@pytest.mark.parametrize(("lost", "gained"), [(5, 0), (4, 1), (0, 3), (2, 2), (3, 2)])
def test_exact_p_value_is_mcnemars(lost, gained):
    stay = 40
    pair = arms([1] * lost + [0] * gained + [1] * stay, [0] * lost + [1] * gained + [1] * stay)
    expected = stats.binomtest(lost, lost + gained).pvalue
    assert s.drop_p_value(*pair) == pytest.approx(expected)


def test_exact_bounds_match_sampled_dirichlet_weights():
    drops = np.array([1.0, 0.25, 0.25, -0.5] + [0.0] * 30)
    weights = np.random.default_rng(3).dirichlet(np.ones(35), 60_000)
    found = s.drop_of_means(np.clip(drops, 0, 1), np.clip(-drops, 0, 1))
    assert found.method == "exact"
    assert found.low == pytest.approx(np.quantile(weights @ [*drops, -1], 0.025), abs=3e-3)
    assert found.high == pytest.approx(np.quantile(weights @ [*drops, 1], 0.975), abs=3e-3)


@pytest.mark.parametrize(("ones", "zeros"), [(2, 1), (4, 40), (2, 1000), (1000, 2)])
def test_contour_integral_is_the_beta_cdf_when_points_coincide(ones, zeros):
    # Three points, two of them all but equal: numerically integrated, yet known.
    points, masses = np.array([0.0, 1.0, 1.0 + 1e-13]), np.array([zeros, ones - 1.0, 1.0])
    for at in stats.beta(ones, zeros).ppf([1e-6, 0.025, 0.5, 0.975]):
        found = dirichlet_cdf(points, masses, float(at))
        assert found == pytest.approx(stats.beta(ones, zeros).cdf(at), abs=1e-9)


def test_pairs_are_joined_on_keys_and_tasks_without_trials_are_left_out():
    clean = {"a": [1], "b": [1], "c": [1], "d": []}
    shifted = {"c": [0], "a": [1], "d": [1], "e": [0]}
    found = s.paired_drop(clean, shifted)
    assert (found.n, found.estimate) == (2, 0.5)
    none = s.paired_drop({"a": [1]}, {"b": [1]})
    assert none.n == 0
    assert all(map(isnan, (none.estimate, none.low, none.high)))
    assert isnan(s.drop_p_value({}, {}))


@settings(max_examples=60, deadline=None)
@given(task_pairs)
def test_drop_interval_invariants(pairs):
    clean = {key: first for key, (first, _) in pairs.items()}
    shifted = {key: second for key, (_, second) in pairs.items()}
    drop, gain = s.paired_drop(clean, shifted), s.paired_drop(shifted, clean)
    assert -1 <= drop.low <= drop.estimate + 1e-9
    assert drop.estimate - 1e-9 <= drop.high <= 1
    assert drop.low < drop.high
    # Swapping the arms mirrors the interval; the order of tasks is immaterial.
    assert (gain.low, gain.high) == pytest.approx((-drop.high, -drop.low), abs=1e-7)
    assert s.paired_drop(dict(reversed(clean.items())), shifted) == drop
    # The p value inverts the same test as the interval.
    if min(abs(drop.low), abs(drop.high)) > 1e-6:
        assert (s.drop_p_value(clean, shifted) >= 0.05) == (drop.low <= 0 <= drop.high)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 5), st.integers(0, 60))
def test_exact_limits_rise_with_every_task_lost(lost, kept):
    def drop(count):
        return s.paired_drop(*arms([1] * (6 + kept), [0] * count + [1] * (6 + kept - count)))

    before, after = drop(lost), drop(lost + 1)
    if before.method == after.method == "exact":
        assert before.low < after.low
        assert before.high <= after.high


def test_higher_confidence_is_wider():
    pair = arms([1] * 40, [1] * 38 + [0] * 2)
    narrow, wide = s.paired_drop(*pair, confidence=0.9), s.paired_drop(*pair, confidence=0.99)
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(("rate", "defined"), [(0.5, True), (0.49, False), (nan, False)])
def test_a_drop_needs_half_of_the_clean_tasks(rate, defined):
    assert s.drop_is_defined(rate) is defined


# Decisions


def test_holm_matches_a_worked_example():
    assert s.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_benjamini_hochberg_matches_a_worked_example():
    assert s.benjamini_hochberg([0.01, 0.04, 0.03, 0.5]) == pytest.approx(
        [0.04, 0.16 / 3, 0.16 / 3, 0.5]
    )


@pytest.mark.parametrize("adjust", [s.holm, s.benjamini_hochberg])
def test_untestable_hypotheses_stay_nan_and_leave_the_family(adjust):
    found = adjust([0.02, nan, 0.04])
    assert isnan(found[1])
    assert [found[0], found[2]] == pytest.approx(adjust([0.02, 0.04]))
    assert adjust([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_lies_between_raw_and_bonferroni_and_above_bh(p_values):
    for raw, fdr, fwer in zip(
        p_values, s.benjamini_hochberg(p_values), s.holm(p_values), strict=True
    ):
        assert raw - 1e-12 <= fdr <= fwer + 1e-12
        assert fwer <= min(1, raw * len(p_values)) + 1e-12


def test_seed_contrast_is_t_over_seeds():
    values = [0.11, 0.07, 0.15]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = s.seed_contrast(values)
    assert (found.method, found.n) == ("t-seeds", 3)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("values", [[], [0.1], [0.1, 0.1, 0.1]])
def test_seed_contrast_without_spread_has_no_limits(values):
    found = s.seed_contrast(values)
    assert isnan(found.low)
    assert isnan(found.high)
