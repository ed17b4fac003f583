"""What texts say of values that are written otherwise, and what schemas ask of such values."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from toolshift.data.augment import Made, Recipe, augmented

LAMP: dict[str, Any] = {
    "type": "object",
    "properties": {
        "mode": {"type": "string", "enum": ["read", "party"]},
        "level": {"type": "integer", "enum": [1, 2, 3]},
        "note": {"type": "string"},
    },
    "required": ["mode", "level"],
    "if": {"properties": {"mode": {"const": "read"}}},
    "then": {"required": ["note"]},
}
CALL = {"mode": "party", "level": 2}


def row(prompt: str = "You are a lamp.", reply: str = "Done.", **schema: Any) -> dict[str, Any]:
    """A conversation that sets a lamp."""
    inner = {"name": "set_mode", "arguments": json.dumps(CALL)}
    function = {"name": "set_mode", "description": "Sets the lamp.", "parameters": LAMP | schema}
    return {
        "messages": [
            {"role": "system", "content": prompt},
            {"role": "user", "content": 'I like mode="party" and level=2.'},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": inner}]},
            {"role": "tool", "tool_call_id": "1", "content": '{"mode": "party"}'},
            {"role": "assistant", "content": reply},
        ],
        "tools": [{"type": "function", "function": function}],
    }


def made(given: dict[str, Any], shift: str) -> Made:
    """What becomes of a row."""
    return augmented(given, json.dumps(given).encode(), Recipe(1.0, (shift,)))


def parts(done: Made) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema and the arguments of a shifted row."""
    (after,) = done.rows
    (call,) = after["messages"][2]["tool_calls"]
    schema = after["tools"][0]["function"]["parameters"]
    return schema, json.loads(call["function"]["arguments"])


@pytest.mark.parametrize("severity", [1, 2, 3])
def test_a_condition_on_a_choice_goes_with_the_choice(severity: int) -> None:
    schema, call = parts(made(row(), f"enum_change:{severity}"))
    read, party = schema["properties"]["mode"]["enum"]
    assert call["mode"] == party != "party"
    assert not jsonschema_rs.is_valid(schema, {"mode": read, "level": 1})
    assert jsonschema_rs.is_valid(schema, {"mode": read, "level": 1, "note": "x"})


def test_where_a_condition_cannot_be_said_the_shift_is_not_applicable() -> None:
    asks: dict[str, Any] = {"if": {"properties": {"mode": {"pattern": "^r"}}}}
    done = made(row(**asks), "enum_change:1")
    assert not done.rows
    assert "cannot be said of its new values" in done.reasons["enum_change"]


def test_a_choice_of_numbers_stays_a_choice() -> None:
    schema, call = parts(made(row(), "type_change:3"))
    assert call["level"] == "2"
    assert schema["properties"]["level"]["enum"] == ["1", "2", "3"]
    assert schema["properties"]["mode"] == LAMP["properties"]["mode"]


@pytest.mark.parametrize(
    "text",
    [
        'To celebrate, call set_mode with mode="party".',
        "To celebrate, call set_mode with mode=party.",
        "set_mode takes {'mode': 'party', 'note': 'x'} for that.",
        "Set mode: party if they celebrate.",
        "Set `mode`: `party` if they celebrate.",
    ],
)
@pytest.mark.parametrize("where", ["prompt", "reply"])
def test_no_text_says_a_choice_that_is_none_any_longer(text: str, where: str) -> None:
    done = made(row(**{where: text}), "enum_change:1")
    assert not done.rows
    assert "is written otherwise now" in done.reasons["enum_change"]


@pytest.mark.parametrize("text", ["set_mode(mode='party', level=2)", "set_mode: level: 2"])
def test_no_text_says_a_value_in_its_former_type(text: str) -> None:
    done = made(row(text), "type_change:3")
    assert not done.rows
    assert "level" in done.reasons["type_change"]


@pytest.mark.parametrize(
    "text",
    [
        "The mode is for a party.",
        "See https://lamps.example/?mode=party for more.",
        "The mode: a matter of taste.",
        "Everything goes on a level: 5 floors, 2 lifts.",
        "In SQL, lamp.mode = 'party' finds them.",
    ],
)
def test_texts_of_the_world_keep_no_shift_away(text: str) -> None:
    for shift in ("enum_change:1", "type_change:3"):
        done = made(row(text), shift)
        assert done.rows
        assert done.rows[0]["messages"][0]["content"] == text
        assert done.rows[0]["messages"][1] == row()["messages"][1]
