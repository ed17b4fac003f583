"""Tools from OpenAPI documents."""

from __future__ import annotations

from collections.abc import Mapping
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


XML, PLAIN, ANY = "application/xml", "text/plain", "*/*"


@pytest.mark.parametrize(
    ("content", "value", "kind", "sent"),
    [
        ({PLAIN: {"schema": {"type": "string"}}}, "a b", PLAIN, b"a b"),
        ({"text/csv; charset=utf-8": {}}, "a;b", "text/csv", b"a;b"),
        ({ANY: {"schema": {"type": "array"}}}, [1], "application/json", b"[1]"),
        ({PLAIN: {}, "application/vnd.x+json": {"schema": {}}}, 5, "application/json", b"5"),
    ],
)
def test_a_body_without_members_is_one_argument(
    content: dict[str, Any], value: Any, kind: str, sent: bytes
) -> None:
    (operation,) = read_openapi(posting(content))
    assert [*operation.shown["inputSchema"]["properties"]] == ["body"]

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["content-type"] == kind
        return httpx.Response(200, json={"got": request.read() == sent})

    client = httpx.Client(base_url="http://here", transport=httpx.MockTransport(answer))
    tools = HttpTools(client, {"post": operation}, "http://here")
    assert tools.call("post", {"body": value}).data == {"got": True}


def test_the_members_of_a_body_of_xml_are_read_and_its_calls_are_refused() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    (operation,) = read_openapi(posting({XML: {"schema": schema}}))
    assert operation.shown["inputSchema"] == schema
    client = httpx.Client(base_url="http://here", transport=httpx.MockTransport(lambda _: None))  # type: ignore[arg-type,return-value]
    result = HttpTools(client, {"post": operation}, "http://here").call("post", {"id": "a"})
    assert not result.ok
    assert "a body of application/xml with members" in result.data["error"]["message"]


RECORD = {"type": "object", "properties": {"id": {"type": "string"}}}


@pytest.mark.parametrize(
    ("answers", "is_read"),
    [
        ({"200": {ANY: {"schema": RECORD}}}, True),
        ({"202": {}, "200": {"application/json": {"schema": RECORD}}}, True),
        ({"200": {XML: {"schema": LINE}, "application/json": {"schema": RECORD}}}, True),
        ({"default": {"application/json": {"schema": RECORD}}}, True),
        ({"200": {}, "default": {"application/json": {"schema": RECORD}}}, False),
        ({"200": {XML: {"schema": RECORD}}}, False),
    ],
)
def test_the_first_good_answer_of_json_says_what_results_are(
    answers: dict[str, Any], is_read: bool
) -> None:
    said = posting({})
    responses = {code: {"content": content} for code, content in answers.items()}
    said["paths"]["/p"]["post"]["responses"] = responses
    (operation,) = read_openapi(said)
    assert operation.shown.get("outputSchema") == (RECORD if is_read else None)


def test_media_types_of_swagger_are_read() -> None:
    said = {
        "swagger": "2.0",
        "consumes": [PLAIN],
        "produces": [XML],
        "paths": {
            "/p": {
                "post": {
                    "operationId": "post",
                    "parameters": [{"in": "body", "name": "b", "schema": {"type": "string"}}],
                    "responses": {"200": {"schema": RECORD}},
                },
                "put": {
                    "operationId": "put",
                    "consumes": [XML, "application/json"],
                    "produces": ["application/json"],
                    "parameters": [{"in": "body", "name": "b", "schema": RECORD}],
                    "responses": {"200": {"schema": RECORD}},
                },
            }
        },
    }
    by_name = {one.shown["name"]: one for one in read_openapi(said)}
    assert (by_name["post"].media, by_name["put"].media) == (PLAIN, "")
    assert [*by_name["post"].request.answers] == [XML]
    assert by_name["put"].request.answers == {"application/json": ""}
    assert "outputSchema" not in by_name["post"].shown
    assert by_name["put"].shown["outputSchema"] == RECORD


def test_a_whole_body_of_swagger_is_no_form() -> None:
    body = {"in": "body", "name": "b", "schema": {"type": "array", "items": {"type": "string"}}}
    post = {"operationId": "post", "parameters": [body], "responses": {}}
    kinds = ["multipart/form-data", "application/x-www-form-urlencoded"]
    (operation,) = read_openapi(
        {"swagger": "2.0", "consumes": kinds, "paths": {"/p": {"post": post}}}
    )
    assert operation.places == {"body": ("whole", "body")}
    assert operation.request.body == ("application/json", "optional")


def test_answers_are_the_same_in_another_order_and_with_other_descriptions() -> None:
    def answers(*codes: str, told: str = "") -> Mapping[str, str]:
        said = posting({})
        schemas = {"200": {"type": "string", "description": told}, "201": {"type": "integer"}}
        said["paths"]["/p"]["post"]["responses"] = {
            code: {"content": {PLAIN: {"schema": schemas[code]}}} for code in codes
        }
        return read_openapi(said)[0].request.answers

    assert answers("200", "201") == answers("201", "200", told="A word")
    assert len({answers(*codes)[PLAIN] for codes in (("200",), ("201",), ("200", "201"))}) == 3


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
