"""Tools from OpenAPI documents."""

from __future__ import annotations

from typing import Any

from toolshift.interop.openapi import read_openapi
from toolshift.interop.schema import inner_changes

LINE = {"type": "object", "properties": {"sku": {"type": "string"}}}
PARTS: dict[str, Any] = {
    "Base": {
        "type": "object",
        "properties": {"customer": {"type": "object", "properties": {"id": {"type": "string"}}}},
        "required": ["customer"],
    },
    "Line": LINE,
}


def document(body: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """One operation that posts a body and gets an answer."""
    operation = {
        "operationId": "make_order",
        "requestBody": {"content": {"application/json": {"schema": body}}},
        "responses": {"200": {"content": {"application/json": {"schema": answer}}}},
    }
    return {
        "openapi": "3.0.0",
        "paths": {"/orders": {"post": operation}},
        "components": {"schemas": PARTS},
    }


def test_a_body_that_is_made_of_parts_is_laid_open() -> None:
    lines = {"type": "array", "items": {"$ref": "#/components/schemas/Line"}}
    own = {"type": "object", "properties": {"lines": lines}, "required": ["lines"]}
    whole = {"allOf": [{"$ref": "#/components/schemas/Base"}, own]}
    (operation,) = read_openapi(document(whole, whole))
    schema = operation.shown["inputSchema"]
    assert set(schema["properties"]) == {"customer", "lines"}
    assert set(schema["required"]) == {"customer", "lines"}
    assert schema["properties"]["lines"]["items"] == LINE
    assert operation.places == {"customer": ("body", "customer"), "lines": ("body", "lines")}
    assert set(operation.shown["outputSchema"]["properties"]) == {"customer", "lines"}


def test_a_change_inside_a_part_of_a_body_is_seen() -> None:
    old = {"type": "array", "items": {"allOf": [LINE]}}
    new = {"type": "array", "items": {"properties": {"code": {"type": "string"}}}}
    assert inner_changes(old, new, "lines") == ["- lines[].sku", "+ lines[].code"]
