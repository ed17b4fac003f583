"""What of a JSON Schema is not written as one, so that it says nothing of the values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolshift.interop.schema import LISTS, MANY

_ONE = frozenset(
    ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
     "unevaluatedItems", "unevaluatedProperties", "additionalItems")
)  # fmt: skip
"""Keywords under which one schema stands; `items` may have a list of them."""


def schema_faults(schema: Any, place: str = "#") -> Iterator[tuple[str, str]]:
    """The parts of a schema that are none, each as its place and what is wrong with it."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        yield place, "it is no object"
        return
    for key, value in schema.items():
        inner = f"{place}/{key}"
        if key in MANY and not isinstance(value, Mapping):
            yield inner, "it is no object"
        elif key in LISTS and not isinstance(value, list):
            yield inner, "it is no list"
        else:
            for name, one in _schemas_in(key, value):
                yield from schema_faults(one, f"{inner}{name}")


def _schemas_in(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The schemas that stand under a keyword, each with the rest of its place."""
    if key in MANY:
        yield from ((f"/{name}", one) for name, one in value.items())
    elif key in LISTS or (key == "items" and isinstance(value, list)):
        yield from ((f"/{number}", one) for number, one in enumerate(value))
    elif key in _ONE:
        yield "", value
