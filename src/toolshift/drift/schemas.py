"""What differs between two schemas of one value: types, choices, defaults, limits, parts.

Both schemas stand on their own (references written out). Members of objects are paired by the same
rule as the parameters of tools are (`shifts.release.match`).

A difference **breaks** where a value that the old schema takes is one that the new one refuses. It
is **maybe** one that matters where values stay valid and may mean something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any, Literal

from toolshift.core.canonical import same
from toolshift.core.tool import JSON, Param
from toolshift.drift.rewordings import means_something_new, says_otherwise
from toolshift.drift.tokens import tokens
from toolshift.interop.normal import Node
from toolshift.interop.parts import (
    ALL_KINDS,
    Tagged,
    alternatives,
    core_of,
    further_of,
    items_of,
    kinds_of,
    listed_in,
    members_of,
    renamed_to,
    tagged,
    untagged,
)
from toolshift.interop.schema import kind_of
from toolshift.interop.tools import SORTED
from toolshift.shifts.release.match import alike_params, pair


@dataclass(frozen=True)
class Moves:
    """What became what inside of the arguments of a tool, by the path of the old one.

    Attributes:
        names: of a member its new name; "" where nothing stands for it.
        words: of a choice its new word.
        doubtful: the members of which that is only likely.
        settled: whether that is known of members at every depth; where it is not, those inside of
            an argument are paired by likeness.
    """

    names: Mapping[str, str]
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    doubtful: frozenset[str] = frozenset()
    settled: bool = False


Seen = set[tuple[str, str]]
"""The places of schemas that have been compared, the old one's and the new one's."""
Severity = Literal["harmless", "maybe", "breaking"]
SEVERITIES: tuple[Severity, ...] = ("harmless", "maybe", "breaking")
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_EXACT = ("pattern", "multipleOf", "uniqueItems", "format")
SAID = ("description", "title", "default", "examples", "$schema", "deprecated", "$comment")
_SAFE = 2**53 - 1
"""Libraries write this as the limit of every integer; it limits nothing."""
_DEEPEST = 8
SMALL, REWORDED = 0.9, 0.5
LONG = 600
"""Words of a text from which on their order is left out: to compare it is not linear."""


@dataclass(frozen=True)
class Difference:
    """One difference; `where` is the path to the value, by its old names (`fields[].ref`)."""

    kind: str
    where: str
    before: Any
    after: Any
    severity: Severity
    sure: bool = True


def wording(before: str, after: str) -> str:
    """How much a text was changed."""
    if before == after:
        return ""
    if not before.strip() or not after.strip():
        return "added" if after.strip() else "removed"
    first, second = tokens(before), tokens(after)
    if first == second:
        return "small"
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    long = max(len(first), len(second)) > LONG
    kept = matcher.quick_ratio() if long else matcher.ratio()
    return "small" if kept >= SMALL else "reworded" if kept >= REWORDED else "rewritten"


_MATTERS = ("rewritten", "removed")


def text_differences(where: str, before: Any, after: Any) -> Iterator[Difference]:
    """The difference between two descriptions, of a tool (`where` is "") or of a value."""
    first, second = (one if isinstance(one, str) else "" for one in (before, after))
    how = wording(first, second)
    if how:
        # One word is enough for another meaning: seconds and milliseconds, kept and kept no more.
        other = means_something_new(where, second) if how == "added" else None
        matters = how in _MATTERS or (says_otherwise(first, second) if other is None else other)
        severity: Severity = "maybe" if matters else "harmless"
        yield Difference(f"description_{how}", where, first, second, severity)


def _titles(where: str, before: Any, after: Any) -> Iterator[Difference]:
    """The difference between two titles of a value that may mean something else."""
    told = isinstance(before, str) and isinstance(after, str) and before != after
    if told and says_otherwise(before, after):
        yield Difference("title_changed", where, before, after, "maybe")


def members(
    where: str,
    old: Mapping[str, Param],
    new: Mapping[str, Param],
    moves: Moves,
    closed: bool,
    seen: Seen | None = None,
) -> Iterator[Difference]:
    """The differences between the members of two objects, or the parameters of two tools."""
    lead = f"{where}." if where else ""
    to = {name: renamed_to(moves.names, lead + name, name, new) for name in old}
    for name, param in old.items():
        here, partner = lead + name, new.get(to[name])
        if partner is None:
            hard: Severity = "breaking" if closed else "maybe"
            yield Difference("parameter_removed", here, name, None, hard)
            continue
        if to[name] != name:
            hard = "breaking" if closed or partner.required else "maybe"
            sure = here not in moves.doubtful
            yield Difference("parameter_renamed", here, name, to[name], hard, sure)
            inner = differences(here, param.schema, partner.schema, 0, seen, moves)
            names = tokens(name), tokens(to[name])
            yield from _unreached(one for one in inner if not _titled_by(one, here, names))
            if param.required and not partner.required:
                yield Difference("parameter_optional", here, True, False, "harmless")
            continue
        if param.required != partner.required:
            now = "required" if partner.required else "optional"
            hard = "breaking" if partner.required else "harmless"
            yield Difference(f"parameter_{now}", here, param.required, partner.required, hard)
        yield from differences(here, param.schema, partner.schema, 0, seen, moves)
    for name, param in new.items():
        if name not in to.values():
            kind = kind_of(param.schema)
            if param.required:
                yield Difference("required_parameter_added", lead + name, None, kind, "breaking")
            else:
                hard = _of_default(param.schema.get("default"))
                yield Difference("parameter_added", lead + name, None, kind, hard)


def _of_default(value: Any) -> Severity:
    """What a default that has come means for calls that leave the value out.

    Nothing, false, zero and what is empty say what was so before; anything else may be new.
    """
    return "maybe" if value else "harmless"


def _titled_by(one: Difference, where: str, names: tuple[tuple[str, ...], tuple[str, ...]]) -> bool:
    """Whether a title changed only because it is the name, as libraries write it."""
    return (
        one.kind == "title_changed"
        and one.where == where
        and (tokens(one.before), tokens(one.after)) == names
    )


def _unreached(nested: Iterator[Difference]) -> Iterator[Difference]:
    """Differences below a rename: no old call reaches them, so they break nothing by themselves."""
    for difference in nested:
        yield (
            replace(difference, severity="maybe")
            if difference.severity == "breaking"
            else difference
        )


def differences(
    where: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    depth: int = 0,
    seen: Seen | None = None,
    moves: Moves | None = None,
) -> Iterator[Difference]:
    """The differences between two schemas of one value, both in the one form (`interop.normal`).

    `seen` has the places of what was compared before: a definition that is used twice, or that
    holds itself, is told where it is met first. Without `moves` members are paired by likeness.
    """
    if same(old, new) or depth > _DEEPEST:
        return
    seen = set() if seen is None else seen
    cut = [isinstance(one, Node) and one.cut for one in (old, new)]
    if any(cut) and not all(cut):  # one is written out further than the other
        yield from _types(where, old, new)
        return
    if isinstance(old, Node) and isinstance(new, Node) and old.place and new.place:
        place = (old.place, new.place)
        # Where two cut ones lead to was compared; what is asked beside it was not.
        if not any(cut):
            if place in seen:
                return
            seen.add(place)
    named = [
        *_types(where, old, new),
        *_choices(where, old, new),
        *_limits(where, old, new),
        *_inside(where, old, new, depth, seen, moves),
    ]
    yield from named
    yield from _defaults(where, old, new)
    yield from text_differences(where, old.get("description"), new.get("description"))
    yield from _titles(where, old.get("title"), new.get("title"))
    if all(difference.kind.startswith(("description_", "default_")) for difference in named):
        was, now = map(demands, _own(old, new))
        if was != now:
            yield Difference("schema_changed", where, *_unlike(was, now), "maybe")


def _own(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Two schemas without what is compared part by part."""
    if tagged(old) and tagged(new):
        return {}, {}
    cores = core_of(old), core_of(new)
    if any(len(alternatives(core)) > 1 for core in cores):
        return old, new
    was, now = (
        {key: value for key, value in core.items() if key not in (*_PARTS, "type", "enum")}
        for core in cores
    )
    return was, now


_PARTS = ("properties", "items", "required", "additionalProperties")


# -- types and choices -----------------------------------------------------------------------------


def _types(where: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    was, now = kinds_of(old), kinds_of(new)
    if was == now:
        return
    old_kind, new_kind = kind_of(old), kind_of(new)
    if was < now:
        yield Difference("type_widened", where, old_kind, new_kind, "harmless")
    elif now < was:
        yield Difference("type_narrowed", where, old_kind, new_kind, "breaking")
    else:
        yield Difference("type_changed", where, old_kind, new_kind, "breaking")


def _enumerated(schema: Mapping[str, Any]) -> list[Any] | None:
    """The values that a schema takes; None where they are not listed. Null is left to the types."""
    values: list[Any] = []
    for part in alternatives(schema):
        listed = listed_in(part)
        if listed is None:
            if part.get("type") == "null":
                continue
            return listed_in(schema)
        values += [value for value in listed if value is not None]
    return _without(values, []) or None


def _without(some: list[Any], others: list[Any]) -> list[Any]:
    """The values that are not among others, each once."""
    rest: list[Any] = []
    for value in some:
        if not any(same(value, other) for other in (*others, *rest)):
            rest.append(value)
    return rest


def _choices(where: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    was, now = _enumerated(old), _enumerated(new)
    if not (kinds_of(old) & kinds_of(new)) - {"null"}:
        return  # another type altogether
    if was is None and now is not None:
        yield Difference("choices_introduced", where, None, now, "breaking")
    elif was is not None and now is None:
        yield Difference("choices_lifted", where, was, None, "harmless")
    elif was is not None and now is not None:
        gone, come = _without(was, now), _without(now, was)
        if gone:
            kind = "choice_replaced" if come else "choice_removed"
            yield Difference(kind, where, gone, come or None, "breaking")
        elif come:
            yield Difference("choice_added", where, None, come, "harmless")


# -- defaults and limits ---------------------------------------------------------------------------


def _defaults(where: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    was, now = old.get("default"), new.get("default")
    if same(was, now):
        return
    if was is None:
        yield Difference("default_added", where, None, now, _of_default(now))
    elif now is None:
        yield Difference("default_removed", where, was, None, "maybe")
    else:
        yield Difference("default_changed", where, was, now, "maybe")


_WITHIN = {"exclusiveMinimum": ("minimum", 1), "exclusiveMaximum": ("maximum", -1)}


def _of_whole_numbers(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The limits of an integer as the first values within: above 0 is from 1."""
    limits = dict(schema)
    for key, (within, step) in _WITHIN.items():
        limit = limits.get(key)
        if within not in limits and isinstance(limit, int) and not isinstance(limit, bool):
            limits[within] = limits.pop(key) + step
    return limits


def _limit(schema: Mapping[str, Any], key: str) -> Any:
    value = schema.get(key)
    nothing = {"minimum": -_SAFE, "maximum": _SAFE, "uniqueItems": False}
    nothing |= dict.fromkeys(("minLength", "minItems", "minProperties"), 0)
    return None if value == nothing.get(key) else value


def _limits(where: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    if not (kinds_of(old) & kinds_of(new)) - {"null"}:
        return  # another type altogether
    was, now = core_of(old), core_of(new)
    if kinds_of(old) <= {"integer", "null"}:  # an old value is a whole number, whatever the new are
        was, now = _of_whole_numbers(was), _of_whole_numbers(now)
    for key in (*_LOWER, *_UPPER, *_EXACT):
        before, after = _limit(was, key), _limit(now, key)
        if before == after:
            continue
        how = _tighter(key, before, after)
        hard: Severity = "breaking" if how == "tightened" else "harmless"
        if key == "format" and hard == "breaking":
            hard = "maybe"  # a format is a note that validators need not check
        first, second = (None if one is None else {key: one} for one in (before, after))
        yield Difference(f"limit_{how}", where, first, second, hard)
    if _closed(now) != _closed(was) and _both("object", old, new):
        how = "tightened" if _closed(now) else "loosened"
        free = not _has_members(was, now)  # so any member was right before
        hard = "harmless" if _closed(was) else "breaking" if free else "maybe"
        key = "additionalProperties"
        first, second = ({key: not _closed(one)} for one in (was, now))
        yield Difference(f"limit_{how}", where, first, second, hard)


def _tighter(key: str, before: Any, after: Any) -> str:
    if before is None or after is None:
        return "loosened" if after is None else "tightened"
    numbers = isinstance(before, int | float) and isinstance(after, int | float)
    if key in _EXACT or not numbers:
        return "tightened"
    return "tightened" if (after > before) == (key in _LOWER) else "loosened"


def _closed(schema: Mapping[str, Any]) -> bool:
    return schema.get("additionalProperties") is False


def _has_members(*schemas: Mapping[str, Any]) -> bool:
    return all(isinstance(schema.get("properties"), Mapping) for schema in schemas)


# -- what is inside --------------------------------------------------------------------------------


def _inside(
    where: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    depth: int,
    seen: Seen,
    moves: Moves | None,
) -> Iterator[Difference]:
    first, second = tagged(old), tagged(new)
    if first and second:
        yield from _variants(where, first, second, depth, seen, moves)
        return
    was, now = items_of(old), items_of(new)
    if (was is not None or now is not None) and _both("array", old, new):
        yield from differences(f"{where}[]", was or {}, now or {}, depth + 1, seen, moves)
    further = further_of(old), further_of(new)
    if further[0] is not None and further[1] is not None and _both("object", old, new):
        yield from differences(f"{where}.*", further[0], further[1], depth + 1, seen, moves)
    mine, theirs = members_of(old), members_of(new)
    if (mine or theirs) and _both("object", old, new):
        closed = any(map(_closed, alternatives(new)))
        known = moves if moves and moves.settled else _paired(where, mine, theirs)
        yield from members(where, mine, theirs, known, closed, seen)


def _paired(where: str, old: Mapping[str, Param], new: Mapping[str, Param]) -> Moves:
    """What became what among the members of two objects, by likeness alone."""
    gone = {name: param for name, param in old.items() if name not in new}
    come = {name: param for name, param in new.items() if name not in old}
    guesses = pair(gone, come, alike_params)
    lead = f"{where}." if where else ""
    return Moves(
        {lead + guess.old: guess.new for guess in guesses},
        doubtful=frozenset(lead + guess.old for guess in guesses if not guess.sure),
    )


def _variants(
    where: str, old: Tagged, new: Tagged, depth: int, seen: Seen, moves: Moves | None
) -> Iterator[Difference]:
    """The differences between alternatives that are told apart by a property."""
    here = f"{where}.{old.name}" if where else old.name
    words = moves.words.get(here, {}) if moves else {}
    to = {tag: words.get(tag) or tag for tag in old.parts}
    for tag, part in old.parts.items():
        if to[tag] in new.parts:
            one, other = untagged(part, old.name), untagged(new.parts[to[tag]], new.name)
            yield from differences(where, one, other, depth + 1, seen, moves)
    if old.name != new.name:
        yield Difference("parameter_renamed", here, old.name, new.name, "breaking")
    gone = [tag for tag in old.parts if tag not in new.parts]
    come = [tag for tag in new.parts if tag not in old.parts]
    if gone:
        kind = "choice_replaced" if come else "choice_removed"
        yield Difference(kind, here, gone, come or None, "breaking")
    elif come:
        yield Difference("choice_added", here, None, come, "harmless")


def _both(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether both schemas speak of this type; one that takes everything does not."""
    return all(kind in kinds and not kinds >= ALL_KINDS for kinds in (kinds_of(old), kinds_of(new)))


# -- what is compared as a whole -------------------------------------------------------------------


def demands(schema: Any) -> dict[bytes, Any]:
    """Normalises the constraints of a schema, so that two can be compared.

    Texts and defaults are left out. `["string", "null"]` and `anyOf` of the two are the same, and
    so are `const` and a choice of one.
    """
    if not isinstance(schema, Mapping):
        return {JSON.encode(schema): schema}
    outer = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
    parts = [part if part is schema else {**outer, **part} for part in alternatives(schema)]
    each = [demand for part in parts for demand in _one_by_one(part)]
    return {SORTED.encode(demand): demand for demand in sorted(each, key=SORTED.encode)}


def _one_by_one(part: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One alternative as several of which each has one type, or is one choice."""
    listed, kind = listed_in(part), part.get("type")
    if listed is not None:
        return [{"type": "null"} if one is None else {"enum": [one]} for one in listed]
    kinds = kind if isinstance(kind, list) else [kind] if kind else []
    kinds = kinds or (["object"] if "properties" in part else [])
    if kinds and all(type_name in ("integer", "null") for type_name in kinds):
        part = _of_whole_numbers(part)
    whole = {
        key: _asked_by(key, value)
        for key, value in part.items()
        if key not in (*SAID, "type") and not _asks_nothing(key, value)
    }
    return [{**whole, "type": type_name} for type_name in kinds] or [whole]


def _asks_nothing(key: str, value: Any) -> bool:
    """Whether a keyword with this value allows everything."""
    if key in ("additionalProperties", "items", "propertyNames") and value in (True, {}):
        return True
    if key in ("properties", "required"):
        return not value
    return _limit({key: value}, key) is None


def _asked_by(key: str, value: Any) -> Any:
    if key == "required" and isinstance(value, list):
        return sorted(map(str, value))
    if key in ("properties", "patternProperties") and isinstance(value, Mapping):
        return {name: list(demands(one).values()) for name, one in value.items()}
    if isinstance(value, Mapping):
        return list(demands(value).values())
    if isinstance(value, list):
        return [list(demands(one).values()) if isinstance(one, Mapping) else one for one in value]
    return value


def _unlike(was: Mapping[bytes, Any], now: Mapping[bytes, Any]) -> tuple[Any, Any]:
    """The constraints of only one of two schemas; for one alternative, the differing keywords."""
    gone = [one for key, one in was.items() if key not in now]
    come = [one for key, one in now.items() if key not in was]
    if len(gone) != 1 or len(come) != 1 or not all(isinstance(one, dict) for one in (*gone, *come)):
        return gone or None, come or None
    (first,), (second,) = gone, come
    return (
        {key: value for key, value in first.items() if second.get(key) != value},
        {key: value for key, value in second.items() if first.get(key) != value},
    )
