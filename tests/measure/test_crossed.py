"""Intervals over seeds and tasks at once."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest

from toolshift.measure.crossed import crossed_difference, crossed_mean
from toolshift.measure.statistics import drop_of_means


def table(seeds: int, tasks: int, of_seeds: float, of_tasks: float, noise: float) -> np.ndarray:
    rng = np.random.default_rng(seeds * tasks)
    return (
        rng.normal(0, of_seeds, (seeds, 1))
        + rng.normal(0, of_tasks, (1, tasks))
        + rng.normal(0, noise, (seeds, tasks))
    )


def test_one_seed_is_an_interval_over_tasks() -> None:
    row = table(1, 30, 0, 0.1, 0.1)
    assert crossed_mean(row).interval == drop_of_means(row[0], np.zeros(30))


def test_where_all_seeds_agree_it_is_the_interval_over_tasks() -> None:
    row = table(1, 30, 0, 0.1, 0.1)
    same = np.repeat(row, 4, axis=0)
    found, alone = crossed_mean(same), drop_of_means(row[0], np.zeros(30))
    assert found.interval.low == pytest.approx(alone.low, abs=1e-3)
    assert found.seed_share == pytest.approx(0)


def test_seeds_that_differ_widen_it_whatever_the_number_of_tasks() -> None:
    for tasks in (20, 200):
        values = table(4, tasks, 0.1, 0.01, 0.01)
        found, spread = crossed_mean(values), values.mean(axis=1).std(ddof=1)
        half = (found.interval.high - found.interval.low) / 2
        assert half > 1.4 * spread  # t with three degrees of freedom, over the root of four
        assert found.seed_share > 0.9


def test_a_total_loss_in_every_cell_is_not_sure() -> None:
    found = crossed_mean(np.ones((6, 48)))
    assert found.interval.estimate == 1
    assert 0.8 < found.interval.low < 1
    assert found.p < 1e-6
    assert isnan(found.seed_share)


@pytest.mark.parametrize("values", [[], [[0.2, 2.0]], [[0.1, float("nan")]], [0.1, 0.2]])
def test_what_is_no_table_of_differences_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"seeds by tasks|between -1 and 1"):
        crossed_mean(values)


def test_an_unpaired_difference_is_the_same_whatever_the_order_of_the_seeds() -> None:
    first, second = table(6, 30, 0.1, 0.1, 0.1) / 2, table(3, 30, 0.1, 0.1, 0.1) / 2
    found = crossed_difference(first, second)
    again = crossed_difference(first[::-1], second[[1, 2, 0]])
    assert found.interval.estimate == pytest.approx(second.mean() - first.mean())
    assert found.interval.low == pytest.approx(again.interval.low)
    assert (found.seeds, found.tasks) == (3, 30)
    assert crossed_difference(first, second + 0.1).interval.low > found.interval.low
    back = crossed_difference(second, first).interval
    assert (back.low, back.high) == pytest.approx((-found.interval.high, -found.interval.low))


@pytest.mark.slow
def test_an_unpaired_difference_holds_the_true_one_as_often_as_it_says() -> None:
    """Simulated with seeds and tasks that differ and no true difference; 300 studies a design."""
    rng = np.random.default_rng(7)
    for seeds in ((3, 6), (6, 6)):
        held = 0
        for _ in range(300):
            tasks = rng.normal(0, 0.15, (1, 48))
            one, other = (
                tasks + rng.normal(0, 0.08, (n, 1)) + rng.normal(0, 0.1, (n, 48))
                + rng.normal(0, 0.05, (1, 48))
                for n in seeds
            )  # fmt: skip
            interval = crossed_difference(one, other, bound=4).interval
            held += interval.low <= 0 <= interval.high
        assert held >= 0.92 * 300, seeds


def test_one_seed_of_an_arm_makes_a_difference_over_tasks() -> None:
    one, other = table(1, 30, 0, 0.1, 0.1), table(4, 30, 0, 0.1, 0.1)
    by_task = other.mean(axis=0) - one[0]
    assert crossed_difference(one, other).interval == drop_of_means(by_task, np.zeros(30))


@pytest.mark.parametrize("other", [[[0.1] * 3], [0.1, 0.2], [], [[float("nan"), 0.1]]])
def test_what_cannot_be_compared_is_refused(other: list[float]) -> None:
    with pytest.raises(ValueError, match=r"seeds by tasks|cannot be compared|lie between"):
        crossed_difference([[0.1, 0.2]], other)
