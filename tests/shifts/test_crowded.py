"""The tools of a task among foreign ones: by rule, by number, from a file; none of them helps."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import clean_scenes, solved

from toolshift.core.errors import UsageError
from toolshift.core.scene import Scene
from toolshift.core.tool import Tool, as_openai, input_schema
from toolshift.core.world import POOLS
from toolshift.episode.budget import Budget
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.episode.oracle import OracleAgent
from toolshift.interop.schema import sample
from toolshift.shifts.foreign import TABLES, by_rule, plural, words_of_tools
from toolshift.shifts.registry import apply, find_shift
from toolshift.worlds.registry import find_world

WORLDS = ("poi", "medical", "retail")
LISTED: list[dict[str, Any]] = [
    {"name": "ship_crate", "description": "Ship a crate", "inputSchema": {"type": "object"}},
    {
        "name": "weigh_crate",
        "inputSchema": {"type": "object", "properties": {"crate": {"type": "string"}}},
    },
    {"name": "get_hours", "description": "Another one", "inputSchema": {"type": "object"}},
]


def crowd(scene: Scene) -> list[str]:
    own = {tool.name for tool in scene.clean.tools}
    return [tool.name for tool in scene.tools if tool.name not in own]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("pool", POOLS)
def test_scenes_are_solved_in_any_crowd(world: str, pool: str) -> None:
    for number, scene in enumerate(clean_scenes(world, 11, pool)):
        moved = apply(scene, "crowded_list", 1 + number % 3)
        assert len(crowd(moved)) == (50, 200, 400)[number % 3]
        assert solved(moved)[1].passed


@settings(max_examples=15)
@given(st.sampled_from(POOLS), st.integers(0, 7), st.integers(1, 1500))
def test_so_many_tools_are_made_as_are_asked_for_each_valid(pool: str, seed: int, n: int) -> None:
    made = by_rule(pool, seed, n, frozenset())
    names = {one.tool.name for one in made}
    assert len(made) == len(names) == n
    fewer = by_rule(pool, seed, n // 2, frozenset())
    assert [as_openai(f.tool) for f in fewer] == [as_openai(m.tool) for m in made[: n // 2]]
    for one in (*made[:5], *made[-5:]):
        assert len(one.tool.name) <= 64
        assert not one.tool.returns
        assert not one.tool.origin
        jsonschema_rs.validator_for(input_schema(one.tool))


def test_pools_share_no_service_and_no_object() -> None:
    words = {
        pool: {word for name, _, objects in TABLES[pool]["services"] for word in (name, *objects)}
        for pool in POOLS
    }
    for one, other in combinations(POOLS, 2):
        assert not words[one] & words[other]
    sentences = {pool: {text for *_, text in TABLES[pool]["reads"]} for pool in POOLS}
    assert not set.intersection(*sentences.values())


@settings(max_examples=30)
@given(st.sampled_from(POOLS), st.data())
def test_a_service_is_left_out_that_deals_with_what_the_scene_deals_with(
    pool: str, data: st.DataObject
) -> None:
    services = TABLES[pool]["services"]
    service, _, objects = data.draw(st.sampled_from(services))
    word = data.draw(st.sampled_from([service, *objects]))
    name = data.draw(
        st.sampled_from([f"get_{plural(word)}", f"{word}-find", f"open{word.capitalize()}"])
    )
    made = by_rule(pool, 0, 600, words_of_tools([Tool(name, "", (), ())]))
    assert len(made) == 600
    assert service not in {one.block.partition("_")[0] for one in made}


@pytest.mark.parametrize("pool", POOLS)
def test_a_foreign_tool_helps_nobody_and_is_no_ground_for_refusing(pool: str) -> None:
    scene = apply(make_scene(find_world("poi"), "listing", 0, pool=pool), "crowded_list", 3)
    foreign = [tool for tool in scene.tools if tool.name in crowd(scene)]
    episode = Episode(scene, Budget(calls=100, turns=100))
    shown = []
    for tool in foreign[:: len(foreign) // 12]:
        text, result = episode.call(tool.name, sample(input_schema(tool), "word"))
        assert result.data.get("error", {}).get("code") != "invalid_arguments", text
        assert not result.provoked
        shown.append(text)
    assert not any(step.true or step.evidence or step.effects for step in episode.steps)
    assert not any(str(ask.expected) in text for ask in scene.asks for text in shown)
    OracleAgent().play(episode)
    assert grade(episode).passed


def test_it_is_the_agents_fault_to_answer_with_what_a_foreign_tool_said() -> None:
    scene = apply(make_scene(find_world("poi"), "listing", 0), "crowded_list", 1)
    tool = next(tool for tool in scene.tools if tool.name in crowd(scene))
    episode = Episode(scene)
    episode.call(tool.name, sample(input_schema(tool), "word"))
    episode.refuse("not_found")
    verdict = grade(episode)
    assert not verdict.passed
    assert verdict.cause == "wrong_tool"


def test_the_list_is_the_same_in_every_process_and_few_are_made() -> None:
    scenes = [apply(scene, "crowded_list", 2) for scene in clean_scenes("poi", 33)]
    lists = {tuple(sorted(crowd(scene))) for scene in scenes}
    assert 1 < len(lists) <= 8
    first = json.dumps([as_openai(tool) for tool in scenes[0].tools])
    again = apply(next(clean_scenes("poi", 1)), "crowded_list", 2)
    assert json.dumps([as_openai(tool) for tool in again.tools]) == first


def test_any_number_of_tools_may_stand_around() -> None:
    scene = next(clean_scenes("medical", 1))
    assert len(crowd(apply(scene, "crowded_list_38", 2))) == 38
    assert find_shift("crowded_list_38").severities == (2,)
    for wrong in ("crowded_list_0", "crowded_list_", "crowded_list_08", "crowded_list_9999999"):
        with pytest.raises(UsageError, match="crowded_list_N"):
            find_shift(wrong)


def test_a_file_of_tools_is_a_shift(tmp_path: Path) -> None:
    functions = [
        {"type": "function", "function": {"name": one["name"], "parameters": one["inputSchema"]}}
        for one in LISTED
    ]
    for form, content in {"mcp": {"tools": LISTED}, "list": LISTED, "openai": functions}.items():
        file = tmp_path / f"{form}.json"
        file.write_text(json.dumps(content))
        shift = find_shift(str(file))
        assert shift.name.startswith(f"{form}@")
        assert shift.file == file.read_bytes()
        moved = apply(next(clean_scenes("poi", 1)), shift.name, 2)
        assert crowd(moved) == ["ship_crate", "weigh_crate"]  # get_hours is the scene's own
        episode = Episode(moved)
        assert episode.call("ship_crate", {})[1].data["error"]["code"] == "no_record"
        assert solved(moved)[1].passed


def test_a_file_that_is_no_list_of_tools_is_said(tmp_path: Path) -> None:
    file = tmp_path / "none.json"
    file.write_text('{"tools": []}')
    with pytest.raises(UsageError, match="no tool"):
        find_shift(str(file))


@pytest.mark.parametrize("above", ["tool_name_noise", "parameter_rename", "identity_erasure"])
def test_a_change_of_all_that_is_shown_reaches_the_crowd(above: str) -> None:
    scene = apply(apply(next(clean_scenes("poi", 1)), "crowded_list", 1), above, 3)
    crowded = apply(scene.clean, "crowded_list", 1)
    before = {(t.name, *(p.name for p in t.params)) for t in crowded.tools}
    after = {(t.name, *(p.name for p in t.params)) for t in scene.tools}
    assert len(after - before) > 20
    assert solved(scene)[1].passed
