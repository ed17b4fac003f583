"""Intervals over seeds and tasks at once."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest

from toolshift.measure.crossed import crossed_mean
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
