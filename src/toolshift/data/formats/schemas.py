"""Parameters in the types of Python, as xLAM and ToolACE write them, and as JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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
_DATA = ("default", "enum", "const", "examples", "required")
"""Keys of a schema under which no schemas stand."""
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
        elif key in _DATA:
            out[key] = value
        else:
            out[key] = as_json_schema(value)
    return out


def in_words(node: Any, like: Any) -> Any:
    """A JSON Schema with the words for its types that other schemas use.

    Args:
        node: the schema, or what holds it.
        like: the others.

    Returns:
        The same, with `int` for `integer` where the others speak so.
    """
    words = {json_type(said): said for said in _types_in(like)}
    if words.get("object") == "dict":
        words = {"integer": "int", "number": "float", **words}
    return _said_in(node, words)


def _types_in(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if isinstance(node.get("type"), str):
            yield node["type"]
        node = list(node.values())
    for one in node if isinstance(node, list) else ():
        yield from _types_in(one)


def _said_in(node: Any, words: Mapping[str, str]) -> Any:
    if isinstance(node, list):
        return [_said_in(one, words) for one in node]
    if not isinstance(node, Mapping):
        return node
    return {
        key: words.get(value, value)
        if key == "type" and isinstance(value, str)
        else value
        if key in _DATA
        else _said_in(value, words)
        for key, value in node.items()
    }
