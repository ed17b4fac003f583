"""References of documents to other files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from toolshift.core.errors import UsageError
from toolshift.interop.openapi import read_openapi
from toolshift.interop.references import MAX_FILES, with_definitions, with_files
from toolshift.interop.tools import from_mcp

STREET = {"type": "object", "properties": {"street": {"type": "string"}}}
ZIP = {"type": "object", "properties": {"zip": {"type": "integer"}}}
Y = {"get": {"operationId": "y", "responses": {}}}


def get_x(**more: Any) -> dict[str, Any]:
    return {"get": {"operationId": "x", "responses": {}, **more}}


def answer(schema: Any) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def api(folder: Path, item: Any, files: dict[str, Any], **more: Any) -> Path:
    """A document with one path item beside another, and the files that it refers to."""
    document = {"openapi": "3.1.0", "paths": {"/x": item, "/y": Y}, **more}
    for name, content in {"api/api.yaml": document, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write = json.dumps if path.suffix == ".json" else yaml.safe_dump
        path.write_text(write(content))
    return folder / "api" / "api.yaml"


def shown(path: Path) -> dict[str, Any]:
    """The tools of a document, by name."""
    read = read_openapi(yaml.safe_load(path.read_text()), path)
    return {each.shown["name"]: each.shown for each in read}


def body(schema: Any) -> dict[str, Any]:
    return get_x(requestBody=answer(schema))


def ref(to: str, **beside: Any) -> dict[str, Any]:
    return {"$ref": to, **beside}


QUERY = {"name": "q", "in": "query", "schema": STREET}
FOUND: dict[str, tuple[Any, dict[str, Any]]] = {
    "a path item": (ref("./x.yaml"), {"api/x.yaml": get_x(requestBody=answer(STREET))}),
    "a path item with siblings": (
        {**ref("x.yaml"), "parameters": []},
        {"api/x.yaml": get_x(requestBody=answer(STREET))},
    ),
    "a schema by a pointer": (
        body(ref("x.yaml#/components/schemas/A")),
        {"api/x.yaml": {"components": {"schemas": {"A": STREET}}}},
    ),
    "a folder above, JSON": (
        body(ref("../shared/common.json#/A")),
        {"shared/common.json": {"A": STREET}},
    ),
    "a file of a file, from where that lies": (
        body(ref("../shared/a.json#/A")),
        {"shared/a.json": {"A": ref("deep/b.yaml")}, "shared/deep/b.yaml": STREET},
    ),
    "a pointer inside the other file": (
        body(ref("x.yaml#/A")),
        {"api/x.yaml": {"A": ref("#/B"), "B": STREET}},
    ),
    "a pointer across a reference": (
        body(ref("#/components/schemas/A")),
        {"api/schemas/index.yaml": {"A": ref("./a.yaml")}, "api/schemas/a.yaml": STREET},
    ),
    "back to the first file": (
        body(ref("x.yaml#/A")),
        {"api/x.yaml": {"A": ref("api.yaml#/components/own/B")}},
    ),
    "a parameter": (get_x(parameters=[ref("x.yaml#/Q")]), {"api/x.yaml": {"Q": QUERY}}),
    "a list of parameters": (get_x(parameters=ref("x.yaml#/L")), {"api/x.yaml": {"L": [QUERY]}}),
    "a schema of a parameter": (
        get_x(parameters=[{**QUERY, "schema": ref("x.yaml")}]),
        {"api/x.yaml": STREET},
    ),
    "a body": (get_x(requestBody=ref("x.yaml")), {"api/x.yaml": answer(STREET)}),
    "a kind of content": (
        get_x(requestBody={"content": {"application/json": ref("x.yaml")}}),
        {"api/x.yaml": {"schema": STREET}},
    ),
    "a response": (get_x(responses={"200": ref("x.yaml")}), {"api/x.yaml": answer(STREET)}),
    "a response by its number": (
        get_x(responses={"200": ref("x.yaml#/200")}),
        {"api/x.yaml": {200: answer(STREET)}},
    ),
    "all responses": (get_x(responses=ref("x.yaml")), {"api/x.yaml": {"200": answer(STREET)}}),
    "properties": (
        body({"type": "object", "properties": ref("x.yaml")}),
        {"api/x.yaml": STREET["properties"]},
    ),
    "a property named default": (
        body({"type": "object", "properties": {"default": ref("x.yaml")}}),
        {"api/x.yaml": STREET},
    ),
    "beside siblings": (body(ref("x.yaml", description="Told.")), {"api/x.yaml": STREET}),
    "in allOf": (body({"allOf": [ref("x.yaml")]}), {"api/x.yaml": STREET}),
    "escapes": (
        body(ref("a%20b.yaml#/paths/~1p~0q%7B/A")),
        {"api/a b.yaml": {"paths": {"/p~q{": {"A": STREET}}}},
    ),
    "an anchor": (
        body(ref("x.yaml#there")),
        {"api/x.yaml": {"deep": [{**STREET, "$anchor": "there"}]}},
    ),
    "a dynamic reference": (
        body({"$dynamicRef": "x.yaml#node"}),
        {"api/x.yaml": {"deep": {**STREET, "$dynamicAnchor": "node"}}},
    ),
    "an address that a file gives itself": (
        body({"allOf": [ref("x.yaml#/A")]}),
        {
            "api/x.yaml": {
                "$id": "https://example.com/x.json",
                "A": ref("y.json"),
                "$defs": {"y": {"$id": "y.json", **STREET}},
            }
        },
    ),
    "a mapping of a discriminator": (
        body(
            {
                "type": "object",
                "properties": {"pet": {"discriminator": {"mapping": {"dog": "x.yaml"}}}},
            }
        ),
        {"api/x.yaml": STREET},
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_what_a_reference_leads_to_is_part_of_the_tool(case: str, tmp_path: Path) -> None:
    item, files = FOUND[case]
    components = {"schemas": ref("schemas/index.yaml"), "own": {"B": STREET}}
    before = shown(api(tmp_path, item, files, components=components))
    assert "street" in json.dumps(before["x"])
    assert "$ref" not in json.dumps(before)
    changed = json.loads(json.dumps(files).replace("street", "road"))
    if files == changed:
        components["own"]["B"] = json.loads(json.dumps(STREET).replace("street", "road"))
    files = {name: _numbered(content) for name, content in changed.items()}
    after = shown(api(tmp_path, item, files, components=components))
    assert "road" in json.dumps(after["x"])
    assert before["y"] == after["y"]


def _numbered(content: Any) -> Any:
    """With the keys of responses as numbers again."""
    return {int(k) if k == "200" else k: v for k, v in content.items()}


def test_all_paths_may_be_in_another_file(tmp_path: Path) -> None:
    path = api(tmp_path, {}, {"api/paths.yaml": {"/x": ref("x.yaml")}, "api/x.yaml": get_x()})
    path.write_text("openapi: 3.0.0\npaths: {$ref: paths.yaml, /y: {get: {operationId: y}}}")
    assert set(shown(path)) == {"x", "y"}


def test_what_is_written_for_30_is_read_so_in_other_files(tmp_path: Path) -> None:
    path = api(tmp_path, body(ref("x.yaml")), {})
    path.write_text(path.read_text().replace("3.1.0", "3.0.3"))
    inner = {"type": "string", "nullable": True}
    (path.parent / "x.yaml").write_text(yaml.safe_dump({"properties": {"note": inner}}))
    assert shown(path)["x"]["inputSchema"]["properties"]["note"]["type"] == ["string", "null"]


def test_a_file_url_is_a_file(tmp_path: Path) -> None:
    there = (tmp_path / "shared" / "x.yaml").as_uri()
    path = api(tmp_path, body(ref(there)), {"shared/x.yaml": STREET})
    assert "street" in shown(path)["x"]["inputSchema"]["properties"]


def test_circles_over_files_end(tmp_path: Path) -> None:
    tree = {"type": "object", "properties": {"child": ref("b.yaml"), "street": {}}}
    back = {"type": "object", "properties": {"parent": ref("a.yaml#"), "top": ref("api.yaml#/s")}}
    path = api(
        tmp_path, body(ref("a.yaml")), {"api/a.yaml": tree, "api/b.yaml": back}, s=ref("a.yaml")
    )
    assert set(shown(path)["x"]["inputSchema"]["properties"]) == {"child", "street"}


def test_what_no_tool_is_made_of_is_not_looked_into(tmp_path: Path) -> None:
    examples = {"one": {"externalValue": "none.json"}, "two": ref("none.yaml")}
    media = {"schema": {**STREET, "x-more": ref("none.yaml")}, "examples": examples}
    media["schema"]["default"] = ref("none.yaml")
    media["schema"]["properties"] = {"street": {"example": ref("none.yaml")}}
    links = {"next": {"operationRef": "none.yaml#/paths"}}
    response = {"content": {"application/json": media}, "links": links}
    item = get_x(responses={"200": response}, callbacks={"done": ref("none.yaml")})
    path = api(tmp_path, item, {}, components={"schemas": {"Unused": ref("none.yaml")}})
    document = yaml.safe_load(path.read_text())
    assert with_files(document, path) is document


# -- what cannot be read ---------------------------------------------------------------------------

NONE: dict[str, tuple[Any, str]] = {
    "a missing file": (ref("./none.yaml"), r"'./none.yaml' .*there is no file none.yaml"),
    "a folder": (body(ref("..")), "there is no file"),
    "a missing pointer": (body(ref("x.yaml#/B")), "there is nothing at that place"),
    "a missing anchor": (body(ref("x.yaml#b")), "there is nothing at that place"),
    "a missing part of its own": (body(ref("#/components/schemas/Missing")), "schemas/Missing"),
    "a missing path item of its own": (ref("#/components/pathItems/X"), "pathItems/X"),
    "an address": (body(ref("https://example.com/a.yaml#/A")), "nothing is fetched.*bundle"),
    "an address without a scheme": (body(ref("//example.com/a.yaml")), "cannot be followed"),
    "a name": (body(ref("urn:example:a")), "urn: is not the address of a file"),
    "a text": (body(ref("text.yaml")), "contains no"),
    "no YAML": (body(ref("bad.yaml")), "bad.yaml is not YAML"),
    "a number": (body(ref("x.yaml#/n")), "leads to no object"),
    "what is outside": (body(ref("../../outside.yaml")), "only files below"),
    "an absolute path": (body(ref("/etc/passwd")), "only files below"),
    "a hidden file": (body(ref("../.secret/key.yaml")), "no hidden files"),
    "a link that leads out": (body(ref("link.yaml")), "only files below"),
    "itself": (ref("#/paths/~1x"), "leads only back to itself"),
    "a circle of nothing": (ref("circle.yaml"), "leads only back to itself"),
    "a list of itself": (get_x(parameters=ref("#/paths/~1x/get/parameters")), "follow one another"),
    "one in a file that is read": (body(ref("x.yaml#/gone")), r"'gone.yaml' in x.yaml"),
}


@pytest.mark.parametrize("case", NONE)
def test_what_cannot_be_read_is_named(case: str, tmp_path: Path) -> None:
    item, said = NONE[case]
    folder = tmp_path / "project"
    files = {
        "api/x.yaml": {"A": STREET, "n": 5, "gone": ref("gone.yaml")},
        "api/text.yaml": "root:x:0:0",
        "api/circle.yaml": ref("circle.yaml"),
        ".secret/key.yaml": {"token": "s3cret"},
        "../outside.yaml": STREET,
    }
    path = api(folder, item, files)
    (folder / "api" / "bad.yaml").write_text("a: [")
    (folder / "api" / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    with pytest.raises(UsageError, match=said):
        shown(path)


def test_a_repository_is_read_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    path = api(tmp_path / "a" / "b", body(ref("../../../x.yaml")), {"../../x.yaml": STREET})
    assert "street" in shown(path)["x"]["inputSchema"]["properties"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = api(tmp_path, body(ref("pipe.yaml")), {})
    os.mkfifo(path.parent / "pipe.yaml")
    with pytest.raises(UsageError, match="there is no file"):
        shown(path)


def test_what_was_read_from_no_file_has_no_folder_to_look_in() -> None:
    document = {"openapi": "3.1.0", "paths": {"/x": ref("x.yaml")}}
    with pytest.raises(UsageError, match="not read from a file"):
        read_openapi(document)


def test_thousands_of_references_come_to_an_end(tmp_path: Path) -> None:
    many = {f"s{n}": {"allOf": [ref(f"#/s{n + 1}"), ref(f"#/s{n + 1}")]} for n in range(3000)}
    path = api(tmp_path, body(ref("x.yaml#/s0")), {"api/x.yaml": {**many, "s3000": STREET}})
    assert "x" in shown(path)
    chain = {f"api/c{n}.json": ref(f"c{n + 1}.json") for n in range(MAX_FILES)}
    path = api(tmp_path, body(ref("c0.json")), chain)
    with pytest.raises(UsageError, match=f"more than {MAX_FILES} files"):
        shown(path)


# -- tool lists ------------------------------------------------------------------------------------


def lists(folder: Path, schema: Any) -> dict[str, Any]:
    (folder / "common.json").write_text(
        json.dumps({"A": {"$id": "urn:a", **ref("#/B")}, "B": {**STREET, "required": ["street"]}})
    )
    found: dict[str, Any] = with_definitions(schema, folder / "tools.json")
    return found


WHOLE: list[Callable[[str], dict[str, Any]]] = [
    ref,
    lambda to: {"allOf": [ref(to)]},
    lambda to: {"$schema": "http://json-schema.org/draft-07/schema#", "allOf": [ref(to)]},
]


@pytest.mark.parametrize("of", WHOLE)
def test_a_schema_of_a_list_gets_definitions(of: Any, tmp_path: Path) -> None:
    schema = lists(tmp_path, of("common.json#/A"))
    (tool,) = from_mcp([{"name": "f", "inputSchema": schema}]).tools
    assert [param.name for param in tool.params] == ["street"]
    assert jsonschema_rs.is_valid(schema, {"street": "x"})
    assert not jsonschema_rs.is_valid(schema, {})


def test_definitions_of_the_schema_keep_their_names(tmp_path: Path) -> None:
    own = {"A": {"type": "integer"}}
    properties = {"one": ref("#/$defs/A"), "two": ref("common.json#/A")}
    schema = lists(tmp_path, {"type": "object", "properties": properties, "$defs": own})
    assert schema["properties"] == {"one": ref("#/$defs/A"), "two": ref("#/$defs/A_2")}
    assert schema["$defs"]["A"] == own["A"]
    assert jsonschema_rs.is_valid(schema, {"one": 1, "two": {"street": "x"}})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": ref("#/$defs/A")}, "$defs": {"A": STREET}},
        {"properties": {"child": ref("#")}},
        {"properties": {"schema": ref("http://json-schema.org/draft-07/schema#")}},
        {"properties": {"a": {"default": ref("none.json")}, "b": ref("#/$defs/none")}},
        {"properties": {"$ref": {"type": "string"}}},
        {"properties": {"a": {"const": ref("none.json")}}},
        True,
        None,
        [],
    ],
)
def test_a_schema_that_leads_nowhere_else_stays_the_same_object(schema: Any) -> None:
    assert with_definitions(schema, None) is schema
