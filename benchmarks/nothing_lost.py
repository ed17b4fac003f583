"""Error of `toolshift gate --nothing-lost`: its size for agents that vary, and its power.

    python benchmarks/nothing_lost.py

Each scene passes with a chance of its own in every trial, before and after the same (size); for
power one task of six passes in no trial any more. 1,500 pairs of runs for each row.
"""

from __future__ import annotations

import numpy as np

from toolshift.measure.nothing_lost import _least, fisher_p_value, tarone_threshold

RUNS = 1_500


def fails(before: np.ndarray, after: np.ndarray, trials: int) -> bool:
    """Whether the gate fails for so many failures of each scene before and after."""
    tables = [(trials, int(b), trials, int(a)) for b, a in zip(before, after, strict=True)]
    threshold = tarone_threshold(_least(*table) for table in tables)
    return any(not table[1] and fisher_p_value(*table) <= threshold for table in tables)


def share(scenes: int, trials: int, chance: float, broken: int) -> float:
    """How often the gate fails where scenes pass with this chance and so many are broken."""
    drawn = np.random.default_rng(0)
    count = 0
    for _ in range(RUNS):
        before = drawn.binomial(trials, 1 - chance, scenes)
        after = drawn.binomial(trials, 1 - chance, scenes)
        after[:broken] = trials
        count += fails(before, after, trials)
    return count / RUNS


def main() -> None:
    """Prints the table."""
    print("scenes  trials  passes  size    power, one scene broken")
    for scenes in (6, 36):
        for trials in (3, 5, 10):
            for chance in (1.0, 0.95, 0.8, 0.5):
                row = share(scenes, trials, chance, 0), share(scenes, trials, chance, 1)
                print(f"{scenes:6}  {trials:6}  {chance:6.0%}  {row[0]:6.2%}  {row[1]:6.1%}")


if __name__ == "__main__":
    main()
