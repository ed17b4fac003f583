"""The coming change: from two tool lists to a shift that is exactly their difference."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from scenes import proven, solved

from toolshift.agents.planted import planted
from toolshift.core.errors import UsageError
from toolshift.core.scene import Applied, Scene
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import as_openai
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.shifts.registry import compose, find_shift
from toolshift.shifts.release.file import FORMAT, ShiftFile, find_file_shift, read_shift_file
from toolshift.shifts.release.inputs import Side, read_side
from toolshift.shifts.release.mapping import Answers, read_mapping, write_mapping
from toolshift.shifts.release.release import _passes
from toolshift.shifts.release.resolve import settle
from toolshift.shifts.stacks import read_arms
from toolshift.worlds.own import load
from toolshift.worlds.registry import find_world

Listed = list[dict[str, Any]]
Edit = Callable[[dict[str, dict[str, Any]]], None]


def poi() -> Listed:
    return [as_openai(tool) for tool in find_world("poi").tools]


def edited(*edits: Edit) -> Listed:
    """The tools of poi after some edits of their functions, by old name."""
    listed = copy.deepcopy(poi())
    for edit in edits:
        edit({tool["function"]["name"]: tool["function"] for tool in listed})
    return [tool for tool in listed if tool["function"].get("name")]


def rename(old: str, new: str) -> Edit:
    return lambda tools: tools[old].update(name=new)


def remove(name: str) -> Edit:
    return lambda tools: tools[name].pop("name") and None


def rename_param(tool: str, old: str, new: str) -> Edit:
    def edit(tools: dict[str, dict[str, Any]]) -> None:
        schema = tools[tool]["parameters"]
        schema["properties"] = {
            new if key == old else key: inner for key, inner in schema["properties"].items()
        }
        schema["required"] = [new if key == old else key for key in schema["required"]]

    return edit


def side(folder: Path, name: str, tools: Any) -> Side:
    file = folder / name
    file.write_text(json.dumps(tools))
    return read_side(str(file))


def made(
    folder: Path, old: Listed, new: Listed, answers: Answers | None = None, name: str = "monday"
) -> str:
    """The path of a shift between two tool lists; the best guesses are taken."""
    before, after = side(folder, "old.json", old), side(folder, "new.json", new)
    found = settle(before, after, answers or Answers(), accept=True)
    file = folder / f"{name}.json"
    file.write_bytes(ShiftFile(FORMAT, name, before, after, found.answers).encode())
    return str(file)


def scene(kind: str = "visit") -> Scene:
    return make_scene(find_world("poi"), kind, 0)


def under(path: str, kind: str = "visit", *more: Applied) -> Scene:
    return compose(scene(kind), [Applied(find_shift(path).name, 2), *more])


# -- what became what ------------------------------------------------------------------------------


def test_the_same_lists_have_no_difference(tmp_path: Path) -> None:
    path = made(tmp_path, poi(), poi())
    with pytest.raises(NotApplicable, match="nothing that is shown changes"):
        under(path)


def test_renames_of_tools_and_parameters_are_found(tmp_path: Path) -> None:
    new = edited(
        rename_param("get_hours", "place_id", "placeId"), rename("get_hours", "fetchHours")
    )
    before, after = side(tmp_path, "a.json", poi()), side(tmp_path, "b.json", new)
    found = settle(before, after, Answers())
    assert found.answers.renamed == {"get_hours": "fetchHours"}
    assert found.answers.params == {"get_hours": {"place_id": "placeId"}}
    assert not found.questions


def test_the_order_of_a_list_decides_nothing(tmp_path: Path) -> None:
    new = edited(rename("get_hours", "opening_times"), rename("find_place", "locate"))
    before = side(tmp_path, "a.json", poi())
    found = [
        settle(before, side(tmp_path, "b.json", tools), Answers(), accept=True).answers.renamed
        for tools in (new, new[::-1])
    ]
    assert found[0] == found[1]


def test_what_is_doubtful_is_asked_and_an_answer_settles_it(tmp_path: Path) -> None:
    def other(tools: dict[str, dict[str, Any]]) -> None:
        tools["get_hours"].update(name="schedule", description="Opening times of one place.")

    before, after = side(tmp_path, "a.json", poi()), side(tmp_path, "b.json", edited(other))
    found = settle(before, after, Answers())
    (question,) = found.questions
    assert (question.path, question.guess) == (("renamed", "get_hours"), "schedule")
    file = tmp_path / "mapping.toml"
    file.write_text(write_mapping(found.answers, {"renamed.get_hours": question.note}))
    assert 'get_hours = "?"  # perhaps schedule' in file.read_text()
    file.write_text(file.read_text().replace('"?"', '"schedule"'))
    again = settle(before, after, read_mapping(file))
    assert not again.questions
    assert again.answers.renamed == {"get_hours": "schedule"}
    file.write_text(file.read_text().replace('"schedule"', '""'))
    none = settle(before, after, read_mapping(file)).answers
    assert (none.removed, none.added, none.renamed) == (["get_hours"], ["schedule"], {})


def test_an_answer_about_an_unknown_tool_offers_the_nearest(tmp_path: Path) -> None:
    one = side(tmp_path, "a.json", poi())
    with pytest.raises(UsageError, match=r"old tool 'get_hour'.*get_hours"):
        settle(one, one, Answers(renamed={"get_hour": "x"}))


def test_a_mapping_file_survives_writing_and_reading(tmp_path: Path) -> None:
    answers = Answers(
        renamed={"a.b": 'say "hi"\n'},
        added=["é"],
        defaults={"x y": {"n": 3, "flags": [True, "b"], "deep": {"k": 1.5}}},
    )
    file = tmp_path / "m.toml"
    file.write_text(write_mapping(answers, {}))
    said = read_mapping(file)
    assert (said.renamed, said.added, said.defaults) == (
        answers.renamed,
        answers.added,
        answers.defaults,
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [("renamed = 3", "object"), ("rename = {}", "rename"), ("= 1", "TOML")],
)
def test_a_bad_mapping_file_is_said(tmp_path: Path, content: str, why: str) -> None:
    file = tmp_path / "m.toml"
    file.write_text(content)
    with pytest.raises(UsageError, match=why):
        read_mapping(file)


# -- sides -----------------------------------------------------------------------------------------


def test_a_side_is_read_from_any_of_the_forms(tmp_path: Path) -> None:
    document = {
        "openapi": "3.1.0",
        "paths": {"/orders/{id}": {"get": {"operationId": "getOrder", "summary": "One order."}}},
    }
    (tmp_path / "api.yaml").write_text(yaml.safe_dump(document))
    mcp = {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]}
    kinds = [
        read_side(str(tmp_path / "api.yaml")),
        side(tmp_path, "mcp.json", mcp),
        side(tmp_path, "openai.json", poi()),
    ]
    assert [(one.kind, one.tools[0]["name"]) for one in kinds] == [
        ("openapi", "getOrder"),
        ("mcp", "act"),
        ("openai", "search_places"),
    ]


@pytest.mark.parametrize("content", ["{", '{"a": 1}', "[]", '[{"inputSchema": {}}]', "[1]"])
def test_a_file_that_is_no_tool_list_is_said(tmp_path: Path, content: str) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(UsageError, match=r"x\.json"):
        read_side(str(tmp_path / "x.json"))


# -- the shift -------------------------------------------------------------------------------------


def test_a_rename_is_carried_and_costs_those_who_memorised(tmp_path: Path) -> None:
    new = edited(
        *(rename(tool["function"]["name"], f"v2_{tool['function']['name']}") for tool in poi())
    )
    path = made(tmp_path, poi(), new)
    after = under(path)
    assert [as_openai(tool) for tool in after.tools] == new
    assert proven(after)
    episode = Episode(after)
    planted("memorises_names").play(episode)
    assert not grade(episode).passed
    assert episode.steps[0].error == "unknown_tool"
    shift = find_shift(path)
    assert (shift.tier, shift.dimension, shift.level) == ("perception", "action", 1)


def test_a_task_that_needs_a_removed_tool_ends_in_a_refusal(tmp_path: Path) -> None:
    needed = scene().calls[0].name
    path = made(tmp_path, poi(), edited(remove(needed)))
    after = under(path)
    assert after.outcome.refusal == "tool_unavailable"
    assert proven(after)
    _, verdict = solved(after)
    assert verdict.right_reason
    assert find_shift(path).tier == "interaction"


OWN_TOOLS = Path(__file__).parents[2] / "examples" / "own_tools" / "tasks.yaml"


def test_a_task_whose_right_end_is_a_refusal_goes_along(tmp_path: Path) -> None:
    world = load(OWN_TOOLS)
    task = make_scene(world, "status", 2)
    assert task.outcome.refusal == "not_found"
    old = [as_openai(tool) for tool in world.tools]
    new = copy.deepcopy(old)
    for tool in new:
        tool["function"]["name"] = f"v2_{tool['function']['name']}"
    spare = [tool for tool in new if tool["function"]["name"] != "v2_refund_order"]
    after = compose(task, [Applied(find_shift(made(tmp_path, old, spare)).name, 2)])
    assert after.outcome == task.outcome
    assert proven(after)
    gone = [tool for tool in new if tool["function"]["name"] != "v2_get_order"]
    path = made(tmp_path, old, gone, name="sunday")
    with pytest.raises(NotApplicable, match="cannot be expressed in the new tools"):
        compose(task, [Applied(find_shift(path).name, 2)])


def test_an_added_tool_is_shown_and_says_that_it_is_not_there(tmp_path: Path) -> None:
    more = {"type": "function", "function": {"name": "zap", "description": "Zaps everything."}}
    after = under(made(tmp_path, poi(), [*poi(), more]))
    assert after.tools[-1].name == "zap"
    assert proven(after)
    _, result = Episode(after).call("zap", {})
    assert (result.ok, result.provoked, result.data["error"]["code"]) == (
        False,
        True,
        "not_available",
    )


def test_a_change_composes_with_shifts_over_it(tmp_path: Path) -> None:
    new = edited(rename("get_hours", "v2_get_hours"), rename("find_place", "v2_find_place"))
    path = made(tmp_path, poi(), new)
    (arm,) = read_arms(f"{path}+format_drift:1+parameter_rename:2")
    assert "@" in arm.shifts[0].shift
    after = compose(scene(), arm.shifts)
    assert len(after.layers) == 3
    assert proven(after)


def test_a_scene_with_other_tools_is_left_alone(tmp_path: Path) -> None:
    old = edited(rename("get_hours", "get_hour"), rename_param("find_place", "city", "town"))
    path = made(tmp_path, old, edited())
    with pytest.raises(
        NotApplicable, match=r"find_place has other.*no get_hour \(nearest: get_hours"
    ):
        under(path)


# -- the file --------------------------------------------------------------------------------------


def test_a_shift_is_found_again_by_its_name_and_never_if_changed(tmp_path: Path) -> None:
    path = made(tmp_path, poi(), edited(rename("get_hours", "v2_get_hours")))
    name = find_shift(path).name
    assert name.startswith("monday@")
    assert find_file_shift(name) is find_shift(name)
    with pytest.raises(UsageError, match="made from a file that is not here"):
        find_shift("tuesday@12345678")
    with pytest.raises(UsageError, match=r"has changed.*monday@"):
        find_shift("monday@12345678")
    content = json.loads(Path(path).read_text())
    content["new"]["tools"][0]["description"] = "Edited."
    Path(path).write_text(json.dumps(content))
    with pytest.raises(UsageError, match="not those that it was made from"):
        read_shift_file(Path(path))
    with pytest.raises(UsageError, match="cannot be read"):
        find_shift(str(tmp_path / "nowhere.json"))


@pytest.mark.parametrize(
    ("given", "path", "passes"),
    [
        ({"lines": [{"gift": None}]}, "lines[].gift", True),
        ({"lines": [{"sku": 1}]}, "lines[].gift", False),
        ({"lines": []}, "lines[].gift", False),
        ({"cells": [[{"x": 1}]]}, "cells[][].x", True),
        ({"cells": [[{"y": 1}]]}, "cells[][].x", False),
        ({"prices": {"EUR": {"net": 1}}}, "prices.*.net", True),
        ({"prices": {"EUR": {"tax": 1}}}, "prices.*.net", False),
        ({"prices": {}}, "prices.*", False),
        ({"a": {"b.c": [{"x": 1}]}}, "a.b.c[].x", True),
        ({"a.b": [{"x": 1}]}, "a.b[].x", True),
        ({"ab": 1}, "a", False),
    ],
)
def test_a_value_is_found_at_each_kind_of_path(
    given: dict[str, Any], path: str, passes: bool
) -> None:
    assert _passes(given, path) is passes
