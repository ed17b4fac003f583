"""What `@shift` asks for: a tier and a dimension; everything else follows or may be left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any, get_args

import pytest

import toolshift
from toolshift.core.errors import UsageError
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


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"tier": "perceptoin"}, "unknown tier 'perceptoin': did you mean perception"),
        (
            {"tier": ["perception"]},
            "tier must be one of none, perception, .*, not \\['perception'\\]",
        ),
        ({"dimension": "answer"}, "unknown dimension 'answer': did you mean"),
        ({"preserves": "endstate"}, "unknown preserves 'endstate': did you mean end_state"),
        ({"level": 4}, "level must be 1, 2 or 3, not 4"),
        ({"level": "1"}, "level must be 1, 2 or 3, not '1'"),
        ({"order": "first"}, "order must be a whole number, not 'first'"),
        ({"version": 0}, "version must be a whole number from 1, not 0"),
        ({"version": "2"}, "version must be a whole number from 1, not '2'"),
        ({"imitates": 5}, "imitates must be a text, not 5"),
        ({"one_level": "yes"}, "one_level must be True or False, not 'yes'"),
    ],
)
def test_an_error_names_the_shift_its_file_and_line(given: dict[str, Any], wrong: str) -> None:
    decorate = toolshift.shift(**{"tier": "perception", "dimension": "action"} | given)
    with pytest.raises(UsageError, match=wrong) as raised:
        decorate(rule)
    line = rule.__code__.co_firstlineno
    assert str(raised.value).startswith(f"shift 'rule' (test_shift.py, line {line}): ")
    with pytest.raises(UsageError, match=r"^shift 'renamed' \(test_shift.py, "):
        toolshift.shift(**{"tier": "perception", "dimension": "action"} | given, name="renamed")(
            rule
        )
    assert not {"rule", "renamed"} & declared.keys()


@pytest.mark.parametrize(
    "name", ["clean", "all", "perception", "a+b", "a:b", "my shift", "a*2", "-v", "a@b", "a.json"]
)
def test_a_name_that_a_selection_cannot_reach_is_refused(name: str) -> None:
    where = rf"^shift '{re.escape(name)}' \(test_shift.py, line \d+\): .*choose another"
    with pytest.raises(UsageError, match=where):
        toolshift.shift(tier="perception", dimension="action", name=name)(rule)
    assert name not in declared


@pytest.mark.parametrize("name", ["rule_2", "a-b", "a.b", "rule@1", "über"])
def test_a_name_that_a_selection_can_reach_is_taken(name: str) -> None:
    toolshift.shift(tier="perception", dimension="action", name=name)(rule)
    assert declared[name].rule is rule


def test_what_has_no_name_needs_one() -> None:
    bound: Any = partial(rule, rng=None)
    with pytest.raises(UsageError, match=r'it has no name: give it one, with name="..."'):
        toolshift.shift(tier="perception", dimension="action")(bound)
    toolshift.shift(tier="perception", dimension="action", name="bound")(bound)
    assert declared["bound"].rule is bound


def test_the_brackets_are_asked_for() -> None:
    place = rf"^shift 'rule' \(test_shift.py, line {rule.__code__.co_firstlineno}\): "
    with pytest.raises(
        UsageError, match=place + r"write @shift\(tier=..., dimension=...\) over it"
    ):
        toolshift.shift(rule)  # type: ignore[call-arg, arg-type]
