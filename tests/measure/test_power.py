"""The smallest drop that a study would show: at that drop the test rejects as often as is said."""

from __future__ import annotations

from math import inf, isnan

import numpy as np
import pytest
from scipy import stats

from toolshift.measure.power import POWER, smallest_drop
from toolshift.measure.statistics import Scores, drop_p_value, paired_drop

NONE: dict[str, list[float]] = {}


def scores(rows: np.ndarray) -> dict[str, list[float]]:
    """Scores by task from trials of shape (tasks, trials)."""
    return {f"t{n}": [float(x) for x in row] for n, row in enumerate(rows)}


def passing(tasks: int, fails: int = 0) -> dict[str, list[float]]:
    return scores(np.array([[0.0]] * fails + [[1.0]] * (tasks - fails)))


@pytest.mark.parametrize(("tasks", "level", "needed"), [(12, 0.05, 6), (40, 0.0125, 8)])
def test_one_trial_without_chance_is_mcnemars_test(tasks: int, level: float, needed: int) -> None:
    clean = passing(tasks)
    found = smallest_drop(clean, clean, NONE, level)
    assert 0.5 ** (needed - 1) < level <= 0.5 ** (needed - 2)  # 2 x 0.5^n, two-sided
    assert stats.binom.sf(needed - 1, tasks, found) == pytest.approx(POWER, abs=1e-4)


def test_tasks_that_fail_clean_cannot_be_lost() -> None:
    """Of 30 tasks 20 pass, and six of those must be lost; the drop is a share of all tasks."""
    clean = passing(30, fails=10)
    found = smallest_drop(clean, clean, NONE, 0.05)
    # Which of the tasks are drawn to be lost is chance, and only two in three can be.
    assert found == pytest.approx(smallest_drop(passing(30), passing(30), NONE, 0.05), abs=0.01)


def test_few_tasks_show_not_even_a_total_loss() -> None:
    assert smallest_drop(passing(5), passing(5), NONE, 0.05) == inf
    assert smallest_drop(passing(6), passing(6), NONE, 0.05) < 1
    assert smallest_drop(passing(6), passing(6), NONE, 0.03) == inf


def test_it_is_undefined_without_pairs_and_without_passes() -> None:
    assert isnan(smallest_drop(passing(1), passing(1), NONE, 0.05))
    assert isnan(smallest_drop(passing(9, fails=9), passing(9), NONE, 0.05))
    assert isnan(smallest_drop(passing(9), {"another": [1.0]}, NONE, 0.05))


def test_more_power_and_a_stricter_level_ask_for_more() -> None:
    clean = passing(40)
    usual = smallest_drop(clean, clean, NONE, 0.05)
    assert smallest_drop(clean, clean, NONE, 0.01) > usual
    assert smallest_drop(clean, clean, NONE, 0.05, power=0.9) > usual
    assert smallest_drop(passing(80), passing(80), NONE, 0.05) < usual
    assert smallest_drop(passing(400), passing(400), NONE, 0.05) < usual / 5


def test_a_placebo_that_loses_as_well_asks_for_more() -> None:
    clean = passing(40)
    floor = passing(40, fails=4)
    assert smallest_drop(clean, clean, floor, 0.05) > smallest_drop(clean, clean, clean, 0.05)


def lossy(
    rng: np.random.Generator, tasks: int, trials: int, passes: float, lost: float
) -> tuple[Scores, Scores]:
    """Both arms of a study in which each task is lost altogether with a chance."""
    clean = rng.binomial(1, passes, (tasks, trials))
    gone = rng.random((tasks, 1)) < lost
    shifted = np.where(gone, 0, rng.binomial(1, passes, (tasks, trials)))
    return scores(clean), scores(shifted)


@pytest.mark.parametrize(
    ("tasks", "trials", "passes"), [(40, 1, 0.9), (60, 4, 0.8), (30, 8, 0.95), (100, 1, 0.7)]
)
def test_at_that_drop_the_test_rejects_as_often_as_is_said(
    tasks: int, trials: int, passes: float
) -> None:
    """A quarter of the level, as for four tiers; pilot studies without a drop say where to look."""
    rng = np.random.default_rng(4)
    level, rejected = 0.0125, []
    for _ in range(8):
        drop = smallest_drop(*lossy(rng, tasks, trials, passes, 0.0), NONE, level)
        for _ in range(40):
            clean, shifted = lossy(rng, tasks, trials, passes, drop / passes)
            significant = drop_p_value(clean, shifted) < level
            rejected.append(significant and paired_drop(clean, shifted).estimate > 0)
    assert np.mean(rejected) == pytest.approx(POWER, abs=0.08)
