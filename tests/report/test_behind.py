"""A cause names the change that brought it about: the shift, and the tool or parameter."""

from __future__ import annotations

import pytest
from scenes import clean_scenes, shifted
from strangers.one_mistake import AGENTS, play

from toolshift.core.scene import Scene
from toolshift.episode.causes import guilty_step
from toolshift.episode.grade import grade
from toolshift.report.behind import change_behind


def said(name: str, scene: Scene) -> str:
    """What is said of the failure of an agent in a scene; "" where it passes."""
    episode, _ = play(AGENTS[name], scene)
    cause = grade(episode).cause
    return change_behind(scene, episode.steps, guilty_step(scene, episode.steps, cause))


@pytest.mark.parametrize(
    ("agent", "shift", "words"),
    [
        ("old_name", "identity_erasure", "find_place is "),
        ("old_parameter", "parameter_rename", " of find_place is "),
        ("gives_up", "transient_error", " fails ("),
        ("gives_up", "redirect", " fails ("),
        ("leaves_out_required", "required_parameter", "needs "),
        ("wrong_kind", "tool_migrated", " came for "),
    ],
)
def test_the_changed_tool_or_parameter_is_named(agent: str, shift: str, words: str) -> None:
    for clean in clean_scenes("poi", 11):
        scene = shifted(clean, (shift, 2))
        behind = said(agent, scene) if scene else ""
        if behind:
            assert behind.startswith(f"What {shift} changed here: ")
            if words in behind:
                return
    raise AssertionError(f"no failure of {agent} under {shift} says {words!r}")


def test_without_a_change_nothing_is_said() -> None:
    clean = next(iter(clean_scenes("poi", 1)))
    assert not said("unwilling", clean)
    assert not said("transposes", clean)
    # The request alone is another: the call is as it was.
    worded = shifted(clean, ("query_typos", 2))
    assert worded is not None
    assert not said("invents_tool", worded)
