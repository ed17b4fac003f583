"""Tools from OpenAPI documents."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from toolshift.core.errors import UsageError
from toolshift.core.http import httpx
from toolshift.interop.openapi import read_openapi
from toolshift.interop.schema import inner_changes
from toolshift.worlds.own.openapi import HttpTools

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


def posting(content: dict[str, Any], version: str = "3.0.3") -> dict[str, Any]:
    """One operation with a body of these kinds."""
    operation = {"operationId": "post", "requestBody": {"content": content}}
    return {"openapi": version, "paths": {"/p": {"post": operation}}}


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        ("application/x-www-form-urlencoded", b"amount=5&note=a+b"),
        ("multipart/form-data", b'name="amount"\r\n\r\n5\r\n'),
    ],
)
def test_the_fields_of_a_form_are_parameters_and_are_sent_as_such(kind: str, sent: bytes) -> None:
    fields = {"amount": {"type": "integer"}, "note": {"type": "string"}}
    schema = {"type": "object", "properties": fields, "required": ["amount"]}
    (operation,) = read_openapi(posting({kind: {"schema": schema}}))
    assert operation.shown["inputSchema"] == {**schema, "properties": fields}

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["content-type"].startswith(kind)
        return httpx.Response(200, json={"got": sent in request.read()})

    client = httpx.Client(base_url="http://here", transport=httpx.MockTransport(answer))
    tools = HttpTools(client, {"post": operation}, "http://here")
    assert tools.call("post", {"amount": 5, "note": "a b"}).data == {"got": True}


def test_null_and_limits_are_read_as_openapi_3_0_writes_them() -> None:
    fields = {
        "note": {"type": "string", "nullable": True},
        "kind": {"type": "string", "enum": ["a"], "nullable": True},
        "line": {"allOf": [LINE], "nullable": True},
        "more": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        "nullable": {"type": "boolean", "nullable": False},
    }
    schema = {"type": "object", "properties": fields}
    (operation,) = read_openapi(posting({"application/json": {"schema": schema}}))
    takes = jsonschema_rs.validator_for(operation.shown["inputSchema"]).is_valid
    assert takes({"note": None, "kind": None, "line": None, "more": 0.1, "nullable": True})
    assert not any(map(takes, ({"more": 0}, {"nullable": None}, {"kind": "b"})))


def test_two_operations_of_one_name_are_refused() -> None:
    """One of them would be lost."""
    paths = {path: {"get": {"responses": {}}} for path in ("/users/{id}", "/users/id")}
    with pytest.raises(UsageError, match=r"GET /users/\{id\} and GET /users/id would both be"):
        read_openapi({"openapi": "3.1.0", "paths": paths})


@pytest.mark.parametrize("flag", [True, False, None])
def test_a_deprecated_operation_stays_one(flag: bool | None) -> None:
    said = document({"type": "object"}, LINE)
    said["paths"]["/orders"]["post"] |= {} if flag is None else {"deprecated": flag}
    (operation,) = read_openapi(said)
    assert operation.shown.get("deprecated") is (True if flag else None)
