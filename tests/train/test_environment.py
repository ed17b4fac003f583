"""Scenes as TRL environments: the tools as methods, the verdict as the reward."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

pytest.importorskip("transformers")

from transformers.utils import get_json_schema

from toolshift.core.errors import UsageError
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.shifts.registry import apply
from toolshift.train.environment import environment_class, environments
from toolshift.worlds.registry import find_world


def scene(kind="hours", index=0):
    return make_scene(find_world("poi"), kind, index)


def methods_of(environment):
    named = inspect.getmembers(type(environment), predicate=inspect.isfunction)
    return {n for n, _ in named if n not in ("reset", "get_reward") and not n.startswith("_")}


def play(made, number):
    """The oracle's steps, called as TRL would call them."""
    row = made.rows[number]
    environment = made.factories[row["environment"]]()
    assert environment.reset(**row) is None
    one = environment._episode.scene
    said = []
    for step in one.rehearsal:
        if step.kind == "call":
            said.append(getattr(environment, step.name)(**step.arguments))
            assert said[-1] == step.text
        else:
            said.append(environment.final_answer(answer=step.said))
    return environment, said


def test_each_list_of_tools_is_a_class_and_scenes_share_it():
    renamed = apply(scene(), "semantic_rename", 2)
    made = environments([scene(), scene("listing"), renamed])
    names = [row["environment"] for row in made.rows]
    assert names[0] == names[1] != names[2]
    for number, one in ((0, scene()), (2, renamed)):
        shown = {tool["function"]["name"] for tool in Episode(one).observation.tools}
        assert methods_of(made.factories[names[number]]()) == shown


def test_classes_of_other_scenes_have_other_names():
    one, other = environments([scene()]), environments([scene(index=1)])
    assert one.factories.keys().isdisjoint(other.factories)
    assert environments([scene()]).rows == one.rows


def test_the_oracle_earns_one_through_the_methods():
    made = environments([scene(), scene("look_then_book")])
    environment, _ = play(made, 0)
    assert environment.get_reward() == 1.0
    environment, said = play(made, 1)
    assert environment.get_reward() == 1.0
    second = scene("look_then_book").asks[1].text
    assert any(second in each for each in said)  # the further request, as a result


def test_an_unfinished_episode_earns_nothing():
    made = environments([scene()])
    environment = made.factories[made.rows[0]["environment"]]()
    environment.reset(**made.rows[0])
    assert environment.get_reward() == 0.0
    environment.reset(**made.rows[0])
    environment.final_answer("BCDF-GHJK")
    assert environment.get_reward() == 0.0


def test_a_question_that_nobody_understands_is_no_way_out():
    made = environments([apply(scene("booking"), "query_underspecification", 2)])
    environment = made.factories[made.rows[0]["environment"]]()
    environment.reset(**made.rows[0])
    environment.ask_user("What colour is the sky?")
    environment.final_answer("BCDF-GHJK")
    assert environment.get_reward() == 0.0


def test_transformers_reads_the_schemas_back():
    made = environments([scene("booking")])
    environment = made.factories[made.rows[0]["environment"]]()
    for tool in Episode(scene("booking")).observation.tools:
        shown = tool["function"]
        read = get_json_schema(getattr(environment, shown["name"]))["function"]
        assert read["description"].split() == shown["description"].split()
        assert set(read["parameters"].get("properties", {})) == set(
            shown["parameters"].get("properties", {})
        )
        assert set(read["parameters"].get("required", ())) == set(
            shown["parameters"].get("required", ())
        )


def test_names_that_no_method_can_have_are_refused():
    tools = [{"function": {"name": "get-hours", "description": "x", "parameters": {}}}]
    with pytest.raises(UsageError, match="'get-hours' cannot be a method"):
        environment_class("Tools", tools, [].__getitem__)


def _finds_trains(parameter: str) -> list[dict[str, Any]]:
    properties = {parameter: {"type": "string", "description": "City"}}
    schema = {"type": "object", "properties": properties, "required": [parameter]}
    function = {"name": "find_trains", "description": "Finds trains.", "parameters": schema}
    return [{"type": "function", "function": function}]


@pytest.mark.parametrize("name", ["from", "class", "from-city", "self", "2nd"])
def test_a_parameter_that_no_method_can_have_is_named_as_one(name: str) -> None:
    said = f"^find_trains, parameter {name}: .*{name!r} cannot be a parameter of a method"
    with pytest.raises(UsageError, match=said):
        environment_class("Tools", _finds_trains(name), [].__getitem__)


@pytest.mark.parametrize("name", ["reset", "get_reward", "_from", "name", "tools", "given"])
def test_a_parameter_may_have_a_name_that_no_tool_has(name: str) -> None:
    made = environment_class("Tools", _finds_trains(name), [].__getitem__)
    assert list(inspect.signature(made.find_trains).parameters) == ["self", name]
    shown = get_json_schema(made().find_trains)["function"]["parameters"]
    assert shown["required"] == [name]
