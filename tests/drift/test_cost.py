"""The sentence that says what a release costs."""

from __future__ import annotations

import pytest

from toolshift.drift.cost import Cost, cost_in_words
from toolshift.measure.statistics import Interval, paired_drop


@pytest.mark.parametrize(
    ("lost", "tasks", "said"),
    [
        (1, 1, "on the 1 task that uses what changed."),
        (1, 1, "me has no significant loss (100 points [-95, 100]; 1 task can show only a large"),
        (3, 12, "me has no significant loss (25 points [-13, 57]) on the 12 tasks that use what"),
        (12, 12, "me loses 100 points"),
        (0, 12, "me loses nothing (0 points"),
        (
            0,
            3,
            "me shows no loss (0 points [-71, 71]; 3 tasks can show only a large",
        ),
    ],
)
def test_a_loss_is_said_with_what_it_rests_on(lost: int, tasks: int, said: str) -> None:
    clean = {f"t{n}": [1.0] for n in range(tasks)}
    drop = paired_drop(clean, {f"t{n}": [float(n >= lost)] for n in range(tasks)})
    cost = Cost("me", tasks, tasks, 1.0, drop, None, {}, 0)
    assert said in cost_in_words(cost, [])


def test_a_limit_just_below_zero_is_no_minus_zero() -> None:
    drop = Interval(-0.05, -0.1, -0.001, "t", 20)
    said = cost_in_words(Cost("me", 20, 20, 1.0, drop, drop, {}, 0), [])
    assert "-5 points [-10, 0]" in said


def test_an_agent_that_passes_nothing_loses_nothing_that_could_be_said() -> None:
    drop = Interval(0.0, -0.02, 0.02, "exact", 40)
    said = cost_in_words(Cost("me", 40, 40, 0.0, drop, None, {}, 0), [])
    assert "nothing can be said of me, for it passes none of its tasks clean" in said
