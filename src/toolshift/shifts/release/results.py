"""What an old tool returns, in the form in which the new tool declares its results.

    form = form_of(answers, old_source, new_source)
    form.outward(data)     # the data as the new tool has it; `Unfit` where it cannot be that
    form.open              # what nobody can tell, and so is not carried

A place is a path of keys from the top of the declared results; lists on it are gone into. Each
value is taken out at its old place and put in at its new one. What nothing gives is never made up:
a value that is required now comes from the mapping (`returned`), from the schema where that leaves
one value alone, or it is null where the schema allows null.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import jsonschema_rs

from toolshift.core.canonical import same
from toolshift.core.tool import Field, first_fault
from toolshift.core.values import as_text, is_number
from toolshift.interop.normal import Node, normal
from toolshift.interop.schema import checkable, choices_of, fitted, types_of, usual
from toolshift.interop.tools import Source
from toolshift.shifts.release.conversions import converted
from toolshift.shifts.release.mapping import UNDECIDED, Answers
from toolshift.shifts.release.match import words

Keys = tuple[str, ...]
WRAP = "result"
"""The key under which protocols put a result that is no object; clients show what stands there."""
WHOLE = "."
"""The path of a whole result."""
DEEPEST = 16
MOST_PLACES = 2000
SLOT = re.compile(r"\{([^{}]+)\}")


class Unfit(Exception):
    """A result that the new tool could not return; the message says why."""


@dataclass(frozen=True, eq=False)
class Place:
    """A value that results declare.

    Attributes:
        path: its keys from the top, without the lists on the way.
        lists: after how many keys a list is gone into.
        schema: of the value, in the one form of schemas.
        required: whether its record always has it.
    """

    path: Keys
    lists: tuple[int, ...]
    schema: Node
    required: bool

    @property
    def name(self) -> str:
        """The path as mapping files have it."""
        return ".".join(self.path)

    @property
    def kinds(self) -> frozenset[str]:
        """The types that it may have, null apart."""
        return types_of(self.schema) - {"null"}

    @property
    def nullable(self) -> bool:
        """Whether it may be null."""
        kinds = self.schema.get("type")
        return not kinds or kinds == "null" or (isinstance(kinds, list) and "null" in kinds)

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return self.kinds == {"array"}

    @cached_property
    def is_leaf(self) -> bool:
        """Whether it is a value whose inside is not declared."""
        return not any(True for _ in _members(self.schema)) and not any(
            True for _ in _members(_items(self.schema))
        )


def places_of(outputs: Mapping[str, Any] | None) -> dict[str, Place]:
    """Every place that results declare, by its path, the outer ones first."""
    found: dict[str, Place] = {}
    if outputs is None:
        return found
    _walk(normal(outputs), (), (), found)
    return found


def _walk(node: Any, path: Keys, lists: tuple[int, ...], found: dict[str, Place]) -> None:
    for key, inner, required in _members(node):
        here = (*path, key)
        name = ".".join(here)
        if name in found or len(here) > DEEPEST or len(found) > MOST_PLACES:
            continue
        found[name] = Place(here, lists, inner, required)
        _walk(inner, here, lists, found)
        _walk(_items(inner), here, (*lists, len(here)), found)


def _members(node: Any) -> Iterator[tuple[str, Node, bool]]:
    """The properties of a node and of its alternatives, and whether each is always there."""
    if not isinstance(node, Mapping) or getattr(node, "cut", False):
        return
    needed = node.get("required", ())
    for key, inner in (node.get("properties") or {}).items():
        if isinstance(inner, Node) and "." not in key:
            yield key, inner, key in needed
    for several in ("anyOf", "oneOf", "allOf"):
        for part in node.get(several) or ():
            for key, inner, required in _members(part):
                yield key, inner, required and several == "allOf"


def _items(node: Any) -> Any:
    return node.get("items") if isinstance(node, Mapping) else None


def wrap_of(outputs: Mapping[str, Any] | None, places: Mapping[str, Place]) -> str:
    """The key under which a result that is shown as a list stands; "" where it is an object."""
    tops = [place for place in places.values() if len(place.path) == 1]
    if outputs is None or len(tops) != 1 or not tops[0].is_list:
        return "" if outputs is not None else WRAP
    return tops[0].path[0]


@dataclass(frozen=True, eq=False)
class ResultForm:
    """How results of an old tool become those of a new one.

    Attributes:
        before: what the old tool declares; None for nothing.
        after: what the new one does.
        moves: old paths to new ones, as the mapping has them.
        values: for an old path, the old words to the new ones.
        units: for an old path, how its value is converted.
        returned: for a new path, what stands there where nothing gives it.
        gone: old paths that the mapping says are no more.
        filled: new paths that are filled apart from this, as those of pages are.
        listed: whether an old result that declares nothing is a list.
    """

    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    moves: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    returned: Mapping[str, Any] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    filled: frozenset[str] = frozenset()
    listed: bool = True

    # -- what is known of both sides ----------------------------------------------------------

    @cached_property
    def olds(self) -> dict[str, Place]:
        """The places of the old results."""
        return places_of(self.before)

    @cached_property
    def news(self) -> dict[str, Place]:
        """The places of the new results."""
        return places_of(self.after)

    @cached_property
    def keeps(self) -> bool:
        """Whether nothing of the results changes."""
        if self.moves or self.values or self.units or self.returned or self.gone:
            return False
        if self.before is None or self.after is None:
            return self.after is None
        return same(normal(self.before), normal(self.after))

    @cached_property
    def wrap(self) -> str:
        """The key under which old results stand that come as a list."""
        return wrap_of(self.before, self.olds) or WRAP

    def old_path(self, path: str) -> str:
        """An old path as it stands in the whole result, where it is given within its records."""
        if path in (WHOLE, "") or path in self.olds or path == self.wrap:
            return path
        inner = f"{self.wrap}.{path}"
        known = inner in self.olds
        free = not self.olds and self.listed and not path.startswith(f"{self.wrap}.")
        return inner if known or free else path

    def new_path(self, path: str, old: str = "") -> str:
        """A new path in the whole result; `old` is the one that it follows."""
        if self.after is None:
            within = bool(old) and self.old_path(old) != old
            return f"{self.wrap}.{path}" if within else path
        wrap = wrap_of(self.after, self.news)
        inner = f"{wrap}.{path}"
        return inner if wrap and path not in self.news and inner in self.news else path

    @cached_property
    def lifts(self) -> dict[str, str]:
        """The moves of records and lists as a whole, the outer ones first."""
        table = {}
        for old, new in self.moves.items():
            if SLOT.search(old) or SLOT.search(new):
                continue
            place = self.olds.get(self.old_path(old))
            inner = place is not None and not place.is_leaf
            if WHOLE in (old, new) or inner:
                table[self.old_path(old)] = self.new_path(new, old)
        return dict(sorted(table.items(), key=lambda item: item[0].count(".")))

    @cached_property
    def single(self) -> dict[str, str]:
        """The moves of single values."""
        return {
            self.old_path(old): self.new_path(new, old)
            for old, new in self.moves.items()
            if self.old_path(old) not in self.lifts and not (SLOT.search(old) or SLOT.search(new))
        }

    def lifted(self, path: str) -> str:
        """Where a place would stand by the moves of what it stands in."""
        best = ""
        for old in self.lifts:
            if (
                old != WHOLE
                and (path == old or path.startswith(f"{old}."))
                and len(old) > len(best)
            ):
                best = old
        if not best:
            whole = self.lifts.get(WHOLE)
            return f"{whole}.{path}" if whole else path
        rest = path[len(best) :].lstrip(".")
        new = self.lifts[best]
        return rest if new == WHOLE else ".".join(filter(None, (new, rest)))

    def moved(self, path: str) -> str:
        """Where an old place stands now; "" where it is declared no more."""
        if path in self.single:
            return self.single[path]
        if any(path == one or path.startswith(f"{one}.") for one in self._gone):
            return ""
        new = self.lifted(path)
        return new if not self.news or new in self.news or path not in self.olds else ""

    @cached_property
    def joined(self) -> tuple[tuple[str, str], ...]:
        """Values that are made of several, and those that are taken apart."""
        return tuple(
            (old, new) for old, new in self.moves.items() if SLOT.search(old) or SLOT.search(new)
        )

    @cached_property
    def _parts(self) -> frozenset[str]:
        """Old places that stand in a join, or are taken apart."""
        found = set()
        for old, _ in self.joined:
            names = SLOT.findall(old) or [old]
            found |= {self.old_path(name) for name in names}
        return frozenset(found)

    @cached_property
    def _gone(self) -> tuple[str, ...]:
        return tuple(map(self.old_path, self.gone))

    @cached_property
    def dropped(self) -> tuple[str, ...]:
        """Old places that results have no more."""
        gone = [path for path in self._gone if path not in self.olds]
        if not self.news or not self.olds:
            return self._gone
        for name, place in self.olds.items():
            held = any(name == up or name.startswith(f"{up}.") for up in gone)
            if not held and name not in self._parts and not self.moved(name):
                inside = (inner for inner in self.olds if inner.startswith(f"{name}."))
                if place.is_leaf or not any(map(self.moved, inside)):
                    gone.append(name)
        return tuple(gone)

    @cached_property
    def given(self) -> frozenset[str]:
        """The new places that old results give."""
        found = {self.moved(name) for name in self.olds} | set(self.single.values())
        for _, new in self.joined:
            found |= {self.new_path(name) for name in SLOT.findall(new) or [new]}
        found |= set(self.lifts.values())
        return frozenset(found - {""}) | self.filled

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """New places that are required and that nothing gives."""
        if not self.olds:
            return ()
        return tuple(
            name
            for name, place in self.news.items()
            if place.required
            and place.is_leaf
            and name not in self.given
            and not self._fillable(name)
            and all(
                self.news[".".join(place.path[:n])].required
                or ".".join(place.path[:n]) in self.given
                for n in range(1, len(place.path))
            )
        )

    def _fillable(self, name: str) -> bool:
        place = self.news[name]
        known = name in self.returned or usual(place.schema) is not None
        return known or (place.nullable and bool(place.schema))

    @cached_property
    def retyped(self) -> dict[str, tuple[Place, Place]]:
        """For a new place, it and the old one, where the value is of another type now."""
        found = {}
        for name, place in self.olds.items():
            new = self.news.get(self.moved(name)) if name not in self._parts else None
            if new is None or name in self.units:
                continue
            choices = choices_of(new.schema)
            free = bool(choices) and not choices_of(place.schema)
            if not _takes(new, place) or free:
                found[new.name] = (place, new)
        return found

    @cached_property
    def unlike(self) -> tuple[str, ...]:
        """Old places whose new type nothing carries."""
        return tuple(
            old.name
            for old, new in self.retyped.values()
            if not (_takes(new, old) or _readable(old, new))
            or (not self._words(old.name) and _is_no_choice(old, new))
        )

    @cached_property
    def open(self) -> tuple[str, ...]:
        """What is not carried, in words."""
        lost = [f"nothing gives {name} in the results" for name in self.missing]
        lost += [f"{name}: nothing carries its new type" for name in self.unlike]
        lost += [
            f"{path}: nothing stands for {', '.join(words)}"
            for path, words in self.unsaid_values().items()
        ]
        return tuple(lost)

    def unsaid_values(self) -> dict[str, list[str]]:
        """For each old place, the choices that have no counterpart among the new ones."""
        found = {}
        for name, place in self.olds.items():
            new = self.news.get(self.moved(name))
            was, now = choices_of(place.schema), choices_of(new.schema) if new else []
            table = self._words(name)
            left = [one for one in was if table.get(one, one) not in now] if now else []
            if left:
                found[name] = left
        return found

    @cached_property
    def exact(self) -> bool:
        """Whether each result that the old tool declares is one that the new tool declares."""
        if self.after is None or self.before is None:
            return False
        return not self.missing and not self.unlike

    def _words(self, path: str) -> Mapping[str, str]:
        for key, table in self.values.items():
            if self.old_path(key) == path:
                return {a: b for a, b in table.items() if b not in ("", UNDECIDED)}
        return {}

    # -- a result ---------------------------------------------------------------------------------

    def outward(
        self, data: Any, finish: Callable[[dict[str, Any]], dict[str, Any]] = lambda whole: whole
    ) -> Any:
        """A result as the new tool has it; `finish` is given the whole before it is checked."""
        as_list = isinstance(data, list)
        if self.adopts:
            made = finish(self._filled(deepcopy(self._adopted(data))))
            self.check(None, made)
            return self.shown(made, as_list)
        if not isinstance(data, dict | list):
            return data
        if self.before is None and self.listed and not as_list:
            return self.unlisted.outward(data, finish)
        whole = self.whole(data)
        made = finish(self.made(deepcopy(whole)))
        self.check(whole, made)
        return self.shown(made, as_list)

    @property
    def adopts(self) -> bool:
        """Whether all that is known of results is how the new tool declares them."""
        known = self.before is not None or self.after is None
        return not (known or self.moves or self.values or self.units or self.gone)

    @cached_property
    def list_place(self) -> str:
        """Where the one list of the new results stands; "" where there is none, or are several."""
        lists = [place for place in self.news.values() if place.is_list and not place.lists]
        return lists[0].name if len(lists) == 1 else ""

    def _adopted(self, data: Any) -> dict[str, Any]:
        """A result of which nothing is declared, where it is no object in the one place for it."""
        if isinstance(data, dict):
            return data
        able = [
            name for name, place in self.news.items() if not place.lists and _holds(place, data)
        ]
        place = self.list_place if isinstance(data, list) else able[0] if len(able) == 1 else ""
        if not place:
            raise Unfit(f"{as_text(data)[:80]!r} is no object")
        made: dict[str, Any] = {}
        _put(made, place.split("."), (), data, ())
        return made

    @cached_property
    def unlisted(self) -> ResultForm:
        """The same for results that are no list, where that is not declared."""
        return replace(self, listed=False)

    def whole(self, data: Any) -> dict[str, Any]:
        """A result as it is declared, which is an object."""
        return {self.wrap: data} if isinstance(data, list) else data

    def shown(self, made: dict[str, Any], as_list: bool) -> Any:
        """A whole result as clients show it: a list that was put into an object to have one."""
        tops = [name for name, place in self.news.items() if len(place.path) == 1]
        wrap = self.wrap if self.after is None else tops[0] if len(tops) == 1 else ""
        kind = list if as_list or self.before is not None else str | list
        lone = set(made) == {wrap} and isinstance(made[wrap], kind)
        plain = as_list if self.after is None or wrap == self.wrap else False
        return made[wrap] if lone and (wrap == WRAP or plain) else made

    def read(
        self, fields: tuple[Field, ...], data: Any, shown: Any
    ) -> tuple[tuple[Field, ...], Keys]:
        """How records of a shown result are read, and where a list of them stands in it."""
        if self.adopts:
            above = self.list_place if isinstance(data, list) and isinstance(shown, dict) else ""
            return fields, tuple(above.split(".")) if above else ()
        if self.before is None and self.listed and not isinstance(data, list):
            return self.unlisted.read(fields, data, shown)
        if self.keeps and not isinstance(data, list):
            return fields, ()
        within = self.wrap if isinstance(data, list) else ""
        above = self.moved(within) if within else ""
        inside = tuple(above.split(".")) if above and not isinstance(shown, list) else ()
        kept = []
        for one in fields:
            old = ".".join(filter(None, (within, *one.path)))
            new = self.moved(old)
            kind = "string" if self._is_told_in_words(old, new) else one.type
            if above:
                new = new[len(above) + 1 :] if new.startswith(f"{above}.") else ""
            if new:
                kept.append(replace(one, path=tuple(new.split(".")), type=kind))
        return tuple(kept), inside

    def _is_told_in_words(self, old: str, new: str) -> bool:
        """Whether a value is another one now, by an answer, and no number."""
        told = {self.old_path(path) for path in (*self.values, *self.units)}
        place = self.news.get(new)
        return old in told and place is not None and not place.kinds & _NUMBERS

    def made(self, whole: dict[str, Any]) -> dict[str, Any]:
        """A whole result in the new form."""
        if self.keeps:
            return whole
        out = self._joined(whole)
        single = {old: (new, list(_take(out, old.split(".")))) for old, new in self.single.items()}
        for path in self.dropped:
            list(_take(out, path.split(".")))
        for path, change in self._rewritten():
            self._each(out, single, self.old_path(path), change)
        for old, new in self.lifts.items():
            out = _lift(out, old, new)
        for new, taken in single.values():
            at = self.news[new].lists if new in self.news else None
            for elements, value in taken:
                _put(out, new.split("."), elements, value, at)
        for new, (old_place, place) in self.retyped.items():
            _change(out, new.split("."), partial(_retyped, old=old_place, new=place))
        return self._filled(out)

    def _filled(self, out: dict[str, Any]) -> dict[str, Any]:
        """A result with what is required now."""
        if self.after is None:
            return out
        filled = _fill(out, self._root, (), self.returned)
        return filled if isinstance(filled, dict) else out

    def _rewritten(self) -> Iterator[tuple[str, Callable[[Any], Any]]]:
        """The old paths whose values are said otherwise now, and how."""
        for path, table in self.values.items():
            yield path, self._swapped(table)
        for path, how in self.units.items():
            if how not in ("", UNDECIDED):
                yield path, partial(converted, how=how)

    @cached_property
    def _root(self) -> Node:
        return normal(self.after or {})

    @staticmethod
    def _swapped(table: Mapping[str, str]) -> Callable[[Any], Any]:
        told = {a: b for a, b in table.items() if b not in ("", UNDECIDED)}
        return lambda value: (
            value if isinstance(value, dict | list) else told.get(as_text(value), value)
        )

    @staticmethod
    def _each(
        out: Any,
        single: Mapping[str, tuple[str, list[tuple[Elements, Any]]]],
        path: str,
        change: Callable[[Any], Any],
    ) -> None:
        """Changes the values at an old place, those that are taken out already too."""
        if path in single:
            taken = single[path][1]
            taken[:] = [(elements, _through(value, change)) for elements, value in taken]
        else:
            _change(out, path.split("."), change)

    def _joined(self, whole: dict[str, Any]) -> dict[str, Any]:
        """Puts values together and takes others apart, by their templates."""
        for old, new in self.joined:
            if SLOT.search(old):
                _join(whole, old, self)
            else:
                _split(whole, old, new, self)
        return whole

    @cached_property
    def checks(self) -> tuple[Any, Any]:
        """The validators of both sides."""
        return _validator(self.before), _validator(self.after)

    def check(self, given: Any, made: Any) -> None:
        """Holds a result that was as declared to what is declared now."""
        before, after = self.checks
        declared = self.before is None or (before is not None and self.exact)
        if after is None or not declared or (before is not None and not before.is_valid(given)):
            return
        if fault := first_fault(after, made):
            raise Unfit(fault)


def form_of(
    answers: Answers, before: Source, after: Source, filled: frozenset[str] = frozenset()
) -> ResultForm:
    """The form that a mapping gives the results of a pair of tools."""
    old, new = before.tool.name, after.tool.name
    moves = answers.fields.get(old, {})
    returned = answers.returned.get(new, {})
    return ResultForm(
        before.outputs,
        after.outputs,
        {a: b for a, b in moves.items() if b not in ("", UNDECIDED)},
        answers.result_values.get(old, {}),
        answers.units.get(old, {}),
        {path: value for path, value in returned.items() if value != UNDECIDED},
        tuple(old for old, new in moves.items() if new == ""),
        filled,
    )


def _holds(place: Place, value: Any) -> bool:
    """Whether a value may stand at a place that names its type."""
    check = _validator(place.schema) if place.kinds else None
    return check is not None and check.is_valid(value)


def _validator(schema: Mapping[str, Any] | None) -> Any:
    try:
        return jsonschema_rs.validator_for(checkable(schema)) if schema is not None else None
    except (ValueError, jsonschema_rs.ReferencingError):
        return None


# -- types -----------------------------------------------------------------------------------------

_NUMBERS = frozenset(("integer", "number"))
_DECIMAL = re.compile(r"-?(0|[1-9]\d{0,14})\.\d{1,9}")
"""A number in a text that loses nothing as one: no code with leading zeros."""


def _takes(new: Place, old: Place) -> bool:
    """Whether a place takes every type that another has."""
    if not new.kinds or not new.schema.get("type"):
        return True
    if not old.kinds:
        return False
    nulls = new.nullable or not old.nullable
    wanted = {"number" if one == "integer" and "number" in new.kinds else one for one in old.kinds}
    return wanted <= new.kinds and nulls


def _readable(old: Place, new: Place) -> bool:
    """Whether values of one type can be written in another."""
    if not old.kinds or old.kinds <= new.kinds:
        return True
    if old.kinds <= _NUMBERS | {"boolean", "string"} and "string" in new.kinds:
        return True
    if old.kinds <= _NUMBERS | {"string"} and new.kinds & _NUMBERS:
        return True
    return old.kinds == {"string"} and new.kinds == {"boolean"}


def _is_no_choice(old: Place, new: Place) -> bool:
    """Whether a value that is no text can be none of the words that are its choices now."""
    choices = choices_of(new.schema)
    return bool(choices and old.kinds and old.kinds <= _NUMBERS | {"boolean", "null"}) and not any(
        True for word in choices for _ in fitted(word, old.schema)
    )


def _retyped(value: Any, old: Place, new: Place) -> Any:
    """A value in its new type; `_GONE` where it is null, and null may no longer stand there."""
    if value is None and not new.nullable:
        return _GONE
    candidates = [value]
    if is_number(value):
        plain = int(value) if float(value).is_integer() and abs(value) < 2**53 else value
        candidates += [str(plain), f"{value:.2f}"] if round(value, 2) == value else [str(plain)]
    if isinstance(value, str):
        candidates += [float(value)] if _DECIMAL.fullmatch(value) else []
        candidates += [one for one in choices_of(new.schema) if words(one) == words(value)]
    check = _validator(new.schema)
    if check is None:
        return value
    fits = next((one for one in candidates if check.is_valid(one)), _NONE)
    if fits is not _NONE:
        return fits
    other = next(fitted(value, new.schema), _NONE)
    if other is _NONE or isinstance(other, list) != isinstance(value, list):
        return value if _takes(new, old) else _GONE
    return other


class _Mark:
    """A value that stands for none."""


_GONE, _NONE = _Mark(), _Mark()


# -- taking values out of data, and putting them in ------------------------------------------------

Elements = tuple[tuple[int, int], ...]
"""Which elements of lists are gone into on a path: before the key of which depth, and which one."""


def _take(
    place: Any, keys: list[str], depth: int = 0, elements: Elements = ()
) -> Iterator[tuple[Elements, Any]]:
    """Takes out what is at a path, in each element of the lists on it, and yields it."""
    if isinstance(place, list):
        for number, item in enumerate(place):
            yield from _take(item, keys, depth, (*elements, (depth, number)))
    elif isinstance(place, dict) and keys[depth] in place:
        if depth + 1 == len(keys):
            yield elements, place.pop(keys[depth])
        else:
            yield from _take(place[keys[depth]], keys, depth + 1, elements)
            if place[keys[depth]] == {}:
                del place[keys[depth]]


def _put(
    place: Any, keys: list[str], elements: Elements, value: Any, at: tuple[int, ...] | None
) -> None:
    """Puts a value at a path, with lists where `at` says that there are some.

    Where that is not known they stand where it had some, the inmost at the last key's record.
    """
    if at is None:
        within = {min(depth, len(keys) - 1): number for depth, number in elements}
    else:
        within = dict(zip(at, (number for _, number in elements), strict=False))
    for depth, key in enumerate(keys[:-1], 1):
        if depth not in within:
            inner = place.setdefault(key, {})
        else:
            items = place.setdefault(key, [])
            items += [{} for _ in range(within[depth] + 1 - len(items))]
            inner = items[within[depth]]
        if not isinstance(inner, dict):
            return
        place = inner
    place[keys[-1]] = value


def _change(place: Any, keys: list[str], change: Callable[[Any], Any], depth: int = 0) -> None:
    """Changes what is at a path, in each element of the lists on it."""
    if isinstance(place, list):
        for item in place:
            _change(item, keys, change, depth)
    elif isinstance(place, dict) and keys[depth] in place:
        if depth + 1 < len(keys):
            _change(place[keys[depth]], keys, change, depth + 1)
            return
        value = _through(place[keys[depth]], change)
        if value is _GONE:
            del place[keys[depth]]
        else:
            place[keys[depth]] = value


def _through(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value changed, or each of a list of them where the list as a whole is not."""
    made = change(value)
    if isinstance(value, list) and made == value:
        return [change(one) for one in value]
    return made


def _lift(out: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """Moves a record or a list as a whole."""
    if old == WHOLE:
        made: dict[str, Any] = {}
        _put(made, new.split("."), (), out, ())
        return made
    for elements, value in list(_take(out, old.split("."))):
        if new != WHOLE:
            _put(out, new.split("."), elements, value, None)
        elif isinstance(value, dict):
            out = {**out, **value}
    return out


def _fill(value: Any, node: Any, path: Keys, returned: Mapping[str, Any]) -> Any:
    """A value with what its schema requires and nothing has given, where one value is left."""
    if not isinstance(node, Mapping) or getattr(node, "cut", False):
        return value
    if isinstance(value, list):
        return [_fill(one, _items(node), path, returned) for one in value]
    if not isinstance(value, dict):
        return value
    for key, inner, required in _members(node):
        name = ".".join((*path, key))
        if key in value:
            value[key] = _fill(value[key], inner, (*path, key), returned)
        elif name in returned:
            value[key] = deepcopy(returned[name])
        elif required or any(one.startswith(f"{name}.") for one in returned):
            made = _made_up(inner, (*path, key), returned)
            if made is not _NONE:
                value[key] = made
    return value


def _made_up(node: Node, path: Keys, returned: Mapping[str, Any]) -> Any:
    """What stands at a new place that nothing gives: what the schema leaves alone, or null."""
    only = usual(node)
    if only is not None:
        return deepcopy(only)
    place = Place(path, (), node, True)
    if place.kinds == {"object"} and not place.nullable:
        return _fill({}, node, path, returned)
    return None if place.nullable and node.get("type") else _NONE


# -- values that are made of several ---------------------------------------------------------------


def _records(whole: Any, keys: list[str]) -> Iterator[dict[str, Any]]:
    """The records that stand at a path, in each element of the lists on it."""
    if isinstance(whole, list):
        for one in whole:
            yield from _records(one, keys)
    elif isinstance(whole, dict):
        if not keys:
            yield whole
        elif keys[0] in whole:
            yield from _records(whole[keys[0]], keys[1:])


def _stem(names: list[str]) -> list[str]:
    """The keys that some paths have in common."""
    split = [name.split(".")[:-1] for name in names]
    common = []
    for level in zip(*split, strict=False):
        if len(set(level)) > 1:
            break
        common.append(level[0])
    return common


def _join(whole: dict[str, Any], template: str, form: ResultForm) -> None:
    """Puts values together by a template, in each record that has all of them."""
    new = form.moves[template]
    names = SLOT.findall(template)
    full = {name: form.old_path(name) for name in names}
    stem = _stem(list(full.values()))
    for record in _records(whole, stem):
        parts = {}
        for name, path in full.items():
            taken = list(_take(record, path.split(".")[len(stem) :]))
            if len(taken) == 1 and taken[0][1] is not None:
                parts[name] = as_text(taken[0][1])
        if len(parts) == len(names):
            target = _within(form.new_path(new, names[0]), form, stem)
            _put(record, target, (), _written(template, parts), ())


def _written(template: str, parts: Mapping[str, str]) -> str:
    return SLOT.sub(lambda hit: parts[hit[1]], template)


def _split(whole: dict[str, Any], old: str, template: str, form: ResultForm) -> None:
    """Takes a value apart by a template; one that is not written so cannot be shown."""
    path = form.old_path(old)
    stem = path.split(".")[:-1]
    names = SLOT.findall(template)
    literal = SLOT.split(template)[::2]
    pattern = "(.+?)".join(map(re.escape, literal))
    for record in _records(whole, stem):
        taken = list(_take(record, path.split(".")[len(stem) :]))
        for _, value in taken:
            hit = re.fullmatch(pattern, as_text(value), re.DOTALL) if value is not None else None
            if value is not None and hit is None:
                raise Unfit(f"{old}: {as_text(value)!r:.80} is not written as {template}")
            for name, part in zip(names, hit.groups() if hit else (), strict=False):
                _put(record, _within(form.new_path(name), form, stem), (), part, ())


def _within(new: str, form: ResultForm, stem: list[str]) -> list[str]:
    """A new path from the record in which the old values stand."""
    above = form.lifted(".".join(stem)) if stem else form.lifts.get(WHOLE, "")
    rest = new[len(above) + 1 :] if above and new.startswith(f"{above}.") else new
    return rest.split(".")


def values_at(whole: Any, path: str) -> list[Any]:
    """The values at a path of a result, those of a list of values each for itself."""
    *above, last = path.split(".")
    found = []
    for record in _records(whole, above):
        value = record.get(last)
        found += value if isinstance(value, list) else [value] if value is not None else []
    return found
