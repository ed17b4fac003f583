"""The cause that is named is the declared one, for agents that make one mistake in an episode."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from scenes import clean_scenes, shifted
from strangers import hold_out, one_mistake, second_look, third_look

from toolshift.core.scene import Scene
from toolshift.episode.grade import grade

AGENTS = {
    **one_mistake.AGENTS,
    **second_look.AGENTS,
    **third_look.AGENTS,
    **hold_out.AGENTS,
}
SHIFTS = (
    "identity_erasure",
    "parameter_rename",
    "schema_noise",
    "enum_change",
    "truncation",
    "transient_error",
    "redirect",
    "tool_added",
    "tool_migrated",
    "stale_tool_list",
    "new_precondition",
    "intent_change",
    "no_such_entity",
    "query_underspecification",
)
RIGHT, WRONG = 0.9, 0.05
"""What issue 50 asks for: nine in ten named rightly, at most one in twenty wrongly."""


@cache
def scenes() -> tuple[Scene, ...]:
    clean = list(clean_scenes("poi", 11))
    moved = [shifted(scene, (name, 2)) for scene in clean[::2] for name in SHIFTS]
    return (*clean, *(scene for scene in moved if scene is not None))


def verdicts(name: str) -> tuple[Counter[str], Counter[str]]:
    """How often the cause is right, near or wrong; and the causes themselves."""
    told: Counter[str] = Counter()
    named: Counter[str] = Counter()
    for scene in scenes():
        episode, declared = one_mistake.play(AGENTS[name], scene)
        grade_of = grade(episode)
        if declared is None or grade_of.passed or grade_of.void:
            continue
        near = "near" if grade_of.cause in declared.near else "wrong"
        told["right" if grade_of.cause in declared.right else near] += 1
        named[grade_of.cause] += 1
    return told, named


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_the_cause_that_leads_is_the_mistake(name: str) -> None:
    told, named = verdicts(name)
    if not told:
        pytest.skip("it does not fail in these scenes")
    assert named.most_common(1)[0][0] in AGENTS[name].says.right, named


@pytest.mark.slow
def test_of_single_failures_few_are_named_wrongly() -> None:
    total = sum((verdicts(name)[0] for name in AGENTS), Counter[str]())
    assert total["right"] >= RIGHT * total.total(), total
    assert total["wrong"] <= WRONG * total.total(), total
