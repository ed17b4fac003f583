"""Parameters in the types of Python, as xLAM and ToolACE write them, and as JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from toolshift.core.values import as_list

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
SPOKEN = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}
"""The words of Python for the types of JSON."""


def json_type(said: str) -> str:
    """The JSON type of `str`, `List[int]`, `dict, optional`; "" where it is none of them."""
    word = re.match(r"\s*([A-Za-z]+)", said)
    return TYPES.get(word[1].lower(), "") if word else ""


def strict_fault(schema: Any, where: str = "parameters") -> str:
    """What `strict: true` of OpenAI does not allow in a schema, all the way down; "" for nothing.

    Each object names all of its properties in `required`, and takes no others.
    """
    if isinstance(schema, list):
        return next(filter(None, (strict_fault(one, where) for one in schema)), "")
    if not isinstance(schema, Mapping):
        return ""
    properties = schema.get("properties")
    if isinstance(properties, Mapping) or schema.get("type") == "object":
        names = set(properties) if isinstance(properties, Mapping) else set()
        required = schema.get("required")
        missing = names - set(as_list(required))
        if missing:
            return f"{where}: {min(missing)} is not required"
        if schema.get("additionalProperties") is not False:
            return f"{where}: it takes further properties"
    for key, value in schema.items():
        if key in ("properties", "$defs", "definitions") and isinstance(value, Mapping):
            inner = (strict_fault(one, f"{where}.{name}") for name, one in value.items())
            if fault := next(filter(None, inner), ""):
                return fault
        elif key not in _DATA and (fault := strict_fault(value, where)):
            return fault
    return ""


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
    """A JSON Schema with the words for its types that other schemas use."""
    return said_in(node, words_in(like))


def words_in(like: Any) -> dict[str, str]:
    """The words that schemas have for types, by the type of JSON."""
    words = {TYPES[said.lower()]: said for said in _types_in(like) if said.lower() in TYPES}
    if words.get("object") == "dict":
        words = {"integer": "int", "number": "float", **words}
    return words


def rewritten(
    shown: Any,
    read: Any,
    raw: Any,
    words: Mapping[str, str],
    names: Mapping[str, str] = MappingProxyType({}),
) -> Any:
    """A schema, written as the one in whose place it stands."""
    if shown == read:
        return raw
    if not (isinstance(shown, Mapping) and isinstance(read, Mapping) and isinstance(raw, Mapping)):
        return said_in(shown, words)
    # Keys that reading has passed over are of the row, and stay.
    out = {key: value for key, value in raw.items() if key in shown or key not in read}
    for key, value in shown.items():
        was, before = read.get(key), raw.get(key)
        if key in read and value == was:
            continue
        if key == "properties":
            out[key] = {
                name: rewritten(one, _member(was, own), _member(before, own), words)
                for name, one in value.items()
                for own in (names.get(name, name),)
            }
        elif isinstance(value, Mapping) and key not in _DATA:
            out[key] = rewritten(value, was, before, words)
        else:
            out |= said_in({key: value}, words)
    return out


def _member(node: Any, key: str) -> Any:
    return node.get(key) if isinstance(node, Mapping) else None


def _types_in(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if isinstance(node.get("type"), str):
            yield node["type"]
        node = list(node.values())
    for one in as_list(node):
        yield from _types_in(one)


def said_in(node: Any, words: Mapping[str, str]) -> Any:
    """A JSON Schema with other words for its types, all the way down."""
    if isinstance(node, list):
        return [said_in(one, words) for one in node]
    if not isinstance(node, Mapping):
        return node
    return {
        key: words.get(value, value)
        if key == "type" and isinstance(value, str)
        else value
        if key in _DATA
        else said_in(value, words)
        for key, value in node.items()
    }
