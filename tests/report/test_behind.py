"""A cause names the argument that is wrong, and the change that brought it about."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest
from scenes import clean_scenes, shifted
from strangers import one_mistake, second_look, third_look
from strangers.one_mistake import play

from toolshift.core.scene import Scene
from toolshift.core.tool import Param
from toolshift.episode.causes import guilty_step
from toolshift.episode.grade import grade
from toolshift.report.behind import _beside_the_call, _of_tool, change_behind, wrong_arguments

AGENTS = {**one_mistake.AGENTS, **second_look.AGENTS, **third_look.AGENTS}


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
        ("wrong_kind", "tool_migrated", " replaced "),
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


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("takes_the_first_choice", 'day is "monday", expected "thursday"'),
        ("trims_an_id", 'place_id is "'),
        ("leaves_out_required", "is left out, expected "),
        ("extra_parameter", "include_everything is true, expected left out"),
    ],
)
def test_the_wrong_argument_is_named_with_the_expected_one(agent: str, words: str) -> None:
    told = []
    for scene in clean_scenes("poi", 11):
        episode, declared = play(AGENTS[agent], scene)
        cause = grade(episode).cause
        at = guilty_step(scene, episode.steps, cause)
        told.append(wrong_arguments(scene, episode.steps, at, cause) if declared else "")
    assert any(words in one for one in told), told


def test_a_value_of_an_earlier_request_is_named_by_what_this_one_expects() -> None:
    """The call would have been right in the turn before, so it is compared with this turn's."""
    clean = next(scene for scene in clean_scenes("poi", 11) if scene.task.kind == "hours")
    scene = shifted(clean, ("intent_change", 1))
    assert scene is not None
    episode, _ = play(AGENTS["keeps_one_old_value"], scene)
    cause = grade(episode).cause
    at = guilty_step(scene, episode.steps, cause)
    assert cause == "ignored_update"
    assert "expected " in wrong_arguments(scene, episode.steps, at, cause)


def test_where_no_argument_is_wrong_none_is_named() -> None:
    for scene in clean_scenes("poi", 3):
        for agent in ("decoy", "unwilling", "invents_tool", "stops_one_step_early"):
            episode, _ = play(AGENTS[agent], scene)
            cause = grade(episode).cause
            at = guilty_step(scene, episode.steps, cause)
            assert not wrong_arguments(scene, episode.steps, at, cause)


def test_what_changed_of_a_parameter_that_the_call_leaves_out_is_not_blamed() -> None:
    clean = next(iter(clean_scenes("poi", 1)))
    call = next(step for step in clean.calls if step.kind == "call")
    tool = next(one for one in clean.reachable if one.name == call.name)
    passed, left_out = tool.params[0], Param("order", "order", {"enum": ["a", "b"]}, False)
    other = dataclasses.replace(left_out, schema={"enum": ["A", "B"]})
    renamed = dataclasses.replace(passed, name="other_name")

    def told(*params: Param) -> str:
        before = msgspec.structs.replace(tool, params=(passed, left_out))
        after = msgspec.structs.replace(tool, params=params)
        return "; ".join([*_of_tool(before, after, call)] or _beside_the_call(before, after, call))

    assert "other_name" in told(renamed, other)
    assert "choices" not in told(renamed, other)
    assert "choices" in told(passed, other)
    retold = dataclasses.replace(passed, schema={**passed.schema, "description": "From 0 to 100."})
    assert told(retold, left_out) == f"{passed.name} of {tool.name} has another description"


def test_a_parameter_that_is_passed_by_its_old_name_is_not_left_out() -> None:
    clean = next(iter(clean_scenes("poi", 1)))
    call = next(step for step in clean.calls if step.kind == "call")
    tool = next(one for one in clean.reachable if one.name == call.name)
    passed = dataclasses.replace(tool.params[0], required=False)
    renamed = dataclasses.replace(
        passed, name="other_name", schema={**passed.schema, "default": "x"}
    )
    before = msgspec.structs.replace(tool, params=(passed,))
    after = msgspec.structs.replace(tool, params=(renamed,))
    assert [*_of_tool(before, after, call)] == [f"{passed.name} of {tool.name} is other_name"]
    unsaid = msgspec.structs.replace(call, arguments={})
    assert "left out" in " ".join(_of_tool(before, after, unsaid))
