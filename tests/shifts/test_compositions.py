"""Compositions that the oracle cannot solve are refused with a sentence (studies/compositions)."""

from __future__ import annotations

from itertools import islice

import pytest

from studies.compositions.prove import outcome, triples
from toolshift.core.scene import Scene
from toolshift.core.shift import NotApplicable
from toolshift.episode.draw import make_scene
from toolshift.shifts.registry import UNPROVEN, compose
from toolshift.shifts.stacks import read_stack
from toolshift.worlds.registry import find_world


def clean(task: str) -> Scene:
    world, kind, index = task.split("/")
    return make_scene(find_world(world), kind, int(index))


def test_drawn_triples_are_solved_or_refused() -> None:
    ends = [outcome(*each) for each in islice(triples(20_000), 19_800, None)]
    assert not [why for end, why in ends if end == "broken"]
    solved = sum(end == "solved" for end, _ in ends)
    assert solved > 80
    assert not any(UNPROVEN in why for _, why in ends)


@pytest.mark.parametrize(
    ("stack", "task", "why"),
    [
        ("conflicting_sources:3+split_tools:2+tool_gone:2", "medical/chart/2", "first needed"),
        ("tool_gone:2+tool_subset:2", "poi/visit/3", "unsolvable task"),
        ("contradictory_request+tool_subset:3", "retail/bin/1", "unsolvable task"),
        ("no_such_entity:1+tool_subset:1", "retail/credit/4", "unsolvable task"),
        (
            "fatal_error:3+fatal_error_lookalike:3+verification_change:3",
            "retail/largest_order/4",
            UNPROVEN,
        ),
    ],
)
def test_what_cannot_be_solved_is_refused_by_reason(stack: str, task: str, why: str) -> None:
    with pytest.raises(NotApplicable, match=why):
        compose(clean(task), read_stack(stack))


@pytest.mark.parametrize(
    ("stack", "task"),
    [
        ("incomplete_information+query_underspecification:1+rule_update:2", "retail/reserve/11"),
        ("incomplete_information+intent_change:3+query_underspecification:1", "poi/nearer/18"),
    ],
)
def test_what_a_profile_tells_is_not_left_out_beside_it(stack: str, task: str) -> None:
    assert outcome(read_stack(stack), *_placed(task))[0] == "solved"


def _placed(task: str) -> tuple[str, str, int]:
    world, kind, index = task.split("/")
    return world, kind, int(index)
