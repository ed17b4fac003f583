"""The tools on offer, and the values of arguments that a text writes without their types."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from toolshift.core.calls import is_json
from toolshift.core.values import as_list, as_mapping
from toolshift.lm.call_texts.python_values import Malformed, read_value

_LITERALS = {"True": True, "False": False, "None": None}
_DEEPEST = 8
"""How many references and options of a schema are followed."""


class Tools:
    """The tools on offer: their names, and what types their parameters have.

    Args:
        given: tools in the OpenAI format, or their names alone; empty where they are not known.
    """

    def __init__(self, given: Iterable[Mapping[str, Any] | str] = ()) -> None:
        self._schemas: dict[str, Any] = {}
        self.given = tuple(given)
        for tool in self.given:
            if isinstance(tool, str):
                self._schemas[tool] = {}
            else:
                function = tool.get("function", tool)
                self._schemas[str(function.get("name"))] = function.get("parameters")

    @property
    def names(self) -> Collection[str]:
        """The names of all."""
        return self._schemas.keys()

    def own(self, name: str, *prefixes: str) -> str:
        """The name without a prefix, where only that makes it one on offer."""
        if name in self.names:
            return name
        return next(
            (bare for prefix in prefixes if (bare := name.removeprefix(prefix)) in self.names), name
        )

    def parameters(self, name: str) -> Collection[str]:
        """The parameters that a tool declares; empty where they are not known."""
        return _properties(self._schemas.get(name)).keys()

    def schema(self, name: str, parameter: str) -> Any:
        """The schema of a parameter; {} where it is not known."""
        whole = self._schemas.get(name)
        found = _properties(whole).get(parameter)
        if found is None and isinstance(whole, Mapping):
            found = whole.get("additionalProperties")
        return _resolved(found, whole)

    def value(self, name: str, parameter: str, text: str) -> Any:
        """The value that a text stands for: by the type of the parameter, else as the text says."""
        return typed(text, self.schema(name, parameter))


def typed(text: str, schema: Any) -> Any:
    """The value that a text stands for under a schema."""
    kinds = set(_kinds(schema))
    if kinds == {"string"}:
        return text
    value = value_in(text)
    return text if "string" in kinds and _kind(value) not in kinds else value


def value_in(text: str) -> Any:
    """The value that a text states: JSON, or a literal of Python; a text in any other case.

    Templates write texts bare and everything else as JSON, so a JSON text keeps its quotes.
    """
    stripped = text.strip()
    if stripped in _LITERALS:
        return _LITERALS[stripped]
    if stripped.startswith('"'):
        return text
    if is_json(stripped):
        return msgspec.json.decode(stripped)
    if stripped.startswith(("[", "{")):
        try:
            value, end = read_value(stripped, 0)
        except Malformed:
            return text
        return value if end == len(stripped) else text
    return text


def _kind(value: Any) -> str:
    """The type of a value, as JSON Schema names it."""
    if value is None:
        return "null"
    names = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "string")


def _kinds(schema: Any) -> Iterator[str]:
    """The types that a schema allows; an integer is also a number."""
    if not isinstance(schema, Mapping):
        return
    kind = schema.get("type")
    for each in kind if isinstance(kind, list) else [kind]:
        if isinstance(each, str):
            yield each
            if each == "number":
                yield "integer"
    if kind is None:
        listed = schema.get("enum", [schema["const"]] if "const" in schema else ())
        for each in as_list(listed):
            yield _kind(each)
        for option in _options(schema):
            yield from _kinds(option)


def _options(schema: Mapping[str, Any]) -> list[Any]:
    found = (schema.get(key) for key in ("anyOf", "oneOf", "allOf"))
    return [option for options in found if isinstance(options, list) for option in options]


def _resolved(schema: Any, whole: Any, depth: int = 0) -> Any:
    """A schema with its references followed, within the schema of the tool."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return {}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        found = whole
        for part in reference[2:].split("/"):
            found = found.get(part) if isinstance(found, Mapping) else None
        return _resolved(found, whole, depth + 1)
    listed = {
        key: [_resolved(option, whole, depth + 1) for option in schema[key]]
        for key in ("anyOf", "oneOf", "allOf")
        if isinstance(schema.get(key), list)
    }
    return {**schema, **listed}


def _properties(schema: Any) -> Mapping[str, Any]:
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return as_mapping(found)
