"""The parts of a schema in the one form (`interop.normal`): alternatives, types, members, items."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from toolshift.core.tool import Param
from toolshift.interop.normal import Node

ALL_KINDS = frozenset(("string", "number", "integer", "boolean", "object", "array", "null"))
_KINDS: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
    list: "array",
    dict: "object",
}


def alternatives(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The alternatives of a schema; the schema itself if it has none."""
    listed = [schema.get(key) for key in ("anyOf", "oneOf")]
    parts = [
        part
        for several in listed
        if isinstance(several, list)
        for part in several
        if isinstance(part, Mapping)
    ]
    return [alternative for part in parts for alternative in alternatives(part)] or [schema]


def kinds_of(schema: Mapping[str, Any]) -> frozenset[str]:
    """The types that a schema takes; an integer is a number."""
    kinds: set[str] = set()
    for part in alternatives(schema):
        declared = part.get("type", schema.get("type"))
        listed = listed_in(part)
        if isinstance(declared, str):
            kinds.add(declared)
        elif isinstance(declared, list):
            kinds.update(map(str, declared))
        elif listed is not None:
            kinds.update(_KINDS.get(type(value), "object") for value in listed)
        elif "properties" in part:
            kinds.add("object")
        else:
            kinds |= ALL_KINDS
    return frozenset(kinds | ({"integer"} if "number" in kinds else set()))


def listed_in(schema: Mapping[str, Any]) -> list[Any] | None:
    """The values that a schema itself lists; None where it lists none."""
    if isinstance(schema.get("enum"), list):
        return list(schema["enum"])
    return [schema["const"]] if "const" in schema else None


def core_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema that may also be null, without that; one with several alternatives as it is."""
    parts = [part for part in alternatives(schema) if part.get("type") != "null"]
    if len(parts) != 1 or parts[0] is schema:
        return schema
    outer = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
    return {**outer, **parts[0]}


def items_of(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema of the items of a list; None where nothing is said of them."""
    for part in alternatives(schema):
        items = part.get("items")
        if isinstance(items, Mapping):
            return items
    return None


def further_of(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema of undeclared members; None if they are refused."""
    further = core_of(schema).get("additionalProperties", True)
    return None if further is False else further if isinstance(further, Mapping) else {}


def members_of(schema: Mapping[str, Any]) -> dict[str, Param]:
    """The declared members of an object, over its alternatives; required where all require it."""
    parts = [one for one in alternatives(schema) if isinstance(one.get("properties"), Mapping)]
    declared: dict[str, Param] = {}
    for part in parts:
        for name, inner in part["properties"].items():
            required = all(
                isinstance(alternative.get("required"), list) and name in alternative["required"]
                for alternative in parts
            )
            own = dict(inner) if isinstance(inner, Mapping) else {}
            declared.setdefault(name, Param(name, name, own, required))
    return declared


# -- alternatives that a property tells apart ------------------------------------------------------


@dataclass(frozen=True)
class Tagged:
    """The alternatives of an object, by the one value that each has for a property.

    Attributes:
        name: of the property.
        parts: for each value the alternative.
    """

    name: str
    parts: Mapping[str, Mapping[str, Any]]


def tagged(schema: Mapping[str, Any]) -> Tagged | None:
    """The alternatives of an object that a property tells apart; None where it has none."""
    parts = [part for part in alternatives(schema) if part.get("type") != "null"]
    names = [
        {
            name: str(inner["enum"][0])
            for name, inner in (part.get("properties") or {}).items()
            if isinstance(inner, Mapping) and len(inner.get("enum") or ()) == 1
        }
        for part in parts
    ]
    for name in names[0] if len(parts) > 1 else ():
        found = {each.get(name, ""): part for each, part in zip(names, parts, strict=True)}
        if len(found) == len(parts) and "" not in found:
            return Tagged(name, found)
    return None


def untagged(part: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An alternative without the property that tells it apart."""
    kept = {key: one for key, one in (part.get("properties") or {}).items() if key != name}
    needed = [one for one in part.get("required") or () if one != name]
    bare = Node({**part, "properties": kept, "required": needed})
    bare.place = getattr(part, "place", "")
    return bare


def renamed_to(names: Mapping[str, str], path: str, name: str, new: Collection[str]) -> str:
    """The name that a member at a path has among the new ones: the one it was given, or its own.

    Alternatives of an object share their paths, so what became of a member of one may not be
    there in another; that one keeps its name.
    """
    given = names.get(path, name)
    return given if given in new else name
