"""The exact limits against known distributions, sampled weights, and each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from toolshift.measure import exact
from toolshift.measure.exact import dirichlet_cdf, exact_limits, exact_p_value


@pytest.mark.parametrize("at", [0.05, 0.2, 0.5, 0.7, 0.95])
def test_three_points_of_mass_one_have_a_triangular_mean(at: float) -> None:
    """The weighted mean of 0, 1/2 and 1 under uniform weights: a sum of two uniforms, halved."""
    found = dirichlet_cdf(np.array([0.0, 0.5, 1.0]), np.ones(3), at)
    assert found == pytest.approx(2 * at**2 if at < 0.5 else 1 - 2 * (1 - at) ** 2, abs=1e-9)


@pytest.mark.parametrize(("zeros", "ones"), [(1, 1), (3, 40), (40, 3), (500, 7)])
def test_two_points_are_the_beta_distribution(zeros: int, ones: int) -> None:
    beta = stats.beta(ones, zeros)
    for at in beta.ppf([0.001, 0.025, 0.5, 0.9]):
        # On another scale: points at -1 and 3.
        found = dirichlet_cdf(np.array([-1.0, 3.0]), np.array([zeros, ones], float), 4 * at - 1)
        assert found == pytest.approx(beta.cdf(at), abs=1e-9)


def test_integers_have_the_limits_of_the_same_numbers() -> None:
    whole, real = np.array([0, 1, 1]), np.array([0.0, 1.0, 1.0])
    assert exact_limits(whole, (0.0, 1.0), 0.95) == exact_limits(real, (0.0, 1.0), 0.95)
    assert exact_p_value(whole, 0.0, 0.5) == exact_p_value(real, 0.0, 0.5)


def test_many_points_agree_with_sampled_weights() -> None:
    points = np.array([-1.0, -0.3, 0.0, 0.4, 0.9])
    masses = np.array([1.0, 2.0, 6.0, 3.0, 1.0])
    means = np.random.default_rng(1).dirichlet(masses, 200_000) @ points
    for at in (-0.3, -0.05, 0.1, 0.3, 0.5):
        found = dirichlet_cdf(points, masses, at)
        assert found == pytest.approx(np.mean(means <= at), abs=4e-3)


def test_beyond_the_points_nothing_is_left_to_chance() -> None:
    points, masses = np.array([0.0, 0.5, 1.0]), np.ones(3)
    assert dirichlet_cdf(points, masses, 1.0) == 1
    assert dirichlet_cdf(points, masses, 1.5) == 1
    assert dirichlet_cdf(points, masses, 0.0) == 0
    assert dirichlet_cdf(points, masses, -0.5) == 0


VALUES = np.array([1.0, 0.25, 0.25, -0.5, 0.75] + [0.0] * 20)


def test_a_limit_is_where_its_test_just_rejects() -> None:
    for confidence in (0.9, 0.95):
        low, high = exact_limits(VALUES, (-1.0, 1.0), confidence)
        tail = (1 - confidence) / 2
        assert exact_p_value(VALUES, -1.0, low) == pytest.approx(tail, abs=1e-6)
        assert exact_p_value(-VALUES, -1.0, -high) == pytest.approx(tail, abs=1e-6)
        assert (
            exact_p_value(VALUES, -1.0, low + 0.01) > tail > exact_p_value(VALUES, -1.0, low - 0.01)
        )


def test_limits_follow_the_values_and_the_bounds() -> None:
    low, high = exact_limits(VALUES, (-1.0, 1.0), 0.95)
    assert exact_limits(-VALUES, (-1.0, 1.0), 0.95) == pytest.approx((-high, -low))
    assert exact_limits(VALUES / 2, (-0.5, 0.5), 0.95) == pytest.approx((low / 2, high / 2))
    narrow = exact_limits(VALUES, (-0.5, 1.0), 0.95)
    assert narrow[0] > low
    assert narrow[1] == pytest.approx(high)
    assert low < VALUES.mean() < high


def test_all_at_one_end_leaves_one_limit_there() -> None:
    low, high = exact_limits(np.ones(30), (-1.0, 1.0), 0.95)
    assert high == 1
    assert low == pytest.approx(2 * 0.025 ** (1 / 30) - 1)


def test_values_that_differ_by_arithmetic_only_are_tied() -> None:
    tied = np.array([0.3] * 40)
    nearly = np.array([0.1 + 0.2, 0.3] * 20)
    assert not np.array_equal(tied, nearly)
    assert exact_limits(nearly, (-1.0, 1.0), 0.95) == exact_limits(tied, (-1.0, 1.0), 0.95)
    assert exact_p_value(nearly, -1.0, 0.2) == exact_p_value(tied, -1.0, 0.2)


@pytest.mark.parametrize("size", [10, 400])
def test_many_different_values_give_the_normal_limits_and_a_little(size: int) -> None:
    values = np.random.default_rng(4).uniform(-0.6, 0.6, size)
    low, high = exact_limits(values, (-1.0, 1.0), 0.95)
    half = 1.96 * values.std() / np.sqrt(size)
    assert low < values.mean() - 0.95 * half
    assert high > values.mean() + 0.95 * half
    assert low > values.mean() - half - 4 / size


@pytest.mark.parametrize("size", [3, 40, 400])
def test_what_is_left_out_of_the_contour_changes_no_digit(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(size)
    points = np.unique(rng.uniform(-1, 1, min(size, 12)).round(1))
    masses = rng.integers(1, 1 + size // 3, points.size).astype(float)
    at = float(points @ masses / masses.sum()) + 0.01
    found = dirichlet_cdf(points, masses, at)
    monkeypatch.setattr(exact, "_NEGLIGIBLE", np.inf)
    assert dirichlet_cdf(points, masses, at) == found
    monkeypatch.setattr(exact, "_NEGLIGIBLE", 3.0)
    assert dirichlet_cdf(points, masses, at) != found
