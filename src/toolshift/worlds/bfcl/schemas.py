"""BFCL's documents of functions as MCP servers would list them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema_rs

from toolshift.interop.schema import JSONSchema

KINDS = {
    "dict": "object", "HashMap": "object", "Hashtable": "object", "object": "object",
    "float": "number", "double": "number", "number": "number",
    "integer": "integer", "byte": "integer", "short": "integer", "long": "integer",
    "Bigint": "integer",
    "string": "string", "String": "string", "char": "string", "any": "string", "Any": "string",
    "boolean": "boolean", "bool": "boolean", "Boolean": "boolean",
    "array": "array", "list": "array", "tuple": "array", "Array": "array", "ArrayList": "array",
    "Queue": "array", "Stack": "array", "Set": "array",
}  # fmt: skip
"""BFCL's names of types, and those of JSON Schema; `any` is a string in BFCL too."""
_KEPT = ("description", "default", "enum", "minItems", "maxItems", "maximum", "minimum", "format")


def shown_name(name: str) -> str:
    """The name of a function as models are shown it, without dots."""
    return name.replace(".", "_")


def as_schema(told: Mapping[str, Any]) -> JSONSchema:
    """A schema of BFCL's as JSON Schema."""
    schema: JSONSchema = {key: told[key] for key in _KEPT if key in told}
    kind = KINDS.get(str(told.get("type", "")))
    if kind:
        schema["type"] = kind
    if isinstance(told.get("properties"), Mapping):
        schema["properties"] = {
            name: as_schema(inner) for name, inner in told["properties"].items()
        }
        if told.get("required"):
            schema["required"] = list(told["required"])
    if isinstance(told.get("items"), Mapping):
        schema["items"] = as_schema(told["items"])
    if kind == "array" and "enum" in schema and not isinstance(schema["enum"][0], list):
        schema["items"] = {**schema.get("items", {}), "enum": schema.pop("enum")}
    return schema


def as_source_text(told: Mapping[str, Any], language: str) -> JSONSchema:
    """The schema of a parameter that takes a value as source text in another language."""
    kind = str(told.get("type", "any"))
    inner = told.get("items", {}).get("type") if isinstance(told.get("items"), Mapping) else None
    written = f"{kind} of {inner}" if inner else kind
    description = f"{told.get('description', '')} Written as {language} source, of type {written}."
    return {"type": "string", "description": description.strip()}


def listed(
    document: Mapping[str, Any], inputs: JSONSchema, reads: bool | None = None
) -> dict[str, Any]:
    """A function as an MCP server would list it."""
    tool = {
        "name": shown_name(document["name"]),
        "description": document.get("description", ""),
        "inputSchema": inputs,
    }
    if isinstance(document.get("response"), Mapping):
        tool["outputSchema"] = as_schema(document["response"])
    if reads is not None:
        tool["annotations"] = {"readOnlyHint": reads}
    return tool


def widened(schema: JSONSchema, values: Iterable[Any]) -> JSONSchema:
    """A schema of arguments that allows what the ground truth passes."""
    properties = dict(schema.get("properties", {}))
    for arguments in values:
        for name, value in arguments.items():
            if name in properties and not is_valid(properties[name], value):
                properties[name] = _open_to(properties[name], value)
    return {**schema, "properties": properties}


def is_valid(schema: JSONSchema, value: Any) -> bool:
    """Whether a schema allows a value."""
    return bool(jsonschema_rs.validator_for(schema).is_valid(value))


def _open_to(schema: JSONSchema, value: Any) -> JSONSchema:
    kept = {key: inner for key, inner in schema.items() if key in ("description", "default")}
    before = schema.get("type", [])
    kinds = [before] if isinstance(before, str) else list(before)
    return {**kept, "type": list(dict.fromkeys([*kinds, _kind_of(value)]))}


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds = {int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


READS = re.compile(
    r"(^|_)(get|list|search|view|find|check|display|estimate|compute|verify|retrieve|filter)(_|[A-Z])"
    r"|^(find|cat|diff|du|grep|ls|pwd|sort|tail|wc)$|_to_"
)
"""How functions are named that change nothing; BFCL does not say which do."""
