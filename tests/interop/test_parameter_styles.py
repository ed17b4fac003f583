"""How parameters are written: the examples of the OpenAPI specification, and what 2.0 has."""

from __future__ import annotations

from typing import Any

import pytest

from toolshift.interop.openapi import read_openapi
from toolshift.interop.parameter_styles import Style, in_one, pairs, style_of, style_of_2_0

COLOR = {"R": 100, "G": 200}


@pytest.mark.parametrize(
    ("param", "value", "written"),
    [
        ({}, "blue", [("color", "blue")]),
        ({}, True, [("color", "true")]),
        ({}, 2.5, [("color", "2.5")]),
        ({}, ["blue", "black"], [("color", "blue"), ("color", "black")]),
        ({}, COLOR, [("R", "100"), ("G", "200")]),
        ({"explode": False}, ["blue", "black"], [("color", "blue,black")]),
        ({"explode": False}, COLOR, [("color", "R,100,G,200")]),
        ({"style": "spaceDelimited"}, ["blue", "black"], [("color", "blue black")]),
        ({"style": "pipeDelimited"}, ["blue", "black"], [("color", "blue|black")]),
        ({"style": "deepObject"}, COLOR, [("color[R]", "100"), ("color[G]", "200")]),
        ({"style": "deepObject"}, {"a": {"b": [1, 2]}}, [("color[a][b]", s) for s in ("1", "2")]),
        ({"content": {"application/json": {}}}, COLOR, [("color", '{"R":100,"G":200}')]),
    ],
)  # fmt: skip
def test_a_query_is_written_as_its_style_says(
    param: dict[str, Any], value: Any, written: list[tuple[str, str]]
) -> None:
    assert pairs(style_of(param, "query"), "color", value) == written


@pytest.mark.parametrize(
    ("style", "value", "written"),
    [
        (Style("simple", False), "a/b c", "a%2Fb%20c"),
        (Style("simple", False), ["blue", "black"], "blue,black"),
        (Style("simple", False), COLOR, "R,100,G,200"),
        (Style("simple", True), COLOR, "R=100,G=200"),
        (Style("label", False), "blue", ".blue"),
        (Style("label", True), ["blue", "black"], ".blue.black"),
        (Style("label", True), COLOR, ".R=100.G=200"),
        (Style("matrix", False), ["blue", "black"], ";color=blue,black"),
        (Style("matrix", True), ["blue", "black"], ";color=blue;color=black"),
        (Style("matrix", True), COLOR, ";R=100;G=200"),
        (Style("matrix", False), COLOR, ";color=R,100,G,200"),
    ],
)
def test_a_path_is_written_as_its_style_says(style: Style, value: Any, written: str) -> None:
    assert in_one(style, "color", value) == written


@pytest.mark.parametrize(
    ("form", "written"),
    [
        (None, [("ids", "1,2")]),
        ("csv", [("ids", "1,2")]),
        ("ssv", [("ids", "1 2")]),
        ("pipes", [("ids", "1|2")]),
        ("multi", [("ids", "1"), ("ids", "2")]),
    ],
)
def test_lists_of_2_0_are_written_as_their_format_says(
    form: str | None, written: list[tuple[str, str]]
) -> None:
    param: dict[str, Any] = {"name": "ids", "in": "query", "type": "array", "items": {}}
    param |= {"collectionFormat": form} if form else {}
    document = {"swagger": "2.0", "paths": {"/a": {"get": {"parameters": [param]}}}}
    (operation,) = read_openapi(document)
    assert pairs(operation.styles["ids"], "ids", [1, 2]) == written
    assert style_of_2_0({"type": "string"}) == {}


def test_the_fields_of_a_form_are_written_as_its_encoding_says() -> None:
    schema = {"properties": {"metadata": {"type": "object"}, "expand": {"type": "array"}}}
    encoding = {"metadata": {"style": "deepObject", "explode": True}}
    media = {"schema": schema, "encoding": encoding}
    body = {"content": {"application/x-www-form-urlencoded": media}}
    paths = {"/charges": {"post": {"requestBody": body}}}
    (operation,) = read_openapi({"openapi": "3.0.3", "paths": paths})
    styles = operation.styles
    assert pairs(styles["metadata"], "metadata", {"order": "O-1"}) == [("metadata[order]", "O-1")]
    assert pairs(styles["expand"], "expand", ["a", "b"]) == [("expand", "a"), ("expand", "b")]
