"""What `@shift` asks for: a tier and a dimension; everything else follows or may be left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest

import toolshift
from toolshift.core.shift import Dimension, Preserves, Tier, declared


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """The shifts are registered for one test alone."""
    before = dict(declared)
    yield
    for name in declared.keys() - before.keys():
        del declared[name]


def rule(scene: Any, rng: Any, severity: Any) -> toolshift.Change:
    return toolshift.Change()


@pytest.mark.parametrize("tier", get_args(Tier))
@pytest.mark.parametrize("dimension", get_args(Dimension))
@pytest.mark.parametrize("preserves", get_args(Preserves))
def test_a_tier_and_a_dimension_are_enough(
    tier: Tier, dimension: Dimension, preserves: Preserves
) -> None:
    toolshift.shift(tier=tier, dimension=dimension, preserves=preserves)(rule)
    found = declared["rule"]
    truth = preserves != "end_state"
    assert found.level == (3 if truth else 1 if tier in ("perception", "none") else 2)
    assert (found.imitates, found.version, found.order) == ("", 1, 4 - found.level)


def test_neither_may_be_left_out() -> None:
    for given in ({"tier": "perception"}, {"dimension": "action"}):
        with pytest.raises(TypeError, match="required keyword-only argument"):
            toolshift.shift(**given)(rule)  # type: ignore[arg-type]


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_level_that_is_given_holds(level: Any) -> None:
    toolshift.shift(tier="perception", dimension="action", level=level)(rule)
    assert declared["rule"].level == level
