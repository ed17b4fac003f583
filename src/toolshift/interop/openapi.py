"""Tools from an OpenAPI 3 document: an operation is a tool, called over HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolshift.core.errors import UsageError
from toolshift.interop.schema import flattened, inlined, look_up, properties_of

METHODS = ("get", "put", "post", "delete", "patch")
BODY = "body"


@dataclass(frozen=True)
class Operation:
    """How a tool is called: `places` says for each argument whether it is path, query, header,
    a property of the body ("body") or the whole of it ("whole"), and its name there.
    """

    method: str
    path: str
    places: Mapping[str, tuple[str, str]]
    shown: dict[str, Any]


def read_openapi(document: object) -> list[Operation]:
    """The operations of an OpenAPI 3 document, each with the tool as an MCP server would list it.

    Args:
        document: as parsed from JSON or YAML.

    Returns:
        In the order of the document.

    Raises:
        UsageError: where it is none.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("paths"), Mapping):
        raise UsageError("it is no OpenAPI 3 document: it has no `paths`")
    if not str(document.get("openapi", "")).startswith("3."):
        raise UsageError("it is no OpenAPI 3 document: `openapi` is not 3.x")
    found = list(_operations(document))
    if not found:
        raise UsageError("the OpenAPI document has no operation")
    return found


def _operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    for path, item in document["paths"].items():
        methods = _resolved(item, document)
        for method in METHODS:
            if isinstance(methods.get(method), Mapping):
                yield _operation(str(path), method, methods, document)


def _resolved(node: Any, document: Any) -> Mapping[str, Any]:
    for _ in range(8):
        if not isinstance(node, Mapping) or "$ref" not in node:
            break
        node = look_up(document, node["$ref"])
    return node if isinstance(node, Mapping) else {}


def _operation(
    path: str, method: str, item: Mapping[str, Any], document: Mapping[str, Any]
) -> Operation:
    said = item[method]
    name = said.get("operationId") or f"{method}_{path}"
    name = re.sub(r"\W+", "_", str(name)).strip("_")
    places: dict[str, tuple[str, str]] = {}
    properties: dict[str, Any] = {}
    required: list[str] = []

    def add(key: str, place: str, schema: Any, told: Any, needed: bool) -> None:
        own = key if key not in properties else f"{place}_{key}"
        schema = dict(inlined(schema if isinstance(schema, Mapping) else {}, document))
        properties[own] = {**schema, "description": str(told)} if told else schema
        places[own] = (place, key)
        if needed:
            required.append(own)

    for param in _parameters(item, said, document):
        needed = bool(param.get("required")) or param["in"] == "path"
        add(param["name"], param["in"], param.get("schema"), param.get("description"), needed)
    body = _resolved(said.get("requestBody"), document)
    schema = _json_schema(body)
    if schema is not None:
        declared, needs = properties_of(inlined(schema, document))
        for key, inner in declared.items():
            add(key, BODY, inner, None, key in needs)
        if not declared:
            add(BODY, "whole", schema, None, bool(body.get("required")))
    told = "\n".join(str(text) for key in ("summary", "description") if (text := said.get(key)))
    shown: dict[str, Any] = {
        "name": name,
        "description": told,
        "inputSchema": {"type": "object", "properties": properties, "required": required},
        "annotations": {"readOnlyHint": method == "get"},
    }
    outputs = _outputs(said.get("responses"), document)
    return Operation(method, path, places, {**shown, "outputSchema": outputs} if outputs else shown)


def _parameters(
    item: Mapping[str, Any], said: Mapping[str, Any], document: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """The parameters of an operation that a tool can have; what is none is left out.

    One of the operation stands in place of the path's of the same name.
    """
    listed = (item.get("parameters"), said.get("parameters"))
    raws = [raw for each in listed if isinstance(each, list) for raw in each]
    params = [_resolved(raw, document) for raw in raws]
    named = [each for each in params if isinstance(each.get("name"), str)]
    places = [each for each in named if each.get("in") in ("path", "query", "header")]
    return list({(each["in"], each["name"]): each for each in places}.values())


def _json_schema(body: Mapping[str, Any]) -> Any:
    content = body.get("content")
    for kind, media in content.items() if isinstance(content, Mapping) else ():
        if "json" in str(kind) and isinstance(media, Mapping):
            return media.get("schema") or {}
    return None


def _outputs(responses: Any, document: Any) -> dict[str, Any] | None:
    """The schema of a good answer that is a record, or a list of records."""
    listed = responses.items() if isinstance(responses, Mapping) else ()
    good = next((r for code, r in listed if str(code).startswith("2")), None)
    schema = _json_schema(_resolved(good, document))
    if schema is None:
        return None
    written = flattened(inlined(schema, document))
    if written.get("properties"):
        return {**written, "type": "object"}
    items = written.get("items")
    if isinstance(items, Mapping) and items.get("properties"):
        return {"type": "object", "properties": {"result": written}}
    return None
