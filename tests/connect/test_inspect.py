"""JSON Schemas in the keywords that Inspect keeps: nothing is lost without a word."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from toolshift.connect import inspect
from toolshift.connect.inspect.schema import DEEPEST, KNOWN, simplify
from toolshift.core.tool import input_schema
from toolshift.runs.suite import Selection
from toolshift.worlds.registry import OURS, find_world

NESTED = {
    "type": "object",
    "properties": {
        "place": {"$ref": "#/$defs/Place"},
        "unit": {"const": "km"},
        "when": {"oneOf": [{"type": "string", "format": "date"}, {"type": "integer"}]},
        "who": {"allOf": [{"$ref": "#/$defs/Place"}, {"properties": {"age": {"type": "integer"}}}]},
    },
    "required": ["place"],
    "$defs": {
        "Place": {
            "type": "object",
            "properties": {"city": {"$ref": "#/$defs/City"}},
            "required": ["city"],
        },
        "City": {"type": "string", "enum": ["Oslo", "Rome"]},
    },
}


def test_references_choices_and_constants_are_said_otherwise() -> None:
    found = simplify(NESTED)
    assert found.losses == ()
    properties = found.schema["properties"]
    assert properties["place"]["properties"]["city"]["enum"] == ["Oslo", "Rome"]
    assert properties["unit"] == {"enum": ["km"]}
    assert [one["type"] for one in properties["when"]["anyOf"]] == ["string", "integer"]
    assert set(properties["who"]["properties"]) == {"city", "age"}


@pytest.mark.parametrize(
    "value",
    [
        {"place": {"city": "Oslo"}},
        {"place": {"city": "Paris"}},
        {"place": {}},
        {},
        {"place": {"city": "Rome"}, "unit": "miles"},
        {"place": {"city": "Rome"}, "unit": "km", "when": 3},
        {"place": {"city": "Rome"}, "when": 3.5},
        {"place": {"city": "Rome"}, "who": {"city": "Rome", "age": "old"}},
    ],
)
def test_what_is_said_otherwise_means_the_same(value: object) -> None:
    plain = simplify(NESTED).schema
    assert jsonschema_rs.is_valid(plain, value) == jsonschema_rs.is_valid(NESTED, value)


def test_losses_are_named_with_their_place() -> None:
    tree = {
        "type": "object",
        "properties": {
            "next": {"$ref": "#"},
            "many": {"type": "array", "items": {"type": "number"}, "minItems": 2},
            "odd": {"not": {"type": "string"}},
            "gone": {"$ref": "#/$defs/none"},
        },
    }
    assert simplify(tree).losses == (
        "/properties/next/properties/next: # leads back to itself",
        "/properties/next/properties/many: minItems",
        "/properties/next/properties/odd: not",
        "/properties/next/properties/gone: #/$defs/none is not in the schema",
        "/properties/many: minItems",
        "/properties/odd: not",
        "/properties/gone: #/$defs/none is not in the schema",
    )


@pytest.mark.parametrize("world", OURS)
def test_our_own_tools_lose_nothing(world: str) -> None:
    for tool in find_world(world).truth(0, 30, "dev").tools:
        found = simplify(input_schema(tool))
        assert found.losses == ()
        assert found.schema == input_schema(tool)
        assert set(found.schema) <= KNOWN


def test_its_task_takes_every_part_of_a_selection() -> None:
    """Read from the source, for Inspect is not installed here."""
    tree = ast.parse((Path(inspect.__file__).parent / "tasks.py").read_text())
    (shifted,) = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "shifted"]
    assert {argument.arg for argument in shifted.args.args} == set(Selection.__struct_fields__)


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        ({"type": "string", "allOf": 3}, {"type": "string"}),
        ({"type": "string", "oneOf": 3}, {"type": "string", "anyOf": []}),
        ({"anyOf": {"a": 1}, "oneOf": [{"type": "null"}]}, {"anyOf": [{"type": "null"}]}),
        ({"allOf": [{"properties": [1]}, {"properties": {"a": {}}}]}, {"properties": {"a": {}}}),
        ({"allOf": [{"required": [{}, "a"]}], "required": 3}, {"required": ["a"]}),
        ({"$ref": ["#"]}, {}),
    ],
    ids=["allOf", "oneOf", "anyOf", "properties", "required", "reference"],
)
def test_a_keyword_of_the_wrong_type_is_left_out(
    schema: dict[str, Any], kept: dict[str, Any]
) -> None:
    assert simplify(schema).schema == kept


@pytest.mark.parametrize("key", ["items", "additionalProperties"])
def test_what_is_nested_too_deeply_is_cut_and_said(key: str) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(5000):
        schema = {key: schema}
    found = simplify(schema)
    assert [loss.endswith("it is nested too deeply") for loss in found.losses] == [True]
    depth, node = 0, found.schema
    while key in node:
        depth, node = depth + 1, node[key]
    assert depth == DEEPEST + 1


def test_a_long_chain_of_references_is_cut_and_said() -> None:
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(5000)}
    found = simplify({"$ref": "#/$defs/d0", "$defs": chain})
    assert [loss.endswith("it is nested too deeply") for loss in found.losses] == [True]
