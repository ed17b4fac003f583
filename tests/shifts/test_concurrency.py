"""A server that carries out only some of the calls of one turn; the others can be repeated."""

from __future__ import annotations

import pytest
from scenes import clean_scenes, shifted, solved

from toolshift.agents.planted import planted
from toolshift.core.calls import ToolCall
from toolshift.core.message import Reply
from toolshift.core.scene import Applied
from toolshift.core.shift import NotApplicable
from toolshift.core.world import POOLS
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.interop.tools import from_mcp
from toolshift.measure.parallel import parallel_calls
from toolshift.shifts.live import live_scene
from toolshift.shifts.live import shifted as shifted_live
from toolshift.shifts.registry import apply


def several(scene_number: int, severity: int, count: int) -> Episode:
    scene = list(clean_scenes("poi", 11))[scene_number]
    episode = Episode(apply(scene, "concurrency_limit", severity))
    (first, *_) = scene.calls
    episode.take(Reply(calls=tuple(ToolCall(first.name, dict(first.given)) for _ in range(count))))
    return episode


@pytest.mark.parametrize("severity", [1, 2, 3])
def test_so_many_calls_of_a_turn_are_carried_out(severity: int) -> None:
    episode = several(0, severity, 5)
    assert [step.turn for step in episode.steps] == [0] * 5
    assert [step.ok for step in episode.steps] == [n < 4 - severity for n in range(5)]
    late = episode.steps[-1]
    assert (late.provoked, late.hint, late.true, late.effects) == (True, "retry", (), ())
    episode.take(Reply(calls=(ToolCall(late.name, dict(late.given)),)))
    assert episode.steps[-1].ok
    found = parallel_calls(episode.steps)
    assert (found.several, found.partly, found.failed) == (1, 1, 1 + severity)
    assert found.repeated == found.failed


@pytest.mark.parametrize("pool", POOLS)
def test_who_makes_one_call_a_turn_is_told_and_loses_nothing(pool: str) -> None:
    for world in ("poi", "medical", "retail"):
        for scene in clean_scenes(world, 11, pool):
            moved = apply(scene, "concurrency_limit", 3)
            pairs = zip(scene.tools, moved.tools, strict=True)
            assert all(after.description.startswith(was.description) for was, after in pairs)
            assert all(
                tool.description not in {t.description for t in scene.tools} for tool in moved.tools
            )
            assert solved(moved)[1].passed


def test_who_makes_all_calls_at_once_falls_with_severity() -> None:
    passed = []
    for severity in (1, 2, 3):
        grades = []
        for scene in clean_scenes("poi", 33):
            episode = Episode(apply(scene, "concurrency_limit", severity))
            planted("calls_at_once").play(episode)
            grades.append(grade(episode))
        passed.append(sum(one.passed for one in grades))
        assert {one.cause for one in grades} <= {"", "no_recovery"}
    assert 33 > passed[0] > passed[1] > passed[2]


def test_it_composes_with_errors_and_renames() -> None:
    for scene in clean_scenes("retail", 11):
        moved = shifted(
            scene, ("concurrency_limit", 3), ("transient_error", 2), ("semantic_rename", 3)
        )
        assert moved is None or solved(moved)[1].passed


def test_live_tools_know_no_turns() -> None:
    listed = [{"name": "ship", "inputSchema": {"type": "object"}}]
    with pytest.raises(NotApplicable, match="of one turn"):
        shifted_live(live_scene(from_mcp(listed)), (Applied("concurrency_limit", 1),))
