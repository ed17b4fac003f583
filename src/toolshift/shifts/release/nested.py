"""How a value of an argument is said in its other form, at every depth.

Members of objects, choices and alternatives may go by other names inside of an argument. What
became what stands in the mapping by the path of the old one, as a reader of changes is told it:
`filter.label`, `lines[].price`, `meta.*`. Alternatives of an object share their paths.

Whatever has no place in the other form is no guess: a value that the tool behind cannot be told is
`Unsayable`, and the call says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from toolshift.core.canonical import same
from toolshift.core.tool import Param
from toolshift.core.values import as_text, is_number
from toolshift.interop.normal import Node, normal
from toolshift.interop.parts import (
    Tagged,
    core_of,
    further_of,
    items_of,
    kinds_of,
    members_of,
    renamed_to,
    tagged,
    untagged,
)
from toolshift.interop.schema import DEEPEST, fitted, usual
from toolshift.interop.tools import Source
from toolshift.shifts.release.conversions import converted, reversed_way
from toolshift.shifts.release.match import alike_names

Words = Mapping[str, Mapping[str, str]]
"""By the path of an old value, its old words with the new ones."""


class Unsayable(Exception):
    """A call of the new tool means nothing that the old tool can be told; the message says why."""


@dataclass(frozen=True, eq=False)
class Form:
    """The arguments of a tool in the one form of schemas.

    Attributes:
        params: each by its name.
        places: the nodes by their places, to which references in circles lead back.
    """

    params: Mapping[str, Node]
    places: Mapping[str, Node]

    def whole(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        """A node with its alternatives; what they lead back to where they are of a circle."""
        node = self._found(node)
        for key in ("anyOf", "oneOf"):
            parts = node.get(key, ())
            if any(isinstance(part, Node) and part.cut for part in parts):
                whole = Node({**node, key: [self._found(part) for part in parts]})
                whole.place = getattr(node, "place", "")
                node = whole
        return node

    def _found(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.places.get(node.place, node) if isinstance(node, Node) and node.cut else node


@lru_cache(maxsize=2048)
def form_of(source: Source) -> Form:
    """The form of a tool, worked out when it is first needed."""
    root = normal(source.inputs, source.tool.name)
    places: dict[str, Node] = {}
    for node in _nodes(root):
        if node.place and not node.cut:
            places.setdefault(node.place, node)
    inside = root.get("properties", {})
    return Form({name: one for name, one in inside.items() if isinstance(one, Node)}, places)


def _nodes(node: Any) -> Iterator[Node]:
    if isinstance(node, Node):
        yield node
    inner = node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ()
    for one in inner:
        yield from _nodes(one)


def path_to(lead: str, name: str) -> str:
    """The path of a member."""
    return f"{lead}.{name}" if lead else name


# -- what became what ------------------------------------------------------------------------------


Likeness = Callable[[Any, Any], float]
PairNames = Callable[[Mapping[str, Param], Mapping[str, Param]], Mapping[str, str]]
"""Pairs members that are gone, by their paths, with those that have come, by their names."""
PairWords = Callable[[str, Mapping[str, Any], Mapping[str, Any], Likeness], Mapping[str, str]]
"""Pairs the old words of the value at a path with its new ones, as alike as they are."""


@dataclass(frozen=True)
class Met:
    """A value inside of an argument that goes on: its two paths, and its two schemas.

    `required` says whether the old tool asks for it.
    """

    path: str
    there: str
    old: Mapping[str, Any]
    new: Mapping[str, Any]
    required: bool = True


@dataclass
class Meeting:
    """What meets what inside of an argument of two tools.

    Attributes:
        before: the form of the old tool.
        after: the form of the new tool.
        names: pairs members.
        words: pairs choices, and alternatives.
        met: what goes on, as far as it was walked.
    """

    before: Form
    after: Form
    names: PairNames
    words: PairWords
    met: list[Met] = field(default_factory=list)
    seen: set[tuple[str, str]] = field(default_factory=set)

    def walk(
        self,
        old: Mapping[str, Any],
        new: Mapping[str, Any],
        path: str,
        there: str,
        required: bool = True,
        depth: int = 0,
    ) -> None:
        """Walks a value; `path` is its own by the old names, `there` by the new ones."""
        self.met.append(Met(path, there, old, new, required))
        old, new = self.before.whole(old), self.after.whole(new)
        places = getattr(old, "place", ""), getattr(new, "place", "")
        if same(old, new) or depth > DEEPEST or (all(places) and places in self.seen):
            return
        self.seen.add(places)
        first, second = tagged(old), tagged(new)
        if first and second:
            self._variants(first, second, path, there, depth)
            return
        was, now = items_of(old), items_of(new)
        if was is not None and now is not None:
            self.walk(was, now, f"{path}[]", f"{there}[]", depth=depth + 1)
        further = further_of(old), further_of(new)
        if further[0] and further[1]:
            self.walk(further[0], further[1], f"{path}.*", f"{there}.*", depth=depth + 1)
        self._members(members_of(old), members_of(new), path, there, depth)

    def _members(
        self,
        old: Mapping[str, Param],
        new: Mapping[str, Param],
        path: str,
        there: str,
        depth: int,
    ) -> None:
        if not old or not new:
            return
        gone = {path_to(path, name): one for name, one in old.items() if name not in new}
        come = {name: one for name, one in new.items() if name not in old}
        moved = self.names(gone, come)
        for name, param in old.items():
            here = path_to(path, name)
            partner = new.get(renamed_to(moved, here, name, new))
            if partner is None:
                continue
            was, now = words_of(param.schema, partner.schema)
            if was and now:
                self.words(here, was, now, alike_names)
            inner = path_to(there, partner.name)
            self.walk(param.schema, partner.schema, here, inner, param.required, depth + 1)

    def _variants(self, old: Tagged, new: Tagged, path: str, there: str, depth: int) -> None:
        """Alternatives: one that is gone has become the one with the likest name and members."""
        here = path_to(path, old.name)
        if old.name != new.name:
            self.names({here: _tag(old)}, {new.name: _tag(new)})
        words = self.words(here, _by_word(old), _by_word(new), _alike_parts)
        for tag, part in old.parts.items():
            partner = new.parts.get(words.get(tag, tag))
            if partner is not None:
                one, other = untagged(part, old.name), untagged(partner, new.name)
                self._members(members_of(one), members_of(other), path, there, depth)


def _tag(one: Tagged) -> Param:
    return Param(one.name, one.name, {"type": "string"})


def _by_word(one: Tagged) -> dict[str, tuple[str, Collection[str]]]:
    return {
        tag: (tag, set(untagged(part, one.name)["properties"])) for tag, part in one.parts.items()
    }


def _alike_parts(one: tuple[str, Collection[str]], other: tuple[str, Collection[str]]) -> float:
    """The likeness of two alternatives: names 0.5, names of members 0.5."""
    mine, theirs = set(one[1]), set(other[1])
    shared = 2 * len(mine & theirs) / (len(mine) + len(theirs)) if mine or theirs else 1.0
    return 0.5 * alike_names(one[0], other[0]) + 0.5 * shared


def choices_at(schema: Mapping[str, Any]) -> dict[str, str]:
    """The choices of a value, where they are words; null is left to the types."""
    choices = _listed(schema)
    return {one: one for one in choices} if all(isinstance(c, str) for c in choices) else {}


def _listed(schema: Mapping[str, Any]) -> list[Any]:
    """The values that a schema lists, also beside an alternative that is null."""
    listed = core_of(schema).get("enum")
    return [one for one in listed if one is not None] if isinstance(listed, list) else []


def _numbers_at(schema: Mapping[str, Any]) -> dict[str, str]:
    """The choices of a value, where they are numbers, as they are written."""
    choices = _listed(schema)
    numbers = all(map(is_number, choices))
    return {as_text(one): as_text(one) for one in choices} if numbers else {}


FLAG = {"true": "true", "false": "false"}
"""The words of a boolean that has become choices, or was some."""


def words_of(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, str]]:
    """The words of a value on both sides: its choices, or those of a boolean beside choices.

    Choices that are numbers have words beside choices that are not.
    """
    was, now = choices_at(old), choices_at(new)
    was, now = was or (_numbers_at(old) if now else {}), now or (_numbers_at(new) if was else {})
    was = was or (dict(FLAG) if now and kinds_of(old) - {"null"} == {"boolean"} else {})
    now = now or (dict(FLAG) if was and kinds_of(new) - {"null"} == {"boolean"} else {})
    return was, now


def nodes_in(form: Form, most: int = 2000) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All values that arguments declare, with their paths; one that holds itself is told once."""
    waiting: list[tuple[str, Mapping[str, Any], tuple[int, ...]]]
    waiting = [(name, node, ()) for name, node in form.params.items()]
    for _ in range(most):
        if not waiting:
            return
        path, node, above = waiting.pop()
        node = form.whole(node)
        yield path, node
        if id(node) in above:
            continue
        above = (*above, id(node))
        items, further = items_of(node), further_of(node)
        waiting += [(f"{path}[]", items, above)] if items is not None else []
        waiting += [(f"{path}.*", further, above)] if further else []
        waiting += [
            (path_to(path, name), param.schema, above) for name, param in members_of(node).items()
        ]


# -- how it is said --------------------------------------------------------------------------------


def is_left_out(value: Any, schema: Mapping[str, Any], required: bool) -> bool:
    """Whether null stands for a value that is left out: its other form knows no null.

    A provider's strict mode requires every property, and has null say that one is left out.
    """
    return value is None and not required and "null" not in kinds_of(schema)


def says_nothing(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value of an option says the same as leaving it out: none, an empty one, false, or
    the only one or the default of its schema.
    """
    return value is None or value is False or value in ("", [], {}) or same(value, usual(schema))


@dataclass(frozen=True, eq=False)
class Restated:
    """How the values of one argument are said in its other form.

    Attributes:
        before: the old tool.
        after: the new tool.
        old: the name of the argument in the old one.
        new: its name in the new one.
        names: by the path of an old member its new name.
        words: by the path of an old value, its words.
        fixed: by the path of an old member that nobody can say any more, what it gets.
        given: by the path of a new member, what users state for it.
        reads: whether the old tool says that it reads: what it does not know is left out then.
        units: by the path of an old value, how it is converted into the new one.
    """

    before: Source
    after: Source
    old: str
    new: str
    names: Mapping[str, str] = field(default_factory=dict)
    words: Words = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    reads: bool = False
    units: Mapping[str, str] = field(default_factory=dict)

    def inward(self, value: Any) -> Any:
        """A value of the new argument as the old one takes it."""
        return self._said(value, inward=True)

    def outward(self, value: Any) -> Any:
        """A value of the old argument as it is said now; as it is where it cannot be said."""
        try:
            return self._said(value, inward=False)
        except Unsayable:
            return value

    def _said(self, value: Any, inward: bool) -> Any:
        forms = form_of(self.before), form_of(self.after)
        old, new = forms[0].params.get(self.old), forms[1].params.get(self.new)
        if old is None or new is None:
            return value
        return _Walk(self, *forms, inward).value(value, old, new, self.old, self.new)


@dataclass(frozen=True)
class _Walk:
    """One value on its way from one form to the other."""

    how: Restated
    before: Form
    after: Form
    inward: bool

    def value(
        self, value: Any, old: Mapping[str, Any], new: Mapping[str, Any], path: str, there: str
    ) -> Any:
        """A value; `path` is its own by the old names, `there` by the new ones."""
        old, new = self.before.whole(old), self.after.whole(new)
        if how := self.how.units.get(path, ""):
            value = converted(value, reversed_way(how) if self.inward else how)
            return next(fitted(value, old if self.inward else new), value)
        if isinstance(value, dict):
            return self._object(value, old, new, path, there)
        if isinstance(value, list):
            was, now = items_of(old), items_of(new)
            if was is None or now is None:
                return value
            return [self.value(one, was, now, f"{path}[]", f"{there}[]") for one in value]
        said = self._word(value, path)
        return next(fitted(said, old if self.inward else new), said)

    def _word(self, value: Any, path: str) -> Any:
        words = self.how.words.get(path, {})
        if not words or not isinstance(value, str | bool | int | float):
            return value
        word = as_text(value) if not isinstance(value, bool) else ("false", "true")[value]
        if not self.inward:
            return words.get(word, value)
        return next((old for old, new in words.items() if new == word), value)

    def _object(
        self,
        value: dict[str, Any],
        old: Mapping[str, Any],
        new: Mapping[str, Any],
        path: str,
        there: str,
    ) -> dict[str, Any]:
        first, second = tagged(old), tagged(new)
        if not first or not second:
            return self._members(value, old, new, path, there)
        source, target = (second, first) if self.inward else (first, second)
        tag = value.get(source.name)
        said = self._word(tag, path_to(path, first.name))
        if not isinstance(tag, str) or tag not in source.parts or said not in target.parts:
            which = f"{source.name} {tag!r}"[:200]
            raise Unsayable(f"{there}: the tool behind it has nothing for {which}")
        was, now = (said, tag) if self.inward else (tag, said)
        one, other = (
            untagged(first.parts[was], first.name),
            untagged(second.parts[now], second.name),
        )
        rest = {key: each for key, each in value.items() if key != source.name}
        return {target.name: said, **self._members(rest, one, other, path, there)}

    def _members(
        self,
        value: dict[str, Any],
        old: Mapping[str, Any],
        new: Mapping[str, Any],
        path: str,
        there: str,
    ) -> dict[str, Any]:
        mine, theirs = members_of(old), members_of(new)
        if not mine or not theirs:  # an open object takes all names as they are
            return value
        names = self.how.names
        to = {name: renamed_to(names, path_to(path, name), name, theirs) for name in mine}
        pairs = {(name if not self.inward else now): (name, now) for name, now in to.items()}
        known, wanted = (theirs, mine) if self.inward else (mine, theirs)
        further = further_of(old) or {}, further_of(new) or {}
        said: dict[str, Any] = {}
        for key, each in value.items():
            was, now = pairs.get(key, ("", ""))
            name = was if self.inward else now
            if name in wanted and key in known:
                if not is_left_out(each, wanted[name].schema, wanted[name].required):
                    said[name] = self.value(
                        each,
                        mine[was].schema,
                        theirs[now].schema,
                        path_to(path, was),
                        path_to(there, now),
                    )
            elif self.inward and key in theirs:
                self._is_unknown(key, each, theirs[key], there)
            elif key not in known:
                said[key] = self.value(each, *further, f"{path}.*", f"{there}.*")
        for name, param in wanted.items():
            if param.required and name not in said:
                said |= self._missing(param, theirs.get(to.get(name, "")), path, there)
        return said

    def _is_unknown(self, key: str, value: Any, param: Param, there: str) -> None:
        """Refuses a member that the old tool does not know, where it may write."""
        required = param.required or path_to(there, key) in self.how.given
        if not (self.how.reads or required or says_nothing(value, param.schema)):
            raise Unsayable(f"the tool behind it does not know {path_to(there, key)}")

    def _missing(
        self, param: Param, partner: Param | None, path: str, there: str
    ) -> dict[str, Any]:
        """What a required member gets that is not said; nothing where nothing says it."""
        if not self.inward:
            told = self.how.given.get(path_to(there, param.name), usual(param.schema))
            open_ = told is None and "null" not in kinds_of(param.schema)
            return {} if open_ else {param.name: told}
        here = path_to(path, param.name)
        default = partner.schema.get("default") if partner else None
        told = self.how.fixed.get(here, default)
        if told is None:
            raise Unsayable(f"the tool behind it needs {here}")
        return {param.name: told}
