"""Schemas of a kilobyte whose references stand for billions of nodes are read in no time."""

from __future__ import annotations

from itertools import permutations, product
from time import process_time
from typing import Any

import jsonschema_rs
import pytest

from toolshift.drift.events import drift_report
from toolshift.drift.lock import lock_tools
from toolshift.interop.schema import checkable, flattened, renamed
from toolshift.interop.tools import from_mcp


def doubling(levels: int, key: str) -> dict[str, Any]:
    """A schema in which each level speaks of the next one twice."""
    known: dict[str, Any] = {
        f"d{n}": {key: [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(levels)
    }
    known[f"d{levels}"] = {"type": "object", "properties": {"a": {"type": "string"}}}
    first = {"$ref": "#/$defs/d0"}
    return {"type": "object", "properties": {"q": first}, key: [first], "$defs": known}


@pytest.mark.parametrize("key", ["allOf", "anyOf", "oneOf"])
def test_references_that_double_end(key: str) -> None:
    begun = process_time()
    schema = doubling(30, key)
    assert "q" in flattened(schema)["properties"]
    assert "z" in renamed(schema, {"q": "z"})["properties"]
    tool = {"name": "t", "inputSchema": schema, "outputSchema": schema}
    assert "q" in {param.name for param in from_mcp([tool]).tools[0].params}
    now = {**tool, "description": "Other.", "inputSchema": doubling(29, key)}
    assert drift_report(lock_tools([tool]), [now]).events
    assert process_time() - begun < 5


def test_a_schema_of_usual_size_is_checked_as_it_is() -> None:
    schema = doubling(6, "allOf")
    assert checkable(schema) == schema
    assert checkable(True) is True
    tree = {"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}}}}
    assert checkable(tree) == tree


def test_a_long_chain_of_references_ends() -> None:
    known = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}]} for n in range(3000)}
    schema = {"$ref": "#/$defs/d0", "$defs": known}
    assert "$ref" not in checkable(schema)


def when(value: str, then: str, other: str = "") -> dict[str, Any]:
    """A condition: with this choice one argument is needed, else perhaps another."""
    chosen = {"properties": {"mode": {"const": value}}, "required": ["mode"]}
    rest = {"else": {"required": [other]}} if other else {}
    return {"if": chosen, "then": {"required": [then]}, **rest}


CONDITIONS = (when("a", "x"), when("a", "y"), when("b", "x"), when("b", "y", "x"))


@pytest.mark.parametrize("parts", [*permutations(CONDITIONS, 2), *permutations(CONDITIONS, 3)])
@pytest.mark.parametrize("nested", [False, True])
def test_what_is_laid_open_takes_what_the_parts_take(parts: tuple[Any, ...], nested: bool) -> None:
    texts = {name: {"type": "string"} for name in ("mode", "x", "y")}
    first, *others = parts
    told = [{"allOf": [first, *others[:1]]}, *others[1:]] if nested else [*parts]
    schema = {"type": "object", "properties": texts, "allOf": told}
    flat = flattened(schema)
    for mode, x, y in product(("a", "b", None), (True, False), (True, False)):
        given = {
            **({"mode": mode} if mode else {}),
            **({"x": "1"} if x else {}),
            **({"y": "1"} if y else {}),
        }
        assert jsonschema_rs.is_valid(flat, given) == jsonschema_rs.is_valid(schema, given)


def test_a_part_that_narrows_a_property_of_another_still_does() -> None:
    base = {"properties": {"mode": {"type": "string", "description": "The mode."}}}
    narrow = {"properties": {"mode": {"enum": ["a", "b"]}}, "required": ["mode"]}
    narrower = {"properties": {"mode": {"enum": ["b", "c"]}}}
    flat = flattened({"type": "object", "allOf": [base, narrow, narrower]})
    assert flat["properties"]["mode"] == {
        "type": "string",
        "description": "The mode.",
        "enum": ["b"],
    }
