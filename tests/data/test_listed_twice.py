"""A list of tools that a text has as well says what the column says, or the row is not shifted."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from toolshift.data.augment import Made, Recipe, augmented
from toolshift.data.augment_quick import Quick

CITY = {"type": "string", "description": "Name of the city"}
WEATHER = {
    "name": "get_weather",
    "description": "Current weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": CITY, "unit": {"type": "string", "enum": ["celsius", "kelvin"]}},
        "required": ["city"],
    },
}
TIME = {
    "name": "get_time",
    "description": "Local time of a city.",
    "parameters": {"type": "object", "properties": {"city": CITY}, "required": ["city"]},
}
FUNCTIONS = [WEATHER, TIME]
TOOLS = [{"type": "function", "function": one} for one in FUNCTIONS]
INPUTS = [{**one, "input_schema": one["parameters"]} for one in FUNCTIONS]
for one in INPUTS:
    del one["parameters"]
ARGUMENTS = '{"city": "Rome", "unit": "celsius"}'
ALONG = {
    "lines": "<tools>\n" + "\n".join(map(json.dumps, TOOLS)) + "\n</tools>",
    "a list of functions": "Functions:\n" + json.dumps(FUNCTIONS),
    "indented": json.dumps(TOOLS, indent=2),
    "as Anthropic has them": f"```json\n{json.dumps(INPUTS)}\n```",
}
OTHERWISE = {
    "signatures": "get_weather(city: str, unit: str) -> dict\nget_time(city: str) -> dict",
    "types": "type get_weather = (_: {\ncity: string,\nunit?: string,\n}) => any;",
    "bullets": "- get_weather\n  - city (string, required)\n  - unit (text)\n- get_time",
    "descriptions": "- get_weather: Current weather of a city.",
    "other JSON": json.dumps([{**WEATHER, "description": "Weather."}]),
}


def row(prompt: str, form: str = "openai") -> dict[str, Any]:
    """A conversation with a column of tools, and a prompt."""
    if form == "sharegpt":
        said = [
            ("system", prompt),
            ("human", "Weather?"),
            ("function_call", json.dumps({"name": "get_weather", "arguments": {"city": "Rome"}})),
            ("observation", '{"t": 18}'),
            ("gpt", "18"),
        ]
        turns = [{"from": who, "value": text} for who, text in said]
        return {"tools": json.dumps(FUNCTIONS), "conversations": turns}
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "get_weather", "arguments": ARGUMENTS},
    }
    return {
        "messages": [
            {"role": "system", "content": prompt},
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": '{"t": 18}'},
            {"role": "assistant", "content": "18"},
        ],
        "tools": TOOLS,
    }


def made(given: dict[str, Any], shift: str) -> Made:
    """What becomes of a row."""
    return augmented(given, json.dumps(given).encode(), Recipe(1.0, (shift,)))


def listed_in(text: str) -> list[dict[str, Any]]:
    """The tools that a text lists, as functions."""
    found, place = list[Any](), 0
    while match := re.search(r"[\[{]", text[place:]):
        value, place = json.JSONDecoder().raw_decode(text, place + match.start())
        found += value if isinstance(value, list) else [value]
    functions = [one.get("function", one) for one in found]
    return [
        {
            **{k: v for k, v in one.items() if k != "input_schema"},
            "parameters": one.get("parameters", one.get("input_schema")),
        }
        for one in functions
    ]


SHIFTS = (
    "parameter_rename:3", "enum_change:3", "description_removal:3", "varied_options:2",
    "tool_subset:1", "identity_erasure:3",
)  # fmt: skip


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("how", ALONG)
def test_a_list_in_json_goes_along(how: str, shift: str) -> None:
    (after,) = made(row(ALONG[how]), shift).rows
    now = [tool["function"] for tool in after["tools"]]
    assert now != FUNCTIONS
    assert listed_in(after["messages"][0]["content"]) == now


def test_a_list_goes_along_in_every_format_and_its_own_wrapping() -> None:
    given = row(ALONG["lines"], "sharegpt")
    (after,) = made(given, "parameter_rename:3").rows
    text = after["conversations"][0]["value"]
    assert listed_in(text) == json.loads(after["tools"]) != FUNCTIONS
    assert text.startswith('<tools>\n{"type": "function", "function": {"name": "get_weather", ')


@pytest.mark.parametrize("how", OTHERWISE)
def test_where_a_list_cannot_be_written_along_the_shift_is_not_applicable(how: str) -> None:
    done = made(row(OTHERWISE[how]), "description_removal:3")
    assert not done.rows
    assert "cannot be written along" in done.reasons["description_removal"]
    (renamed,) = made(row(OTHERWISE[how]), "identity_erasure:3").rows
    assert "get_weather" not in renamed["messages"][0]["content"]


def test_a_part_of_the_list_stays_a_part() -> None:
    (after,) = made(row(json.dumps([TIME])), "description_removal:3").rows
    (told,) = listed_in(after["messages"][0]["content"])
    assert told == after["tools"][1]["function"] != TIME


@pytest.mark.parametrize("text", ["Use get_weather.", 'get_weather(city="Rome")', "A city: Rome."])
def test_a_text_that_only_names_a_tool_keeps_no_shift_away(text: str) -> None:
    assert made(row(text), "parameter_rename:3").rows


@pytest.mark.parametrize("text", [*ALONG.values(), *OTHERWISE.values(), "Use get_weather."])
def test_the_quick_way_makes_the_same_of_a_line(text: str) -> None:
    for shift in ("parameter_rename:3", "identity_erasure:3", "description_removal:3"):
        given = row(text)
        line = json.dumps(given).encode()
        quick = Quick(Recipe(1.0, (shift,))).line(line)
        rows = augmented(given, line, Recipe(1.0, (shift,))).rows
        assert quick is None or json.loads(quick[0]) == rows[0]
