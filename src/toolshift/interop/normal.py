"""One form of a JSON Schema, whichever dialect and generator wrote it, for comparing two of them.

    normal(schema)   # references written out, and the same for schemas that ask the same

Draft 04 to 2020-12, OpenAPI 2 to 3.1, pydantic and zod write one demand in many ways: `nullable`, a
list of types and `anyOf` with null; `definitions` and `$defs`; `const` and a choice of one; a
reference alone in `allOf`. In the form of this module there is one way each.

Every node knows its place in the document, so that a definition which is used many times, or holds
itself, is compared once. A reference to a node that is being written out is `cut`: only its types
stand there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema_rs

from toolshift.core.canonical import same
from toolshift.core.names import letters
from toolshift.core.values import as_list, as_mapping, is_number
from toolshift.interop.schema import (
    DEEPEST,
    LISTS,
    MANY,
    MAX_NODES,
    JSONSchema,
    look_up,
    tag_of,
    tag_values,
)

_SAFE = 2**53 - 1
"""Libraries write this as the limit of every integer; it limits nothing."""
_UNSAID = frozenset(
    [
        "$schema",
        "$id",
        "id",
        "$anchor",
        "$dynamicAnchor",
        "$recursiveAnchor",
        "$comment",
        "$defs",
        "definitions",
        "$vocabulary",
        "discriminator",
        "xml",
        "externalDocs",
    ]
)
"""Keywords that ask nothing of a value once references are written out."""
_TEXTS = frozenset(("description", "title", "default", "examples", "deprecated"))
_ONE = frozenset(
    [
        "additionalProperties",
        "items",
        "contains",
        "not",
        "propertyNames",
        "if",
        "then",
        "else",
        "unevaluatedProperties",
        "unevaluatedItems",
    ]
)
_BOUNDS = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}
_EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "email": ("someone@example.com", "first.last+tag@mail.example.org"),
    "uuid": ("3f2b6c1e-8a4d-4c9b-9e57-0d1f2a3b4c5d",),
    "date-time": ("2026-01-31T12:00:00Z", "1999-12-01T23:59:59.123Z"),
    "date": ("2026-01-31", "1999-12-01"),
    "ipv4": ("192.0.2.1", "10.20.30.40"),
    "ipv6": ("2001:db8:85a3:0:0:8a2e:370:7334",),
}
"""Ordinary values of a format. A pattern beside it that takes them all is the generator's."""


class Node(dict[str, Any]):
    """A schema in the one form; `place` is where it stood, `cut` whether it leads back in.

    One that leads back in has only what is asked beside its reference.
    """

    place: str = ""
    cut: bool = False


def modern(node: Mapping[str, Any]) -> JSONSchema:
    """One node of OpenAPI 3.0 or draft 04 in the keywords of 2020-12: null is a type, a limit is a
    number.
    """
    out = dict(node)
    for key, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(out.get(key), bool) and out.pop(key) and bound in out:
            out[key] = out.pop(bound)
    if not isinstance(out.get("nullable"), bool) or not out.pop("nullable"):
        return out
    if not isinstance(out.get("type"), str):
        return {"anyOf": [out, {"type": "null"}]}
    choices = {"enum": [*out["enum"], None]} if isinstance(out.get("enum"), list) else {}
    return {**out, "type": [out["type"], "null"], **choices}


def normal(schema: object, name: str = "", strict: bool = False) -> Node:
    """The one form of a schema.

    Args:
        schema: a whole document, to which its references lead.
        name: of the tool that it is of, which generators repeat in its title.
        strict: whether it is of a provider's strict mode, in which every property is required and
            null stands for one that is left out.

    Returns:
        A schema without references that asks what `schema` asks.
    """
    return _Writer(schema, strict).write(schema, "#", (), name)


class _Writer:
    """Writes the form of a document, within bounds."""

    def __init__(self, root: object, strict: bool) -> None:
        self.root, self.strict, self.left = root, strict, MAX_NODES
        self.places: dict[int, str] = {}
        self._held: list[object] = []  # so that no other node gets the identity of one

    def write(self, node: object, place: str, above: tuple[int, ...] = (), name: str = "") -> Node:
        """The form of a node; `above` has the nodes that it stands in, `name` its property's."""
        if isinstance(node, bool):
            return Node() if node else Node({"not": {}})
        if not isinstance(node, Mapping):
            return Node()
        self.left -= 1
        self._held.append(node)
        place = self.places.setdefault(id(node), place)
        if "$ref" not in node and id(node) in above:
            return _cut(node, place)
        if self.left < 0 or len(above) > 2 * DEEPEST:
            return _cut(node, place)
        above = (*above, id(node))
        found = self._whole(_in_2020(node), place, above, name)
        found.place = found.place or place  # a definition's, where it asks that and nothing else
        return found

    def _whole(self, node: JSONSchema, place: str, above: tuple[int, ...], name: str) -> Node:
        reference = node.pop("$ref", node.pop("$dynamicRef", None))
        parts = node.pop("allOf", None)
        own = Node()
        for key, value in node.items():
            if key in _UNSAID or key.startswith("x-") or _is_echo(key, value, name):
                continue
            if _is_malformed(key, value):
                own[f"malformed {key}"] = _plain(value)
            else:
                own[key] = self._value(key, value, f"{place}/{key}", above)
        _tell_apart(own, node)
        own = _one_way(own, self.strict)
        several = [
            self.write(part, f"{place}/allOf/{number}", above, name)
            for number, part in enumerate(as_list(parts))
        ]
        if isinstance(reference, str):
            target = look_up(self.root, reference)
            own_name = reference.rpartition("/")[2]
            several.insert(0, self.write(target, reference, above, own_name))
        if not several:
            return own
        if len(several) == 1 and several[0].cut:
            found = _both(several[0], own)  # what is asked beside the reference holds as well
            found.place, found.cut = several[0].place, True
            return found
        whole = Node()
        for part in (*several, own):
            whole = _both(whole, part)
        if len(several) == 1 and not own:
            self.places[above[-1]] = several[0].place
            place = several[0].place
        whole = _one_way(whole, self.strict)
        whole.place = place
        return whole

    def _value(self, key: str, value: Any, place: str, above: tuple[int, ...]) -> Any:
        if key in MANY and isinstance(value, Mapping):
            named = key == "properties"
            return {
                inner: self.write(one, f"{place}/{inner}", above, inner if named else "")
                for inner, one in value.items()
            }
        if key in LISTS and isinstance(value, list):
            return [self.write(one, f"{place}/{n}", above) for n, one in enumerate(value)]
        if key in _ONE and isinstance(value, Mapping | bool):
            return self.write(value, place, above)
        return _plain(value)


def _tell_apart(own: Node, node: Mapping[str, Any]) -> None:
    """Writes into each alternative the one value by which a discriminator tells it apart."""
    name = tag_of(node)
    for key in ("oneOf", "anyOf") if name else ():
        raws = node[key] if key in own else ()
        for part, raw in zip(own.get(key, ()), raws, strict=False):
            known = part.get("properties", {})
            values = tag_values(node, raw)
            if values and not part.cut and not known.get(name, {}).get("enum"):
                part["properties"] = {**known, name: Node({"enum": values, "type": "string"})}
                part["required"] = sorted({*part.get("required", ()), name})


def _cut(node: Mapping[str, Any], place: str) -> Node:
    found = Node({"type": node["type"]} if "type" in node else {})
    found.place, found.cut = place, True
    return found


def _is_malformed(key: str, value: Any) -> bool:
    """Whether a keyword has no form that it may have. It is kept, and compared as it stands."""
    if key in MANY:
        return not isinstance(value, Mapping)
    if key in LISTS or key in ("required", "enum"):
        return not isinstance(value, list)
    return key in _ONE and not isinstance(value, Mapping | bool)


def _plain(value: Any) -> Any:
    """Data, in which 1.0 is 1."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return value


def _in_2020(node: Mapping[str, Any]) -> JSONSchema:
    """A node with the keywords of 2020-12."""
    out = modern(node)
    if isinstance(out.get("items"), list):
        out["prefixItems"] = out.pop("items")
        if "additionalItems" in out:
            out["items"] = out["additionalItems"]
    out.pop("additionalItems", None)
    if "example" in out:
        out.setdefault("examples", [out.pop("example")])
        out.pop("example", None)
    depending = out.pop("dependencies", None)
    for name, value in depending.items() if isinstance(depending, Mapping) else ():
        key = "dependentRequired" if isinstance(value, list) else "dependentSchemas"
        beside = out.get(key)
        out[key] = {**as_mapping(beside), name: value}
    return out


def _is_echo(key: str, value: Any, name: str) -> bool:
    """Whether a title repeats the name of what it stands at, as generators write one.

    It may go on in the same word: "putArguments" is of `put`, and "Amount in EUR" says more.
    """
    if key != "title" or not isinstance(value, str) or not name:
        return False
    title, known = letters(value), letters(name)
    return title == known or (title.startswith(known) and " " not in value.strip())


# -- one way of each -------------------------------------------------------------------------------


def _one_way(node: Node, strict: bool) -> Node:
    """A node in which each demand is written in one way; what is inside of it is already."""
    out = Node(node)
    if "const" in out:
        out["enum"] = [out.pop("const")]
    if out.get("unevaluatedProperties") == {"not": {}} and not LISTS & out.keys():
        out.setdefault("additionalProperties", out.pop("unevaluatedProperties"))
    for key in ("anyOf", "oneOf"):
        if isinstance(out.get(key), list):
            out = _alternatives(out, key)
    _types(out)
    if isinstance(out.get("required"), list):
        out["required"] = sorted({one for one in out["required"] if isinstance(one, str)})
    if strict:
        _relaxed(out)
    if out.get("additionalProperties") == {"not": {}}:
        out["additionalProperties"] = False
    for key in [key for key, value in out.items() if _asks_nothing(key, value)]:
        del out[key]
    if _is_generated(out.get("pattern"), out.get("format")):
        del out["pattern"]
    return out


def _alternatives(node: Node, key: str) -> Node:
    """Alternatives without those of one within another, nor any that stand twice."""
    parts: list[Any] = []
    for part in node[key]:
        inner = part.get(key) if isinstance(part, Mapping) and part.keys() == {key} else None
        for one in inner if isinstance(inner, list) else [part]:
            if key == "oneOf" or not any(same(one, other) for other in parts):
                parts.append(one)
    rest = Node({name: value for name, value in node.items() if name != key})
    listed = [part.get("enum") for part in parts if part.keys() <= {"enum", "type"}]
    if len(listed) == len(parts) and all(isinstance(one, list) for one in listed):
        return _both(rest, Node({"enum": [value for one in listed for value in one or ()]}))
    if all(part.keys() == {"type"} for part in parts) and (key == "anyOf" or _disjoint(parts)):
        kinds = [one for part in parts for one in _as_list(part["type"])]
        return _both(rest, Node({"type": kinds}))
    solid = [part for part in parts if part != {"type": "null"}]
    if len(solid) == 1 and len(parts) <= 2 and not (LISTS & solid[0].keys() or solid[0].cut):
        only = Node(solid[0])
        if len(parts) == 2 and only:
            _with_null(only)
        whole = _both(only, rest)
        whole.place = solid[0].place if len(parts) == 1 and not rest else ""
        return whole
    rest[key] = parts
    return rest


def _disjoint(parts: Iterable[Mapping[str, Any]]) -> bool:
    """Whether no value is of two of some types."""
    kinds = [one for part in parts for one in _as_list(part["type"])]
    return len(kinds) == len(set(kinds)) and not {"integer", "number"} <= set(kinds)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _with_null(node: Node) -> None:
    if isinstance(node.get("enum"), list):
        node["enum"] = [*node["enum"], *([] if None in node["enum"] else [None])]
    kinds = node.get("type")
    listed = kinds if isinstance(kinds, list) else [kinds] if kinds else []
    if listed and "null" not in listed:
        node["type"] = [*listed, "null"]


_KINDS: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
    list: "array",
    dict: "object",
}


def _types(node: Node) -> None:
    """Types by name and in order; those of the choices, where a value is one of some."""
    kinds = node.get("type")
    listed = kinds if isinstance(kinds, list) else [kinds] if isinstance(kinds, str) else []
    if isinstance(node.get("enum"), list):
        taken = [one for one in node["enum"] if not listed or _takes(listed, one)]
        once: list[Any] = []
        for one in taken:
            once += [] if any(same(one, other) for other in once) else [one]
        if once or not node["enum"]:
            node["enum"] = once
            listed = listed or [_KINDS.get(type(one), "object") for one in once]
            listed = [one for one in listed if one != "null" or None in once]
    if not listed and "properties" in node:
        listed = ["object"]
    whole = node.get("multipleOf")
    if "number" in listed and whole == 1:
        listed = ["integer" if one == "number" else one for one in listed]
    names = {str(one) for one in listed}
    names -= {"integer"} if "number" in names else set()
    ordered = sorted(names, key=lambda one: (one == "null", one))
    if "integer" in names and whole == 1:
        del node["multipleOf"]
    if set(names) <= {"integer", "null"} and names:
        _whole_limits(node)
    if ordered:
        node["type"] = ordered[0] if len(ordered) == 1 else ordered


def _takes(kinds: list[Any], value: Any) -> bool:
    kind = _KINDS.get(type(value), "object")
    return kind in kinds or (kind == "integer" and "number" in kinds)


def _whole_limits(node: Node) -> None:
    """The limits of an integer as the first values within: above 0 is from 1."""
    for key, within, step in (
        ("exclusiveMinimum", "minimum", 1),
        ("exclusiveMaximum", "maximum", -1),
    ):
        limit = node.get(key)
        if within not in node and isinstance(limit, int) and not isinstance(limit, bool):
            node[within] = node.pop(key) + step


def _asks_nothing(key: str, value: Any) -> bool:
    """Whether a keyword with this value allows everything."""
    if key in ("additionalProperties", "items", "propertyNames", "unevaluatedProperties"):
        return value in (True, {}) and not getattr(value, "cut", False)
    if key in ("properties", "required", "allOf", "patternProperties"):
        return not value
    nothing = {"minimum": -_SAFE, "maximum": _SAFE, "uniqueItems": False, "deprecated": False}
    nothing |= dict.fromkeys(("minLength", "minItems", "minProperties"), 0)
    return key in nothing and bool(value == nothing[key])


def _is_generated(pattern: Any, form: Any) -> bool:
    """Whether a pattern says the format that stands beside it."""
    if not isinstance(pattern, str) or form not in _EXAMPLES:
        return False
    try:
        check = jsonschema_rs.validator_for({"pattern": pattern})
    except (ValueError, jsonschema_rs.ReferencingError):
        return False
    return all(map(check.is_valid, _EXAMPLES[form]))


def _relaxed(node: Node) -> None:
    """An object of strict mode with what may be null as what may be left out."""
    inside = node.get("properties")
    for name, inner in inside.items() if isinstance(inside, Mapping) else ():
        required = node.get("required", [])
        kinds = inner.get("type")
        if name in required and isinstance(kinds, list) and "null" in kinds:
            node["required"] = [one for one in required if one != name]
            left = [one for one in kinds if one != "null"]
            inner["type"] = left[0] if len(left) == 1 else left
            if isinstance(inner.get("enum"), list):
                inner["enum"] = [one for one in inner["enum"] if one is not None]
            if inner.get("default", 0) is None:
                del inner["default"]


# -- two demands at once ---------------------------------------------------------------------------


def _both(first: Node, second: Node) -> Node:
    """One node that asks what both do; texts of the second win."""
    out = Node(first)
    out.place = first.place or second.place
    rest = Node()
    for key, value in second.items():
        if key not in out or same(out[key], value) or key in _TEXTS:
            out[key] = value
            continue
        joined = _joined(key, out[key], value)
        if joined is None:
            rest[key] = value
        else:
            out[key] = joined
    if rest:
        out["allOf"] = [*out.get("allOf", ()), rest]
    return out


def _joined(key: str, one: Any, other: Any) -> Any:
    """The value of a keyword that asks what two do; None where there is no such value."""
    if key in ("required", "allOf"):
        return [*one, *other]
    if key == "properties":
        both = {name: _both(one[name], other[name]) for name in other if name in one}
        return {**one, **other, **both}
    if key == "type":
        return _shared(one, other) or None
    if key == "enum":
        return [value for value in one if any(same(value, known) for known in other)]
    return _BOUNDS[key](one, other) if key in _BOUNDS and _are_numbers((one, other)) else None


def _shared(one: Any, other: Any) -> list[str]:
    first, second = _as_list(one), _as_list(other)
    found = [kind for kind in first if kind in second]
    if "integer" in (*first, *second) and "number" in (*first, *second) and "integer" not in found:
        found.append("integer")
    return found


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(map(is_number, values))
