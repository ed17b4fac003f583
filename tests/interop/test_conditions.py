"""Conditions of schemas on arguments whose values are written otherwise."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from toolshift.core.shift import NotApplicable
from toolshift.interop.conditions import restated

READ = {"properties": {"mode": {"const": "read"}}}
ASKS = {"required": ["level"]}
CONDITIONS: list[dict[str, Any]] = [
    {"if": READ, "then": ASKS},
    {"allOf": [{"if": READ, "then": ASKS}]},
    {"anyOf": [{"not": READ}, ASKS]},
    {"oneOf": [{"not": READ}, {**READ, **ASKS}]},
    {"not": {**READ, "not": ASKS}},
    {"dependentSchemas": {"mode": {"if": READ, "then": ASKS}}},
    {"if": {"properties": {"mode": {"enum": ["read"], "type": "string"}}}, "then": ASKS},
    {"if": {"properties": {"mode": {"not": {"const": "party"}}}}, "then": ASKS},
    {"if": {"properties": {"mode": {"anyOf": [{"const": "read"}]}}}, "then": ASKS},
]
CALLS: list[dict[str, Any]] = [
    {"mode": mode, **more} for mode in ("read", "party") for more in ({}, {"level": 2})
]


def written(value: Any) -> Any:
    return {"read": "READ", "party": "PARTY", 2: "2", True: "yes"}.get(value, value)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_holds_for_the_same_calls_as_before(condition: dict[str, Any]) -> None:
    before = {"type": "object", **condition}
    now = restated(before, {"mode": written})
    for call in CALLS:
        told = {**call, "mode": written(call["mode"])}
        assert jsonschema_rs.is_valid(now, told) == jsonschema_rs.is_valid(before, call)


def test_what_the_schema_declares_of_each_argument_is_left() -> None:
    schema = {"properties": {"mode": {"enum": ["read"]}}, "required": ["mode"]}
    assert restated(schema, {"mode": written}) == schema


def test_a_type_goes_where_the_values_have_another() -> None:
    condition = {"if": {"properties": {"level": {"type": "integer", "const": 2}}}}
    told = restated(condition, {"level": written})
    assert told == {"if": {"properties": {"level": {"const": "2"}}}}


@pytest.mark.parametrize(
    "asked", [{"pattern": "^r"}, {"type": "string"}, {"minimum": 1}, {"$ref": "#/$defs/mode"}]
)
def test_what_cannot_be_said_of_the_new_values_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(NotApplicable, match=r"new values|another type"):
        restated({"if": {"properties": {"mode": asked}}, "then": ASKS}, {"mode": written})
    kept = {"if": {"properties": {"other": asked}}, "then": ASKS}
    assert restated(kept, {"mode": written}) == kept
