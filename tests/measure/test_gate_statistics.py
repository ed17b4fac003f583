"""The statistics of the gate: limits, verdicts, and how many more tasks would decide."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from toolshift.measure.gate_statistics import (
    CHANCE,
    CONFIDENCE,
    change_interval,
    decide,
    more_tasks,
)
from toolshift.measure.statistics import Interval


def losses(lost: int, tasks: int) -> np.ndarray:
    return np.array([-1.0] * lost + [0.0] * (tasks - lost))


def of_interval(change: Interval, margin: float) -> str:
    """The verdict by its definition."""
    if change.low > -margin:
        return "pass"
    return "fail" if change.high < -margin else "inconclusive"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.25, 1.0]), min_size=1, max_size=120),
    st.sampled_from([0.02, 0.05, 0.1, 0.3]),
)
def test_the_quick_verdict_is_that_of_the_interval(values: list[float], margin: float) -> None:
    changes = np.array(values)
    interval = change_interval(changes)
    if min(abs(interval.low + margin), abs(interval.high + margin)) > 1e-6:
        assert decide(changes, margin) == of_interval(interval, margin)


def test_the_limits_are_exact_at_nine_tenths() -> None:
    found = change_interval(losses(3, 50))
    expected = stats.binomtest(3, 50).proportion_ci(CONFIDENCE, "exact")
    assert found.low == pytest.approx(-expected.high)
    assert (found.estimate, found.n, found.method) == (pytest.approx(-0.06), 50, "exact")
    wide = change_interval(losses(3, 50), 0.95)
    assert wide.low < found.low < found.high < wide.high


def test_nothing_is_known_without_tasks() -> None:
    none = change_interval(np.array([]))
    assert (none.n, isnan(none.estimate), isnan(none.low), isnan(none.high)) == (
        0,
        True,
        True,
        True,
    )
    assert decide(np.array([]), 0.05) == "inconclusive"
    assert more_tasks(np.array([]), 0.05) is None


@pytest.mark.parametrize(
    ("changes", "margin", "verdict"),
    [
        (losses(0, 59), 0.05, "pass"),  # 0.95^59 is under 5%
        (losses(0, 57), 0.05, "inconclusive"),
        (losses(20, 50), 0.05, "fail"),
        (losses(4, 50), 0.05, "inconclusive"),
        (-losses(20, 50), 0.05, "pass"),  # gains
        (losses(50, 50), 0.9, "inconclusive"),
        (losses(59, 59), 0.9, "fail"),
    ],
)
def test_verdicts(changes: np.ndarray, margin: float, verdict: str) -> None:
    assert decide(changes, margin) == verdict


def test_a_wider_confidence_decides_less() -> None:
    assert decide(losses(0, 59), 0.05, 0.95) == "inconclusive"
    assert decide(losses(0, 75), 0.05, 0.95) == "pass"


def test_a_change_at_the_margin_asks_for_no_number() -> None:
    assert decide(losses(5, 100), 0.05) == "inconclusive"
    assert more_tasks(losses(5, 100), 0.05) is None
    assert more_tasks(losses(5, 100), 0.15) is not None


@pytest.mark.parametrize(
    ("lost", "tasks", "margin"), [(0, 20, 0.05), (2, 40, 0.1), (9, 60, 0.1), (30, 60, 0.4)]
)
def test_the_tasks_asked_for_decide_about_as_often_as_is_said(
    lost: int, tasks: int, margin: float
) -> None:
    more = more_tasks(losses(lost, tasks), margin)
    assert more is not None
    assert more > 0
    rng = np.random.default_rng(3)
    # One task more that changed is supposed, as in the estimate.
    rate = lost / tasks
    decided = [
        decide(losses(int(rng.binomial(tasks + more, rate)), tasks + more), margin)
        for _ in range(200)
    ]
    share = 1 - decided.count("inconclusive") / 200
    assert share > CHANCE - 0.2
    if lost:
        assert share < 0.97


def test_fewer_tasks_are_asked_for_the_farther_the_change_is_from_the_margin() -> None:
    changes = losses(5, 60)
    asked = [more_tasks(changes, margin) or 0 for margin in (0.12, 0.15, 0.2)]
    assert asked == sorted(asked, reverse=True)
    assert asked[0] > asked[-1] > 0
    assert (more_tasks(changes, 0.15, 0.95) or 0) > asked[1]


def test_the_number_asked_for_is_the_least_that_would_do() -> None:
    """By the formula in the docstring, written out: normal, one task more that changed."""
    changes, margin = losses(2, 40), 0.15
    asked = 40 + (more_tasks(changes, margin) or 0)

    def would(tasks: int) -> bool:
        variance = (np.square(changes - changes.mean()).sum() + 1) / 40
        pull = 1 / (tasks + 1)
        spread = ((variance + pull) / (tasks + 1)) ** 0.5
        wanted = stats.norm.ppf(0.95) + stats.norm.ppf(0.8)
        return bool(abs(changes.mean() + margin) - pull > wanted * spread)

    assert would(asked)
    assert not would(asked - 1)
