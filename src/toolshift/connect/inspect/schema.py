"""JSON Schemas as Inspect can carry them: references inlined, and what is lost named.

Inspect's schema class knows the keywords in `KNOWN` and drops every other one in silence. Here
what can be said otherwise is said otherwise, and the rest is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from toolshift.core.values import as_list, as_mapping

KNOWN = frozenset(
    (
        "type", "format", "description", "default", "enum", "items", "properties",
        "additionalProperties", "anyOf", "required", "pattern", "minLength", "maxLength",
        "minimum", "maximum", "examples",
    )
)  # fmt: skip
DEEPEST = 64
"""Levels of a schema that are read; what is nested more deeply accepts anything."""
HARMLESS = frozenset(("$schema", "$id", "$defs", "definitions", "$comment", "title"))
"""Dropped without a loss: they constrain nothing, or are inlined where they are used."""


class Simplified(msgspec.Struct, frozen=True):
    """A schema in the keywords of `KNOWN`, and where (a path) which keyword was lost."""

    schema: dict[str, Any]
    losses: tuple[str, ...] = ()


def simplify(schema: Mapping[str, Any]) -> Simplified:
    """Says a schema in Inspect's keywords.

    `$ref` is inlined, `oneOf` becomes `anyOf`, `const` a choice of one; members of `allOf` are
    put together where no two say the same thing differently. A reference that leads back to
    itself is cut, and said as a loss, as is every keyword that has no place.
    """
    losses: list[str] = []
    plain = _plain(schema, schema, "", (), losses)
    return Simplified(plain, tuple(losses))


def _plain(
    node: Any, root: Mapping[str, Any], where: str, trail: tuple[str, ...], losses: list[str]
) -> dict[str, Any]:
    """One schema, in place; `trail` holds the references that led here."""
    if not isinstance(node, Mapping):
        if node is False:
            losses.append(f"{where or '/'}: false")
        return {}
    if where.count("/") > DEEPEST or len(trail) > DEEPEST:
        losses.append(f"{where[:80]}...: it is nested too deeply")
        return {}
    node = dict(node)
    reference = node.pop("$ref", None)
    if reference is not None:
        if reference in trail:
            losses.append(f"{where or '/'}: {reference} leads back to itself")
            return _plain(node, root, where, trail, losses)
        target = _look_up(root, str(reference))
        if target is None:
            losses.append(f"{where or '/'}: {reference} is not in the schema")
        node, trail = {**(target or {}), **node}, (*trail, str(reference))
        if "$ref" in node:
            return _plain(node, root, where, trail, losses)
    node = _together(node, root, where, trail, losses)
    if "const" in node:
        node["enum"] = [node.pop("const")]
    if "oneOf" in node:
        node["anyOf"] = [*as_list(node.get("anyOf")), *as_list(node.pop("oneOf"))]
    return {
        key: _value(key, value, root, where, trail, losses)
        for key, value in node.items()
        if _is_kept(key, where, losses)
    }


def _is_kept(key: str, where: str, losses: list[str]) -> bool:
    if key not in KNOWN and key not in HARMLESS:
        losses.append(f"{where or '/'}: {key}")
    return key in KNOWN


def _value(
    key: str,
    value: Any,
    root: Mapping[str, Any],
    where: str,
    trail: tuple[str, ...],
    losses: list[str],
) -> Any:
    """The value of a keyword; schemas inside it are said in the same way."""
    place = f"{where}/{key}"
    if key == "properties" and isinstance(value, Mapping):
        return {
            name: _plain(inner, root, f"{place}/{name}", trail, losses)
            for name, inner in value.items()
        }
    if key == "anyOf" and isinstance(value, list):
        return [_plain(one, root, f"{place}/{n}", trail, losses) for n, one in enumerate(value)]
    if key == "items" and isinstance(value, list):
        losses.append(f"{place}: one schema for each place")
        return {}
    if key == "items" or (key == "additionalProperties" and isinstance(value, Mapping)):
        return _plain(value, root, place, trail, losses)
    return value


def _together(
    node: dict[str, Any],
    root: Mapping[str, Any],
    where: str,
    trail: tuple[str, ...],
    losses: list[str],
) -> dict[str, Any]:
    """Puts the members of `allOf` together."""
    joined: dict[str, Any] = {key: value for key, value in node.items() if key != "allOf"}
    for number, member in enumerate(as_list(node.get("allOf"))):
        part = _plain(member, root, f"{where}/allOf/{number}", trail, losses)
        for key, value in part.items():
            if key == "properties":
                joined[key] = {**as_mapping(value), **as_mapping(joined.get(key))}
            elif key == "required":
                both = (*as_list(joined.get(key)), *as_list(value))
                joined[key] = list(dict.fromkeys(name for name in both if isinstance(name, str)))
            elif joined.setdefault(key, value) != value and key != "description":
                losses.append(f"{where or '/'}: two of allOf differ in {key}")
    return joined


def _look_up(root: Mapping[str, Any], reference: str) -> dict[str, Any] | None:
    """What a reference inside the document points to."""
    if reference == "#":
        return dict(root)
    if not reference.startswith("#/"):
        return None
    place: Any = root
    for part in reference[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        place = place.get(key) if isinstance(place, Mapping) else None
    return dict(place) if isinstance(place, Mapping) else None
