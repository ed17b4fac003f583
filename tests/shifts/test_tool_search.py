"""Tools that are deferred until a search finds them, and then called by their own names."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from connect.shop_server import TOOLS
from scenes import clean_scenes, shifted, solved

from toolshift.agents.planted import planted
from toolshift.core.scene import Applied, Scene
from toolshift.core.world import POOLS
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.interop.tools import from_mcp
from toolshift.runs.cell import build
from toolshift.runs.suite import read_task
from toolshift.shifts.live import live_scene
from toolshift.shifts.live import shifted as shifted_live
from toolshift.shifts.registry import apply

WORLDS = ("poi", "medical", "retail")


def searched(scene: Scene, query: str, episode: Episode | None = None) -> tuple[Episode, list[Any]]:
    episode = episode or Episode(scene)
    (search,) = (tool for tool in episode.tools if tool.lists)
    _, result = episode.call(search.name, {search.params[0].name: query})
    return episode, result.data


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("world", WORLDS)
def test_the_oracle_finds_its_way_alone_and_in_a_crowd(world: str, pool: str) -> None:
    applied = 0
    for number, scene in enumerate(clean_scenes(world, 11, pool)):
        crowd = [("crowded_list", number % 3 + 1)] if number % 2 else []
        moved = shifted(scene, ("tool_search", 1 + number % 3), *crowd)
        applied += moved is not None
        if moved is not None:
            assert moved.tools[0].lists
            assert [tool.name for tool in moved.tools[1:]] == [
                scene.calls[0].name for _ in moved.tools[1:]
            ]
            assert len(moved.tools) == (2 if moved.shifts[-1].severity == 1 else 1)
            assert solved(moved)[1].passed
    assert applied >= 9


def test_what_is_found_is_in_the_list_under_its_own_name_and_found_once() -> None:
    scene = apply(next(clean_scenes("poi", 1)), "tool_search", 3)
    episode, found = searched(scene, "place")
    shown = [tool.name for tool in episode.tools]
    assert len(found) == 3
    assert set(shown[1:]) == {entry["name"] for entry in found}
    assert episode.steps[-1].tools == tuple(shown)
    _, more = searched(scene, "place", episode)
    assert not {entry["name"] for entry in more} & {entry["name"] for entry in found}
    _, nothing = searched(scene, "zzz", episode)
    assert list(nothing[0]) == ["message"]
    unknown = next(
        t.name for t in scene.clean.tools if t.name not in {x.name for x in episode.tools}
    )
    assert episode.call(unknown, {})[1].data["error"]["code"] == "unknown_tool"


def test_a_tool_that_a_result_names_is_loaded_with_it() -> None:
    loaded = []
    for scene in clean_scenes("poi", 11):
        moved = shifted(scene, ("redirect", 2), ("tool_search", 3))
        if moved is not None:
            episode, verdict = solved(moved)
            assert verdict.passed
            loaded += [step.tools for step in episode.steps if step.hint == "use"]
    assert any(loaded)  # of the others a search had shown the successor before


@pytest.mark.parametrize(
    "shift", ["semantic_rename:3", "identity_erasure:2", "merged_tools", "stale_tool_list:3"]
)
def test_shifts_reach_what_is_deferred(shift: str) -> None:
    scene = build(read_task("retail/exchange/0", shift, under="tool_search:2+crowded_list_38"))
    before = {tool.name for tool in scene.clean.reachable}
    assert {tool.name for tool in scene.reachable} != before or shift.startswith("stale")
    assert solved(scene)[1].passed


def outcomes(agent: str, severity: int) -> tuple[int, Counter[str]]:
    passed, causes = 0, Counter[str]()
    for world in ("poi",):
        for scene in clean_scenes(world, 8):
            moved = shifted(scene, ("tool_search", severity), ("crowded_list", 3))
            if moved is not None:
                episode = Episode(moved)
                planted(agent).play(episode)
                verdict = grade(episode)
                passed += verdict.passed
                causes[verdict.cause] += not verdict.passed
    return passed, causes


def test_who_never_searches_fails_and_who_searches_little_fails_with_severity() -> None:
    passed, causes = outcomes("never_searches", 2)
    assert passed == 0
    assert causes.most_common(1)[0][0] == "wrong_refusal"
    many, _, few = (outcomes("searches_once", severity)[0] for severity in (1, 2, 3))
    assert many > few
    assert outcomes("searches_once", 3)[1].most_common(1)[0][0] == "wrong_refusal"


def test_a_call_of_a_foreign_tool_that_a_search_found_is_a_wrong_tool() -> None:
    scene = build(read_task("poi/listing", under="tool_search:1+crowded_list:3"))
    episode, found = searched(scene, "ticket queue incident dashboard metric")
    own = {name for tool in scene.reachable if tool.origin for name in (tool.name,)}
    name = next(entry["name"] for entry in found if entry["name"] not in own)
    tool = next(tool for tool in episode.tools if tool.name == name)
    required: dict[str, Any] = {p.name: "x" for p in tool.params if p.required}
    episode.call(name, required)
    episode.refuse("not_found")
    assert grade(episode).cause in ("wrong_tool", "bad_arguments")


def test_two_ways_to_a_deferred_tool_are_refused() -> None:
    scene = shifted(next(clean_scenes("poi", 1)), ("tool_search", 2))
    assert scene is not None
    assert shifted(scene, ("tool_search", 1)) is None


def test_live_tools_stand_behind_it_too() -> None:
    scene = shifted_live(live_scene(from_mcp(TOOLS)), (Applied("tool_search", 3),))
    episode = Episode(scene)
    assert [tool.lists for tool in episode.tools] == [True]
    _, found = searched(scene, "order", episode)
    assert {entry["name"] for entry in found} <= {tool["name"] for tool in TOOLS}
