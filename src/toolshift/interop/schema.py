"""JSON Schemas of foreign tools: read into parameters, shown under other names, and sampled.

References are followed inside the document only, never over the network. One that leads back to
itself, or a document that would grow past `MAX_NODES` when written out, is cut: what stands there
accepts anything, so that no valid value is refused and nothing hangs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import jsonschema_rs

from toolshift.core.text import is_count
from toolshift.core.values import as_list, as_mapping, is_number

JSONSchema = dict[str, Any]
MAX_NODES = 4000
MAX_CHECKED = 200_000
"""Nodes that references may stand for where a validator follows them."""
DEEPEST = 32
MANY = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"))
LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
DATA = frozenset(("enum", "const", "default", "examples", "required", "dependentRequired"))
_IN_PLACE = ("allOf", "anyOf", "oneOf")
_IN_PLACE_ONE = ("not", "if", "then", "else")


def look_up(root: object, reference: object) -> Any:
    """What a reference inside the document points to; None where it points nowhere."""
    if reference == "#":
        return root
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return _anchored(root, reference)
    place = root
    for part in reference[2:].split("/"):
        place = child_of(place, unescaped(part))
    return place


def child_of(place: object, key: str) -> Any:
    """What an object or a list has under a part of a pointer; None where it has nothing there."""
    if isinstance(place, list) and is_count(key) and int(key) < len(place):
        return place[int(key)]
    if not isinstance(place, Mapping):
        return None
    if key in place:
        return place[key]
    # YAML reads the key 200 of a response as a number.
    return next((value for own, value in place.items() if str(own) == key), None)


def unescaped(part: str) -> str:
    """A part of a pointer as the key that it stands for."""
    return unquote(part).replace("~1", "/").replace("~0", "~")


def _anchored(root: Any, reference: Any) -> Any:
    """What an `$anchor` or an `$id` among the definitions names."""
    if not isinstance(reference, str) or not isinstance(root, Mapping):
        return None
    for key in ("$defs", "definitions"):
        for defined in as_mapping(root.get(key)).values():
            if isinstance(defined, Mapping) and (
                reference == f"#{defined.get('$anchor')}" or reference == defined.get("$id")
            ):
                return defined
    return None


class _Left:
    """How many nodes may still be written out: a few references can stand for billions."""

    def __init__(self) -> None:
        self._nodes = MAX_NODES

    def take(self) -> bool:
        """Takes one; whether there was one left."""
        self._nodes -= 1
        return self._nodes >= 0


class _Inliner:
    """Writes references out, within bounds."""

    def __init__(self, root: Any) -> None:
        self.root, self.left = root, MAX_NODES

    def write(self, node: Any, trail: tuple[str, ...] = (), depth: int = 0) -> Any:
        self.left -= 1
        if isinstance(node, bool):
            return {} if node else {"not": {}}
        if not isinstance(node, Mapping) or self.left < 0 or depth > DEEPEST:
            return {}
        reference = node.get("$ref", node.get("$dynamicRef"))
        rest = {k: v for k, v in node.items() if k not in ("$ref", "$dynamicRef")}
        if isinstance(reference, str):
            target = None if reference in trail else look_up(self.root, reference)
            inner = self.write(target, (*trail, reference), depth + 1) if target is not None else {}
            own = self.write(rest, trail, depth) if rest else {}
            return _both(inner, own)
        return {
            key: self._value(key, value, trail, depth)
            for key, value in rest.items()
            if key not in ("$defs", "definitions", "$schema", "$id", "$anchor", "$dynamicAnchor")
        }

    def _value(self, key: str, value: Any, trail: tuple[str, ...], depth: int) -> Any:
        if key in DATA:
            return value
        if key in MANY and isinstance(value, Mapping):
            return {name: self.write(one, trail, depth + 1) for name, one in value.items()}
        if isinstance(value, list) and (key in LISTS or key == "items"):
            return [self.write(one, trail, depth + 1) for one in value]
        if isinstance(value, Mapping):
            return self.write(value, trail, depth + 1)
        if isinstance(value, bool) and key in ("items", "contains", "not", "propertyNames"):
            return self.write(value, trail, depth + 1)
        return value


def _both(first: JSONSchema, second: JSONSchema) -> JSONSchema:
    """One schema that demands what both do; annotations of the second win."""
    clash = {k for k in second if k in first and first[k] != second[k]}
    if clash <= {"description", "title", "default", "examples", "deprecated"}:
        return {**first, **second}
    return {**{k: v for k, v in second.items() if k == "description"}, "allOf": [first, second]}


def inlined(node: object, root: object) -> JSONSchema:
    """A schema that stands on its own: its references into `root` are written out."""
    written: JSONSchema = _Inliner(root).write(node)
    return written


def checkable(schema: Any) -> Any:
    """The schema, as a validator comes to an end with it."""
    if not isinstance(schema, Mapping):
        return schema
    whole = dict(schema)
    try:
        large = _weight(whole, whole, {}) > MAX_CHECKED
    except RecursionError:  # a chain of hundreds of references
        large = True
    return inlined(whole, whole) if large else whole


def _weight(node: Any, root: Any, known: dict[str, int]) -> int:
    """How many nodes a schema stands for; a reference that leads back to itself is one."""
    if isinstance(node, list):
        return 1 + sum(_weight(each, root, known) for each in node)
    if not isinstance(node, Mapping):
        return 1
    own = 1 + sum(
        _weight(each, root, known)
        for key, each in node.items()
        if key not in ("$defs", "definitions")
    )
    reference = node.get("$ref")
    if isinstance(reference, str):
        if reference not in known:
            known[reference] = 1  # while it is looked into
            known[reference] = _weight(look_up(root, reference), root, known)
        own += known[reference]
    return own


# -- the parameters of a tool ------------------------------------------------------------------


def flattened(root: Mapping[str, Any], document: Mapping[str, Any] | None = None) -> JSONSchema:
    """The root of an arguments' schema with what `$ref` and `allOf` bring laid open.

    Definitions stay, and so do the references inside the properties. They lead into `document`
    where the schema is a part of one.
    """
    return _flat(root, root if document is None else document, (), _Left())


_CONDITION = ("if", "then", "else")
_MERGED = frozenset(
    (
        *_CONDITION, "allOf", "properties", "required", "$defs", "definitions", "description",
        "title", "$id",
    )
)  # fmt: skip
"""What of a part of `allOf` is not compared key by key, or is said of the part alone."""


def _flat(
    node: Mapping[str, Any], root: Mapping[str, Any], trail: tuple[str, ...], left: _Left
) -> JSONSchema:
    flat: JSONSchema = {k: v for k, v in node.items() if k not in ("$ref", "allOf")}
    parts = list(as_list(node.get("allOf")))
    reference = node.get("$ref")
    if isinstance(reference, str) and reference not in trail and len(trail) < DEEPEST:
        parts.append(look_up(root, reference))
        trail = (*trail, reference)
    rest = []
    for part in parts:
        if not isinstance(part, Mapping) or part is node or not left.take():
            continue
        inner = _flat(part, root, trail, left)
        if isinstance(inner.get("properties"), Mapping):
            flat["properties"] = _joined(inner["properties"], as_mapping(flat.get("properties")))
        if isinstance(inner.get("required"), list):
            both = [*as_list(flat.get("required")), *inner["required"]]
            flat["required"] = list(dict.fromkeys(name for name in both if isinstance(name, str)))
        condition = {key: inner[key] for key in _CONDITION if key in inner}
        own = {key: flat[key] for key in _CONDITION if key in flat}
        if condition and not own:
            flat.update(condition)
        elif condition != own:  # its parts say something together alone
            rest += [condition] if condition else []
        rest += as_list(inner.get("allOf"))
        more = {k: v for k, v in inner.items() if k not in _MERGED and flat.get(k) != v}
        clash = {k: v for k, v in more.items() if k in flat}
        flat.update({k: v for k, v in more.items() if k not in clash})
        if clash:
            rest.append(clash)
    if rest:
        flat["allOf"] = rest
    return flat


def _joined(further: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of two parts that hold both; of one that both declare, what each says of it.

    Choices are those of both; of any other key the own value stands.
    """
    joined = {**further, **own}
    for name in own.keys() & further.keys():
        mine, theirs = own[name], further[name]
        if mine == theirs or not isinstance(mine, Mapping) or not isinstance(theirs, Mapping):
            continue
        both = {**theirs, **mine}
        if isinstance(mine.get("enum"), list) and isinstance(theirs.get("enum"), list):
            both["enum"] = [one for one in mine["enum"] if one in theirs["enum"]]
        joined[name] = both
    return joined


def tag_of(schema: Mapping[str, Any]) -> str:
    """The property by which a `discriminator` tells alternatives apart; "" where none does."""
    said = schema.get("discriminator")
    name = said.get("propertyName") if isinstance(said, Mapping) else None
    return name if isinstance(name, str) else ""


def tag_values(schema: Mapping[str, Any], part: Any) -> list[str]:
    """The values by which a `discriminator` says an alternative: those that its mapping has for
    the reference, else the name of what it refers to.
    """
    reference = part.get("$ref") if isinstance(part, Mapping) else None
    if not isinstance(reference, str):
        return []
    own = reference.rpartition("/")[2]
    mapping = as_mapping(as_mapping(schema.get("discriminator")).get("mapping"))
    return [str(value) for value, to in mapping.items() if to in (reference, own)] or [own]


def _only_value(schema: Any) -> Any:
    """The one value that a schema leaves; None where it leaves several."""
    listed = as_list(as_mapping(schema).get("enum"))
    return as_mapping(schema).get("const", listed[0] if len(listed) == 1 else None)


def needed_with(root: Mapping[str, Any], said: Mapping[str, Any]) -> frozenset[str]:
    """The arguments that a call needs: the required ones, and those of the one alternative that
    the values which it says choose.
    """
    flat = flattened(root)
    needed = list(as_list(flat.get("required")))
    for key in ("anyOf", "oneOf"):
        parts = [flattened(part, root) for part in as_list(flat.get(key)) if as_mapping(part)]
        chosen = []
        for part in parts:
            known = as_mapping(part.get("properties"))
            tags = {
                name: value for name in known if (value := _only_value(known[name])) is not None
            }
            if tags and all(said.get(name) == value for name, value in tags.items()):
                chosen.append(part)
        if len(chosen) == 1:
            needed += as_list(chosen[0].get("required"))
    return frozenset(name for name in needed if isinstance(name, str))


def properties_of(root: object) -> tuple[dict[str, Any], frozenset[str]]:
    """The parameters that a schema declares, and which of them are required."""
    if not isinstance(root, Mapping):
        return {}, frozenset()
    flat = flattened(root)
    names = (name for name in as_list(flat.get("required")) if isinstance(name, str))
    return dict(as_mapping(flat.get("properties"))), frozenset(names)


def renamed(root: Mapping[str, Any], names: Mapping[str, str]) -> JSONSchema:
    """The schema of the same arguments under other names.

    `names` has the new name of every parameter that is kept; the others go. Conditions on the
    arguments as a whole (`anyOf`, `dependentRequired`, `if`) and references into the properties
    follow.
    """
    flat = flattened(root)
    shown = _in_place(flat, root, names, (), _Left())
    moved: JSONSchema = _pointing(shown, names)
    return moved


def _in_place(
    node: Any,
    root: Mapping[str, Any],
    names: Mapping[str, str],
    trail: tuple[str, ...],
    left: _Left,
) -> Any:
    """Renames in everything that speaks of the arguments as a whole."""
    if not isinstance(node, Mapping) or not left.take():
        return {} if isinstance(node, Mapping) else node
    reference = node.get("$ref")
    if isinstance(reference, str):
        if reference in trail or len(trail) > DEEPEST:
            return {}
        trail = (*trail, reference)
        node = _flat(node, root, (), left)
    out = _renamed(node, names)
    for key in ("dependentRequired", "dependentSchemas", "dependencies"):
        if isinstance(node.get(key), Mapping):
            out[key] = {
                names.get(name, name): _depending(value, root, names, trail, left)
                for name, value in node[key].items()
            }
    for key in _IN_PLACE:
        if isinstance(node.get(key), list):
            out[key] = [_in_place(one, root, names, trail, left) for one in node[key]]
    for key in _IN_PLACE_ONE:
        if key in node:
            out[key] = _in_place(node[key], root, names, trail, left)
    return out


def _renamed(node: Mapping[str, Any], names: Mapping[str, str]) -> JSONSchema:
    """A copy with the new names where parameters are listed."""
    out = dict(node)
    if isinstance(node.get("properties"), Mapping):
        out["properties"] = {names[k]: v for k, v in node["properties"].items() if k in names}
    if isinstance(node.get("required"), list):
        out["required"] = [names.get(name, name) for name in node["required"] if _is_name(name)]
    return out


def _depending(
    value: Any,
    root: Mapping[str, Any],
    names: Mapping[str, str],
    trail: tuple[str, ...],
    left: _Left,
) -> Any:
    """What a parameter brings with it: further parameters by name, or a schema."""
    if isinstance(value, list):
        return [names.get(one, one) for one in value if _is_name(one)]
    return _in_place(value, root, names, trail, left)


def _is_name(value: Any) -> bool:
    return isinstance(value, str)


def _pointing(node: Any, names: Mapping[str, str], depth: int = 0) -> Any:
    """Follows the new names in references such as `#/properties/filter/items`."""
    if depth > 4 * DEEPEST:
        return node
    if isinstance(node, list):
        return [_pointing(one, names, depth + 1) for one in node]
    if not isinstance(node, Mapping):
        return node
    out = {key: _pointing(value, names, depth + 1) for key, value in node.items()}
    reference = out.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/properties/"):
        head, *rest = reference.removeprefix("#/properties/").split("/")
        name = names.get(unescaped(head), unescaped(head))
        escaped = name.replace("~", "~0").replace("/", "~1")
        out["$ref"] = "/".join(["#/properties", escaped, *rest])
    return out


# -- values ------------------------------------------------------------------------------------


def fitted(value: object, schema: Mapping[str, Any]) -> Iterator[Any]:
    """A value as a schema takes it: as it is, or in another type where nothing is lost.

    5 and "5", `true` and "true", a list of one and the one. Nothing where the schema takes none of
    them, or is broken itself.
    """
    try:
        check = jsonschema_rs.validator_for(dict(schema))
    except (ValueError, jsonschema_rs.ReferencingError):
        return
    yield from (each for each in (value, *_readings(value)) if check.is_valid(each))


def _readings(value: Any) -> Iterator[Any]:
    """The same value in other types, where nothing is lost."""
    if isinstance(value, bool):
        yield "true" if value else "false"
    elif isinstance(value, int | float):
        yield str(value)
    elif isinstance(value, str):
        yield from ({"true": True, "false": False}[value],) if value in ("true", "false") else ()
        for read in (int, float):
            try:
                number = read(value)
            except ValueError:
                continue
            if str(number) == value:
                yield number
    if isinstance(value, list):
        yield from value if len(value) == 1 else ()
    else:
        yield [value]


def types_of(schema: Mapping[str, Any]) -> frozenset[str]:
    """The types that a schema names; what is no name is none."""
    kind = schema.get("type")
    return frozenset(one for one in as_list(kind) or [kind] if isinstance(one, str))


def takes_null(schema: Mapping[str, Any]) -> bool:
    """Whether a schema says that a value may be null."""
    kind = schema.get("type")
    listed = kind if isinstance(kind, list) else [kind]
    return "null" in listed or any(takes_null(part) for part in _alternatives(schema))


def may_be_null(schema: Mapping[str, Any]) -> bool:
    """Whether null fits a schema: it says so, or says nothing of types and choices."""
    if "type" in schema or "$ref" in schema or _alternatives(schema):
        return takes_null(schema)
    return None in schema.get("enum", (schema.get("const"),))


def usual(schema: Mapping[str, Any]) -> Any:
    """What a value is taken to be where nobody says it: the default, or all that it may be.

    None where that is open.
    """
    listed = as_list(schema.get("enum"))
    only = schema.get("const", listed[0] if len(listed) == 1 else None)
    return schema.get("default", only)


# -- what a schema says, in words --------------------------------------------------------------


def each_description(schema: Any, say: Callable[[str], str]) -> Any:
    """A schema with its descriptions, at every depth, said in another way."""
    if isinstance(schema, list):
        listed = [each_description(one, say) for one in schema]
        return listed if listed != schema else schema
    if not isinstance(schema, Mapping):
        return schema
    said: JSONSchema = {}
    for key, value in schema.items():
        if key in MANY and isinstance(value, Mapping):
            said[key] = {name: each_description(one, say) for name, one in value.items()}
        elif key == "description" and isinstance(value, str):
            said[key] = say(value)
        else:
            said[key] = value if key in DATA else each_description(value, say)
    return said if said != schema else schema


def words_of(schema: Any) -> Iterator[str]:
    """The choices that a schema has, and the names of properties inside of it, at every depth."""
    for one in as_list(schema):
        yield from words_of(one)
    for key, value in as_mapping(schema).items():
        if key in MANY:
            yield from as_mapping(value)
            yield from words_of(list(as_mapping(value).values()))
        elif key in ("enum", "const"):
            yield from (one for one in [*as_list(value), value] if isinstance(one, str))
        elif key not in DATA:
            yield from words_of(value)


def _alternatives(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = [*as_list(schema.get("anyOf")), *as_list(schema.get("oneOf"))]
    return [one for one in found if isinstance(one, Mapping)]


def kind_of(schema: Mapping[str, Any]) -> str:
    """The type of a value in words: `string`, `string or null`, `array of object`, `any`."""
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(map(str, kind))
    if kind == "array":
        items = schema.get("items")
        inner = kind_of(items) if isinstance(items, Mapping) and items else "any"
        return f"array of {inner}"
    if isinstance(kind, str):
        return kind
    alternatives = list(dict.fromkeys(kind_of(one) for one in _alternatives(schema)))
    if alternatives:
        return " or ".join(alternatives)
    values = [*as_list(schema.get("enum")), *([schema["const"]] if "const" in schema else [])]
    if values and all(isinstance(one, str) for one in values):
        return "string"
    return "object" if "properties" in schema else "any"


def choices_of(schema: Mapping[str, Any]) -> list[str]:
    """The words that a value may be, by `enum`, `const`, or alternatives of them; else none.

    A schema with an alternative that takes any other text has no such list.
    """
    found: list[str] = []
    parts = [schema, *_alternatives(schema)]
    for part in parts:
        listed = [*as_list(part.get("enum")), part.get("const")]
        found += [one for one in listed if isinstance(one, str) and one not in found]
    free = [p for p in parts[1:] if p.get("type") == "string" and not {"enum", "const"} & p.keys()]
    return [] if free else found


def inner_changes(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> list[str]:
    """The declared values inside two schemas that only one of them has: `- a[].b`, `+ a[].c`."""
    was, now = (dict(_inner(schema, path)) for schema in (old, new))
    if not was or not now:
        return []
    gone = [f"- {name}" for name in was if name not in now]
    come = [f"+ {name}" for name in now if name not in was]
    return [*gone, *come]


def _inner(schema: Any, path: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return
    schema = flattened(schema)
    if isinstance(schema.get("items"), Mapping):
        yield from _inner(schema["items"], f"{path}[]", depth + 1)
    for part in _alternatives(schema):
        yield from _inner(part, path, depth + 1)
    for key, inner in as_mapping(schema.get("properties")).items():
        yield f"{path}.{key}", kind_of(inner) if isinstance(inner, Mapping) else ""
        yield from _inner(inner, f"{path}.{key}", depth + 1)


# -- results -----------------------------------------------------------------------------------


def leaves_of(schema: object, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """The values that an inlined schema of records declares: paths and JSON types.

    A value that may be null as well has the type that it has otherwise.
    """
    known = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(known, Mapping) or len(above) > 8:
        return
    for key, declared in known.items():
        inner = _beside_null(declared)
        kind = inner.get("type")
        if kind == "object" and inner.get("properties"):
            yield from leaves_of(inner, (*above, key))
        else:
            yield (*above, key), kind if isinstance(kind, str) else ""


def _beside_null(schema: object) -> Mapping[str, Any]:
    """The schema of a value without the alternative that it is null."""
    said = as_mapping(schema)
    kinds = said.get("type")
    if isinstance(kinds, list):
        others = [kind for kind in kinds if kind != "null"]
        return {**said, "type": others[0]} if len(others) == 1 else said
    for key in ("anyOf", "oneOf"):
        offers = said.get(key)
        if isinstance(offers, list):
            found = [one for one in map(as_mapping, offers) if one.get("type") != "null"]
            return _beside_null(found[0]) if len(found) == 1 else said
    return said


def _least(schema: Mapping[str, Any]) -> float | int:
    for key, more in (("minimum", 0), ("exclusiveMinimum", 1)):
        bound = schema.get(key)
        if is_number(bound):
            return bound + more or 1
    return 1


def _count(schema: Mapping[str, Any], key: str, most: int) -> int:
    number = schema.get(key)
    return max(0, min(number, most)) if isinstance(number, int) else 0


_SAMPLES: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "integer": lambda schema: int(_least(schema)),
    "number": _least,
    "boolean": lambda schema: False,
    "null": lambda schema: None,
}
_FORMATS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "uri": "https://example.com/",
    "email": "someone@example.com",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def _named_values(schema: Mapping[str, Any]) -> Iterator[Any]:
    """The values that a schema itself names, the best first."""
    yield from (schema[key] for key in ("const", "default") if key in schema)
    for key in ("enum", "examples"):
        if isinstance(schema.get(key), list):
            yield from schema[key]


def sample(schema: object, word: str = "sample", depth: int = 0) -> Any:
    """A value that an inlined schema plausibly accepts, always the same one."""
    if not isinstance(schema, Mapping) or depth > 8:
        return word
    for value in _named_values(schema):
        return value
    for key in _IN_PLACE:
        if isinstance(schema.get(key), list) and schema[key] and "properties" not in schema:
            return sample(schema[key][0], word, depth + 1)
    kind = schema.get("type")
    kind = next((one for one in kind if one != "null"), "null") if isinstance(kind, list) else kind
    if isinstance(kind, str) and kind in _SAMPLES:
        return _SAMPLES[kind](schema)
    if kind == "array":
        fewest = max(1, _count(schema, "minItems", 4))
        return [sample(schema.get("items", {}), word, depth + 1)] * fewest
    if kind == "object" or "properties" in schema:
        known = as_mapping(schema.get("properties"))
        return {name: sample(inner, word, depth + 1) for name, inner in known.items()}
    text = _FORMATS.get(str(schema.get("format", "")), word)
    return text.ljust(_count(schema, "minLength", 200), "x")
