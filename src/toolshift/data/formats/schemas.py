"""Parameters in the types of Python, as xLAM and ToolACE write them, and as JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

TYPES = {
    "str": "string",
    "string": "string",
    "int": "integer",
    "integer": "integer",
    "float": "number",
    "double": "number",
    "number": "number",
    "bool": "boolean",
    "boolean": "boolean",
    "list": "array",
    "array": "array",
    "tuple": "array",
    "set": "array",
    "dict": "object",
    "dictionary": "object",
    "hashmap": "object",
    "object": "object",
    "none": "null",
    "null": "null",
}
_SPOKEN = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}


def json_type(said: str) -> str:
    """The JSON type of `str`, `List[int]`, `dict, optional`; "" where it is none of them."""
    word = re.match(r"\s*([A-Za-z]+)", said)
    return TYPES.get(word[1].lower(), "") if word else ""


def spoken_type(schema: Mapping[str, Any]) -> str:
    """The word of Python for the type of a schema."""
    kind = schema.get("type")
    return _SPOKEN.get(kind, "any") if isinstance(kind, str) else "any"


def as_json_schema(node: Any) -> Any:
    """A schema whose types are words of Python, all the way down, as JSON Schema."""
    if isinstance(node, list):
        return [as_json_schema(one) for one in node]
    if not isinstance(node, Mapping):
        return node
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key == "type" and isinstance(value, str):
            known = json_type(value)
            out |= {"type": known} if known else {}
        elif key == "properties" and isinstance(value, Mapping):
            out[key] = {name: as_json_schema(one) for name, one in value.items()}
        elif key == "required" and not isinstance(value, list):
            continue
        elif key in ("default", "enum", "const", "examples", "required"):
            out[key] = value
        else:
            out[key] = as_json_schema(value)
    return out
