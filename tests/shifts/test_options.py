"""Optional parameters and idle sentences for training: new each time, and never needed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolshift.core.scene import Scene
from toolshift.core.shift import TIERS
from toolshift.data.augment import Recipe, augmented
from toolshift.episode.draw import make_scene
from toolshift.shifts.registry import compose, find_shift
from toolshift.shifts.stacks import read_arms, read_stack
from toolshift.shifts.training_families import PAFT, TRAINING_FAMILIES
from toolshift.train.scenes import Mix, draws
from toolshift.worlds.registry import find_world

NAMES = ("varied_options", "idle_sentences")
WORLDS = ("poi", "medical", "retail")


def clean(number: int = 1, world: str = "poi") -> Scene:
    return make_scene(find_world(world), next(iter(find_world(world).kinds)), number, pool="train")


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("severity", [1, 2, 3])
def test_options_are_new_each_time_and_the_oracle_leaves_them_out(
    world: str, severity: int
) -> None:
    seen = set()
    for number in range(20):
        scene = compose(clean(number, world), read_stack(f"varied_options:{severity}"))
        needed = {step.name for step in scene.calls}
        before = {tool.name: len(tool.params) for tool in clean(number, world).tools}
        added = {t.name: t.params[before[t.name] :] for t in scene.tools}
        assert any(added[name] for name in needed)
        assert all(len(params) <= severity for params in added.values())
        assert not any(param.required for params in added.values() for param in params)
        spare = {(name, p.name) for name, params in added.items() for p in params}
        assert not spare & {(s.name, key) for s in scene.calls for key in s.arguments or {}}
        seen |= {name for _, name in spare}
    assert len(seen) > 50 * severity


@pytest.mark.parametrize("severity", [1, 2, 3])
def test_idle_sentences_are_others_each_time_and_leave_what_is_said(severity: int) -> None:
    seen = set[str]()
    for number in range(20):
        before = {tool.name: tool.description.removesuffix(".") for tool in clean(number).tools}
        for tool in compose(clean(number), read_stack(f"idle_sentences:{severity}")).tools:
            assert tool.description.startswith(before[tool.name])
            idle = tool.description.removeprefix(before[tool.name]).strip(". ")
            told = idle.split(". ") if idle else []
            assert len(told) <= severity
            seen |= set(told)
    assert len(seen) > 50 * severity


def test_no_suite_draws_them() -> None:
    for name in (*NAMES, "opaque_parameters"):
        assert find_shift(name).tier == "none"
        for chosen in ("all", *TIERS):
            assert name not in {one.shift for arm in read_arms(chosen) for one in arm.shifts}


def test_paft_meets_them_without_being_asked() -> None:
    assert {"options", "parameters"} <= set(PAFT)
    drawn = {one.shift for scene in draws(Mix(alpha=1.0, size=200), 60) for one in scene.shifts}
    assert {*NAMES, "opaque_parameters"} <= drawn


def test_the_family_of_parameters_leaves_none_with_a_name_that_tells() -> None:
    for scene in draws(Mix(alpha=1.0, size=200, shifts=("parameters",)), 20):
        if scene.shifts:
            assert "opaque_parameters" in {one.shift for one in scene.shifts}


def row(number: int, description: str = "Gets the rate of a currency.") -> dict[str, Any]:
    """A conversation with one tool."""
    parameters = {
        "type": "object",
        "properties": {"code": {"type": "string"}},
        "required": ["code"],
    }
    function = {"name": "get_rate", "description": description, "parameters": parameters}
    call = {"name": "get_rate", "arguments": '{"code": "EUR"}'}
    calls = [{"id": "a", "type": "function", "function": call}]
    return {
        "messages": [
            {"role": "user", "content": f"What is the rate of the euro, for case {number}?"},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "a", "content": '{"rate": 1.1}'},
            {"role": "assistant", "content": "It is 1.1."},
        ],
        "tools": [{"type": "function", "function": function}],
    }


def shifted(given: dict[str, Any], shift: str) -> Any:
    """What becomes of a row."""
    return augmented(given, json.dumps(given).encode(), Recipe(1.0, (shift,)))


def test_a_data_set_gets_options_that_no_call_takes() -> None:
    named = set()
    for number in range(8):
        given = row(number)
        for one in shifted(given, "varied_options:2").rows:
            schema = one["tools"][0]["function"]["parameters"]
            assert schema["required"] == ["code"]
            assert one["messages"] == given["messages"]
            named |= set(schema["properties"]) - {"code"}
    assert len(named) > 1


@pytest.mark.parametrize(
    ("said", "renamed"),
    [
        (("The amount.", "The code."), {"amount", "code"}),
        (("The amount.", ""), {"amount"}),
        (("The amount.", " \n"), {"amount"}),
        (("An account.", "An  account."), set()),
        (("", ""), set()),
    ],
)
def test_no_parameter_loses_the_only_thing_that_tells_it(
    said: tuple[str, str], renamed: set[str]
) -> None:
    given = row(1)
    properties = {
        name: {"type": "string", "description": text}
        for name, text in zip(("amount", "code"), said, strict=True)
    }
    given["tools"][0]["function"]["parameters"]["properties"] = properties
    rows = shifted(given, "opaque_parameters:3").rows
    assert bool(rows) == bool(renamed)
    for one in rows:
        shown = one["tools"][0]["function"]["parameters"]["properties"]
        assert set(properties) - set(shown) == renamed
        assert [each["description"] for each in shown.values()] == list(said)


@pytest.mark.parametrize("description", ["Gets a rate", "Gets a rate.", "Gets a rate!"])
def test_one_tool_of_any_ending_gets_a_sentence_each_time(description: str) -> None:
    for number in range(12):
        [one] = shifted(row(number, description), "idle_sentences:1").rows
        text = one["tools"][0]["function"]["description"]
        end = description if description[-1] in ".!" else f"{description}."
        assert text.startswith(f"{end} ")
        assert len(text) > len(end) + 5


def test_the_family_is_of_these_alone() -> None:
    parts = {part for entry in TRAINING_FAMILIES.find("options") for part in entry.split("+")}
    assert parts == set(NAMES)
