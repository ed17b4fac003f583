"""Limits that hold at every time: fair bets, and coverage by counting all paths."""

from __future__ import annotations

from itertools import permutations, product
from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolshift.measure.betting import Rule, evidence, limits, tasks_to_go, verdict

CHANGES = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=1, max_size=30)
SHARES = st.lists(st.integers(0, 5), min_size=3, max_size=3).filter(any)
RULE = Rule(0.0, -0.1, 0.95)


def array(values: object) -> np.ndarray:
    return np.array(values, np.float64)


@given(SHARES, st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_the_capital_is_fair_at_the_true_mean(weights: list[int], tasks: int) -> None:
    """Its expectation, over all paths of independent tasks, is what it began with."""
    values = array([-1.0, 0.0, 1.0])
    chances = array(weights) / sum(weights)
    mean = float(values @ chances)
    if mean <= -1:
        return
    found = sum(
        float(np.prod(chances[list(path)])) * exp(evidence(values[list(path)], mean))
        for path in product(range(3), repeat=tasks)
        if np.prod(chances[list(path)])
    )
    assert found == pytest.approx(1.0)


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=2, max_size=5), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_it_is_fair_for_a_list_without_replacement(tasks: list[float], drawn: int) -> None:
    mean = sum(tasks) / len(tasks)
    if mean <= -1:
        return
    orders = list(permutations(tasks))
    part = min(drawn, len(tasks))
    found = [exp(evidence(array(order[:part]), mean, len(tasks))) for order in orders]
    assert np.mean(found) == pytest.approx(1.0)


@given(SHARES, st.sampled_from([0.1, 0.25, 0.5]))
@settings(max_examples=25, deadline=None)
def test_the_limits_cover_at_every_time(weights: list[int], error: float) -> None:
    """The chance that the true mean is ever outside, over all paths of six tasks."""
    values = array([-1.0, 0.0, 1.0])
    chances = array(weights) / sum(weights)
    mean = float(values @ chances)
    needed = -log(error / 2)
    ever: dict[tuple[float, ...], bool] = {(): False}
    for _ in range(6):
        ever = {
            (*path, value): outside
            or evidence(array((*path, value)), mean) >= needed
            or evidence(-array((*path, value)), -mean) >= needed
            for path, outside in ever.items()
            for value in values
        }
    chance = dict(zip(values.tolist(), chances.tolist(), strict=True))
    missed = sum(np.prod([chance[v] for v in path]) for path, outside in ever.items() if outside)
    assert missed <= error + 1e-9


@given(CHANGES, st.floats(-0.9, 0.9), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_tasks_is_nothing_to_it(values: list[float], mean: float, rng: object) -> None:
    shuffled = list(values)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert evidence(array(shuffled), mean) == pytest.approx(evidence(array(values), mean))


@given(CHANGES, st.floats(-0.9, 0.9), st.integers(0, 29), st.booleans())
@settings(deadline=None)
def test_a_better_change_is_no_less_evidence(
    values: list[float], mean: float, place: int, listed: bool
) -> None:
    better = list(values)
    better[place % len(values)] = 1.0
    population = len(values) + 3 if listed else None
    before, after = (evidence(array(each), mean, population) for each in (values, better))
    assert after >= before - 1e-9 or before == inf


@given(CHANGES, st.integers(0, 20), st.booleans())
@settings(deadline=None)
def test_the_verdict_is_what_the_limits_say(values: list[float], more: int, listed: bool) -> None:
    changes, planned = array(values), len(values) + more
    found = limits(changes, changes, changes, RULE, planned, listed)
    said = verdict(changes, changes, RULE, planned, listed)
    assert -1 <= found.low <= found.estimate <= found.high <= 1
    if abs(found.high - RULE.breaks) > 1e-6 and abs(found.low - RULE.holds) > 1e-6:
        assert (said == "breaks") == (found.high < RULE.breaks)
        assert (said == "holds") == (found.low > RULE.holds and found.high >= RULE.breaks)


def test_a_list_that_was_asked_as_a_whole_is_known() -> None:
    one_lost = array([0.0] * 9 + [-1.0])
    found = limits(one_lost, one_lost, one_lost, RULE, 10, listed=True)
    assert (found.low, found.high) == (-0.1, -0.1)
    assert verdict(one_lost, one_lost, RULE, 10, listed=True) == "breaks"
    assert verdict(one_lost, one_lost, RULE, 10) == "open"


@pytest.mark.parametrize(("lost", "tasks", "said"), [(7, 7, "breaks"), (6, 6, "open")])
def test_how_many_losses_break(lost: int, tasks: int, said: str) -> None:
    changes = array([-1.0] * lost + [0.0] * (tasks - lost))
    assert verdict(changes, changes, RULE, 100) == said


@pytest.mark.parametrize(("tasks", "said"), [(42, "holds"), (41, "open")])
def test_how_many_tasks_without_a_loss_hold(tasks: int, said: str) -> None:
    assert verdict(np.zeros(tasks), np.zeros(tasks), RULE, 100) == said


def test_a_last_look_is_that_of_a_fixed_design() -> None:
    """60 tasks without a loss pass a margin of 5 where they are all, as in a fixed gate."""
    gate = Rule(-0.05, -0.05, 0.993, 0.907)
    assert verdict(np.zeros(60), np.zeros(60), gate, 60) == "holds"
    assert verdict(np.zeros(60), np.zeros(60), gate, 61) == "open"


@given(CHANGES, st.integers(1, 40))
@settings(deadline=None, max_examples=60)
def test_what_is_promised_can_come_about(values: list[float], left: int) -> None:
    """With so many tasks more, all lost or none, it is decided."""
    changes, planned = array(values), len(values) + left
    if verdict(changes, changes, RULE, planned) != "open":
        return
    more = tasks_to_go(changes, RULE, planned)
    if more is None:
        assert verdict(*[np.append(changes, np.zeros(left))] * 2, RULE, planned) == "open" or (
            changes.mean() < 0
        )
        return
    assert 1 <= more <= left
    best = np.append(changes, np.maximum(0.0, changes.mean()) * np.ones(more))
    worst = np.append(changes, -np.ones(more))
    assert "open" not in (
        verdict(best, best, RULE, planned),
        verdict(worst, worst, RULE, planned),
    ) or "breaks" in (verdict(worst, worst, RULE, planned),) or "holds" in (
        verdict(best, best, RULE, planned),
    )  # fmt: skip
