"""When two calls of a tool say the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolshift.core.tool import Tool
from toolshift.core.values import as_list


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: true is no 1, but 1 and 1.0 are the same number."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def without_defaults(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without those that say the same as leaving them out.

    That is an optional argument at its declared default, and likewise what stands inside of
    objects. Null is no default unless it is declared: some tools clear a value by it.
    """
    schema = {
        "properties": {param.name: param.schema for param in tool.params},
        "required": [param.name for param in tool.params if param.required],
    }
    plain: dict[str, Any] = plain_value(dict(arguments), schema)
    return plain


def plain_value(value: Any, schema: Any) -> Any:
    """A value of this JSON Schema without what says the same as leaving it out."""
    if not isinstance(schema, Mapping):
        return value
    schema = _not_null(schema)
    if isinstance(value, list):
        return [plain_value(each, schema.get("items")) for each in value]
    declared = schema.get("properties")
    if not isinstance(value, dict) or not isinstance(declared, Mapping):
        return value
    required = schema.get("required")
    needed = as_list(required)
    inner = {key: plain_value(each, declared.get(key)) for key, each in value.items()}
    return {
        key: each
        for key, each in inner.items()
        if key in needed or not _is_default(each, declared.get(key))
    }


def _not_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The one schema beside null, as Python's `X | None` becomes; else the schema itself."""
    listed = schema.get("anyOf", schema.get("oneOf"))
    parts = [one for one in listed if one != {"type": "null"}] if isinstance(listed, list) else []
    return parts[0] if len(parts) == 1 and isinstance(parts[0], Mapping) else schema


def _is_default(value: Any, schema: Any) -> bool:
    return isinstance(schema, Mapping) and "default" in schema and same(value, schema["default"])
