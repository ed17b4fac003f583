"""Values that a text writes without their types get the type of the parameter."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.lm.call_texts.tools import Tools, typed, value_in

ANY_OF = {"anyOf": [{"type": "integer"}, {"type": "string"}]}


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("5", {"type": "string"}, "5"),
        ("null", {"type": "string"}, "null"),
        ("5", {"type": "integer"}, 5),
        ("5", {"type": "number"}, 5),
        ("5.5", {"type": "number"}, 5.5),
        (" true ", {"type": "boolean"}, True),
        ("False", {"type": "boolean"}, False),
        ("None", {"type": ["string", "null"]}, None),
        ("5", {"type": ["string", "null"]}, "5"),
        ("[1, 2]", {"type": "array"}, [1, 2]),
        ('{"a": 1}', {"type": "object"}, {"a": 1}),
        ("5", ANY_OF, 5),
        ("five", ANY_OF, "five"),
        ("[5]", ANY_OF, "[5]"),
        ("5", {"enum": ["5", "6"]}, "5"),
        ("5", {"enum": [5, 6]}, 5),
        ("5", {"const": 5}, 5),
        ("many", {"type": "integer"}, "many"),  # the tool itself says that it takes no text
        ("5", {}, 5),
        ("T-31", {}, "T-31"),
        ('"T-31"', {}, '"T-31"'),
        ('1, "b": 2', {}, '1, "b": 2'),
        ("NaN", {}, "NaN"),
        ("9" * 30, {}, "9" * 30),
        ("", {}, ""),
        ("5", True, 5),
        ("5", {"type": 7}, 5),
    ],
)
def test_a_value_is_what_its_schema_takes(text: str, schema: Any, value: Any) -> None:
    found = typed(text, schema)
    assert found == value
    assert type(found) is type(value)


def test_references_and_other_keys_are_followed() -> None:
    parameters = {
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/B"}},
        "additionalProperties": {"type": "integer"},
        "$defs": {
            "A": {"anyOf": [{"$ref": "#/$defs/S"}]},
            "S": {"type": "string"},
            "B": {"$ref": "#/$defs/B"},
        },
    }
    tools = Tools([{"function": {"name": "f", "parameters": parameters}}, "g"])
    assert tools.value("f", "a", "5") == "5"
    assert tools.value("f", "b", "5") == 5
    assert tools.value("f", "else", "5") == 5
    assert tools.value("g", "a", "5") == 5
    assert tools.value("none", "a", "x") == "x"
    assert set(tools.names) == {"f", "g"}


@given(st.text(), st.recursive(st.none() | st.text() | st.booleans(), st.lists))
def test_no_text_and_no_schema_fail(text: str, odd: Any) -> None:
    assert value_in(text) is not Ellipsis
    assert typed(text, {"type": odd, "enum": odd, "anyOf": odd}) is not Ellipsis
