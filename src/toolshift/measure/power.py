"""The smallest drop that a study of this size would show, by the test that is in use.

That test is no formula: a row is significant where the p value of `statistics.drop_p_value`, exact
or from t as the leverage decides, stays under the level after the correction for all rows, and the
loss lies beyond the placebo arm. So its power is found by applying it to simulated studies.

A simulated study has the tasks of the real one, drawn with replacement, and two things in it:

- *chance*: a task changes by chance as often and as far as tasks were seen to gain, in either
  direction. Whatever losses there are beyond the gains are the drop, not chance.
- *a drop*: each task is lost altogether with the same chance. Losses that fall on whole tasks are
  harder to tell from chance than the same points spread over all tasks, so other drops of the size
  that is stated are found as well.

Each study says how many lost tasks it takes to be significant; that so many are lost has a
binomial chance, which is summed exactly. Where nothing changes by chance, the result is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan

import numpy as np
import scipy  # type: ignore[import-untyped, unused-ignore]  # parts load at their first use
from numpy.typing import NDArray

from toolshift.measure.exact import Floats
from toolshift.measure.statistics import Scores, mean_p_value, means_of_pairs

POWER = 0.8
STUDIES = 60
_SEED = 25


def smallest_drop(
    clean: Scores,
    shifted: Scores,
    placebo: Mapping[str, Sequence[float]],
    level: float,
    power: float = POWER,
) -> float:
    """The smallest drop, in [0, 1], that would be significant with a chance of `power`.

    Args:
        clean: scores by task.
        shifted: likewise.
        placebo: likewise, empty without such an arm; a drop must lie beyond it too.
        level: two-sided, of this one test: the family's level over the number of its rows.
        power: wanted.

    Returns:
        Infinity where not even the loss of every task would show, NaN without two tasks in both
        arms, or where no task passes clean.
    """
    keys, first, second = means_of_pairs(clean, shifted)
    gaps = [_gap(mean, placebo.get(key)) for key, mean in zip(keys, first, strict=True)]
    return smallest_drop_of(first, second, np.array(gaps, np.float64), level, power)


def smallest_drop_of(
    first: Floats, second: Floats, floor: Floats, level: float, power: float = POWER
) -> float:
    """`smallest_drop` on the means of tasks, in the order of their names.

    Args:
        first: mean score of each task, clean, shape (tasks,).
        second: of the same tasks, shifted.
        floor: by how much the placebo arm fell short of clean in each; NaN without it.
        level: as of `smallest_drop`.
        power: wanted.

    Returns:
        As `smallest_drop`.
    """
    if first.size < 2 or not first.any():
        return nan
    rng = np.random.default_rng(_SEED)
    quiet = not (first < second).any()
    rule, needed = _Rule(level), []
    for _ in range(STUDIES):
        pick = rng.permutation(first.size) if quiet else rng.integers(first.size, size=first.size)
        noise = _chance(first - second, rng)
        needed.append(_tasks_needed(first[pick], noise, floor[pick], rule))
    return _share_lost(np.array(needed), first.size, power) * float(first.mean())


def _gap(clean: float, placebo: Sequence[float] | None) -> float:
    """By how much the placebo arm fell short of clean in a task; NaN without it."""
    return clean - sum(placebo) / len(placebo) if placebo else nan


def _chance(drops: Floats, rng: np.random.Generator) -> Floats:
    """Changes by chance: those of tasks that gained, as often in the other direction."""
    gains = -drops[drops < 0]
    if not gains.size:
        return np.zeros(drops.size)
    changes = rng.random(drops.size) < min(1.0, 2 * gains.size / drops.size)
    signs = rng.choice((-1.0, 1.0), drops.size)
    return np.where(changes, signs * rng.choice(gains, drops.size), 0.0)


def _tasks_needed(passes: Floats, noise: Floats, floor: Floats, rule: _Rule) -> int:
    """How many tasks, in order, must be lost to be significant; one too many where none do."""
    least, most = 1, passes.size + 1
    while least < most:
        middle = (least + most) // 2
        lost = np.arange(passes.size) < middle
        # The placebo arm brings the chance of its own, in place of the clean arm's.
        beyond = np.where(lost, passes, 0.0) - floor
        if rule.holds(np.where(lost, passes, noise), beyond[~np.isnan(floor)]):
            most = middle
        else:
            least = middle + 1
    return least


class _Rule:
    """The rule of `metrics.Arms`: a loss under the level, and one against the placebo arm at 5%.

    What it has said of some drops it says again: most studies differ in the order of tasks alone.
    """

    def __init__(self, level: float) -> None:
        self._level = level
        self._known: dict[tuple[bytes, float], bool] = {}

    def holds(self, drops: Floats, beyond: Floats) -> bool:
        return self._is_loss(drops, self._level) and (
            not beyond.size or self._is_loss(beyond, 0.05)
        )

    def _is_loss(self, drops: Floats, level: float) -> bool:
        ordered = np.sort(drops)
        key = ordered.tobytes(), level
        if key not in self._known:
            p_value = mean_p_value(ordered, (-1.0, 1.0)) if ordered.mean() > 0 else 1.0
            self._known[key] = p_value < level
        return self._known[key]


def _share_lost(needed: NDArray[np.int64], tasks: int, power: float) -> float:
    """The share of tasks that must be lost on average so that enough are, with this chance."""
    enough = needed <= tasks
    beyond = np.where(enough, tasks - needed + 1, 1)

    def missing(share: float) -> float:
        # The tail of a binomial as an incomplete beta: scipy.stats takes 0.8 s to load.
        chances = np.where(enough, scipy.special.betainc(needed, beyond, share), 0.0)
        return float(np.mean(chances)) - power

    if missing(1.0) < 0:
        return inf
    return float(scipy.optimize.brentq(missing, 0.0, 1.0, xtol=1e-6))
