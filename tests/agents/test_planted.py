"""Planted weaknesses are found: each ranked first, and none in a sound agent."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from scenes import clean_scenes, shifted

from toolshift.agents.planted import ALSO_RIGHT, PLANTED, planted
from toolshift.core.errors import UsageError
from toolshift.core.scene import Scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.episode.oracle import OracleAgent
from toolshift.shifts.registry import shifts


@cache
def scenes() -> tuple[Scene, ...]:
    """Every shift at severity 2 on a task of each kind of poi, and the clean tasks.

    One search finds enough where there are few tools, so there is one in a crowd. Units decide in
    few tasks of poi, so those of the other worlds are there as well; choices are beyond guessing at
    severity 3.
    """
    clean = list(clean_scenes("poi", 11))
    moved = [shifted(scene, (name, 2)) for scene in clean for name in shifts()]
    moved += [shifted(scene, ("tool_search", 3), ("crowded_list", 3)) for scene in clean]
    others = [scene for world in ("medical", "retail") for scene in clean_scenes(world, 33)]
    moved += [shifted(scene, ("unit_change", 2)) for scene in others]
    moved += [shifted(scene, ("enum_change", 3)) for scene in others]
    return (*clean, *(scene for scene in moved if scene is not None))


def causes(agent: object) -> Counter[str]:
    found: Counter[str] = Counter()
    for scene in scenes():
        episode = Episode(scene)
        agent.play(episode)  # type: ignore[attr-defined]
        verdict = grade(episode)
        if not verdict.passed:
            found[verdict.cause] += 1
    return found


def test_a_sound_agent_has_no_weakness() -> None:
    assert not causes(OracleAgent())


@pytest.mark.parametrize("strength", ["", pytest.param("@0.5", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", sorted(PLANTED))
def test_a_planted_weakness_is_ranked_first(name: str, strength: str) -> None:
    ((first, _),) = causes(planted(name + strength)).most_common(1)
    assert first in (PLANTED[name][1], ALSO_RIGHT.get(name))


@pytest.mark.parametrize("name", ["memorises_names+never_refuses", "gives_up+parrots"])
def test_both_weaknesses_of_a_mixture_are_named(name: str) -> None:
    expected = {PLANTED[part][1] for part in name.split("+")}
    assert expected <= {cause for cause, _ in causes(planted(name)).most_common(3)}


def test_half_strength_is_half_of_the_episodes() -> None:
    full = causes(planted("always_refuses")).total()
    half = causes(planted("always_refuses@0.5")).total()
    assert 0.2 < half / full < 0.8


@pytest.mark.parametrize("spec", ["gives_upp", "noisy@2", "noisy@much"])
def test_a_wrong_spec_is_explained(spec: str) -> None:
    with pytest.raises(UsageError, match=r"gives_up|from 0 to 1"):
        planted(spec)
