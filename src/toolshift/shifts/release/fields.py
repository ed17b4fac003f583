"""What became what in the results of a pair of tools, and whether answers about it can be.

A record or a list that stands elsewhere is told by what is in it. Of the values, one of the same
name at the same place is the same; another is taken unasked only where the words of its path are
the same (`customer.name`, `customer_name`) or its description is, and its type allows it; every
other value of which the type allows it is asked. Choices are taken unasked where they are spelt
otherwise alike (`open`, `OPEN`), else asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol

import jsonschema_rs

from toolshift.core.names import unknown
from toolshift.interop.schema import choices_of
from toolshift.interop.tools import Source
from toolshift.shifts.release.conversions import conversion_between, conversions, unit_gained
from toolshift.shifts.release.mapping import UNDECIDED, Answers, WrongEntry
from toolshift.shifts.release.match import POSSIBLE, SURE, alike_names, alike_texts, words
from toolshift.shifts.release.nested import FLAG, words_of
from toolshift.shifts.release.paging import list_in, paged_by
from toolshift.shifts.release.results import (
    SLOT,
    WHOLE,
    Place,
    ResultForm,
    form_of,
    wrap_of,
)

_DOUBT = SURE - 0.01
"""The likeness of what is never taken unasked."""
_LEAST = 0.1
"""The likeness from which on a value is asked."""
_CLEAR = 0.1
_ALIKE = 0.5
"""From here on what is in two records says that they are the same one."""


class Draft(Protocol):
    """The mapping as it grows; see `resolve`."""

    def match(
        self,
        path: tuple[str, ...],
        olds: Mapping[str, Any],
        news: Mapping[str, Any],
        given: Mapping[str, str],
        alike: Callable[[Any, Any], float],
        *,
        possible: float,
    ) -> dict[str, str]:
        """What became what among things of one kind."""
        ...

    def ask(
        self, path: tuple[str, ...], guess: str, likeness: float, choices: tuple[str, ...]
    ) -> str:
        """Asks for one entry; returns what stands there until it is answered."""
        ...

    def add_to(self, first: tuple[str, ...], path: tuple[str, ...]) -> None:
        """Says that the answer at a path is that of a question, where that is asked."""
        ...


Tables = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
"""The tables `fields`, `result_values` and `units`."""
Known = dict[tuple[frozenset[str], frozenset[str]], dict[str, str]]
"""For two sets of choices, which became which: one answer for all places that have them."""
Value = tuple[str, frozenset[str], frozenset[str]]
"""A value of a record: its name, its types, and the names of all that is in the record."""


@dataclass
class Records:
    """What is known of the values of records, which several tools may return.

    Attributes:
        names: for a value, its new name and the entry that says so.
        units: for a value, how it is converted and the entry that says so.
    """

    names: dict[Value, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    units: dict[Value, tuple[str, tuple[str, ...]]] = field(default_factory=dict)


def settle_results(
    draft: Draft,
    given: Answers,
    before: Source,
    after: Source,
    tables: Tables,
    known: Known,
    records: Records,
) -> None:
    """Settles what became of the results of a tool that goes on."""
    fields, values, units = tables
    old = before.tool.name
    fields[old] = {a: b for a, b in given.fields.get(old, {}).items() if b != UNDECIDED}
    values[old] = {path: dict(t) for path, t in given.result_values.get(old, {}).items()}
    units[old] = {a: b for a, b in given.units.get(old, {}).items() if b != UNDECIDED}
    form = form_of(given, before, after)
    if not form.news or not form.olds:
        return
    likely = dict(fields[old])
    for a, b, likeness in _lifts(form):
        likely[a] = b
        fields[old][a] = b if likeness >= SURE else draft.ask(("fields", old, a), b, likeness, (b,))
    form = _with(form, likely)
    style = paged_by(after)
    gone, come = _open(form, fields[old], set(style.told if style else ()))
    for key, value in _templates(gone, come):
        if key not in fields[old]:
            fields[old][key] = draft.ask(("fields", old, key), value, 0.5, (value,))
        for part in (key, value, *SLOT.findall(key + value)) if fields[old][key] else ():
            gone.pop(part, None)
            come.pop(part, None)
    for name, new, entry in [*_as_elsewhere(records, form, gone, come)]:
        fields[old][name] = new
        draft.add_to(entry, ("fields", old, name))
        gone.pop(name)
        come.pop(new, None)
    moved = draft.match(
        ("fields", old), gone, come, fields[old], _alike_places(form), possible=_LEAST
    )
    fields[old] |= moved
    _note_names(records, form, old, fields[old])
    form = _with(form, {**likely, **fields[old]})
    for path, place in form.olds.items():
        target = form.news.get(form.moved(path))
        if target is None or not place.is_leaf:
            continue
        _settle_choices(draft, ("result_values", old, path), place, target, values[old], known)
        _settle_unit(draft, ("units", old, path), (place, target, form), units[old], records)


def _settle_unit(
    draft: Draft,
    entry: tuple[str, ...],
    sides: tuple[Place, Place, ResultForm],
    units: dict[str, str],
    records: Records,
) -> None:
    """Settles whether a value comes in another unit; asked once for all that return the record."""
    place, target, form = sides
    value, path, how = _value_of(place, form), entry[-1], _conversion(place, target)
    if how and path not in units and value in records.units:
        units[path], first = records.units[value]
        draft.add_to(first, entry)
    elif how and path not in units:
        units[path] = draft.ask(entry, how, 0.6, (how,))
    if units.get(path, UNDECIDED) != UNDECIDED:
        records.units.setdefault(value, (units[path], entry))


def _as_elsewhere(
    records: Records, form: ResultForm, gone: Mapping[str, Place], come: Mapping[str, Place]
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The values that are gone of which another tool with that record says what they are now."""
    for name, place in gone.items():
        new, entry = records.names.get(_value_of(place, form), (UNDECIDED, ()))
        there = [one for one, target in come.items() if target.path[-1] == new]
        if not new or len(there) == 1:
            yield name, there[0] if new else "", entry


def _note_names(records: Records, form: ResultForm, old: str, fields: Mapping[str, str]) -> None:
    """Keeps what became of the values of a record, for other tools that return it."""
    for name, new in fields.items():
        place, target = form.olds.get(form.old_path(name)), form.news.get(new)
        if place is not None and new != UNDECIDED and (target is not None or not new):
            known_as = target.path[-1] if target is not None else ""
            records.names.setdefault(_value_of(place, form), (known_as, ("fields", old, name)))


def _value_of(place: Place, form: ResultForm) -> Value:
    """A value of a record, alike for all tools that return such a record."""
    record = {one.path[-1] for one in form.olds.values() if one.path[:-1] == place.path[:-1]}
    return place.path[-1], place.kinds, frozenset(record)


def _with(form: ResultForm, moves: Mapping[str, str]) -> ResultForm:
    """The form with what is decided so far."""
    told = {a: b for a, b in moves.items() if b not in ("", UNDECIDED)}
    gone = tuple(old for old, new in moves.items() if new == "")
    return replace(form, moves=told, gone=gone)


# -- records and lists -----------------------------------------------------------------------------


def _inside(places: Mapping[str, Place], path: str) -> dict[str, frozenset[str]]:
    """The values in a record or in the records of a list, with their types."""
    above = f"{path}." if path else ""
    return {
        name.removeprefix(above): place.kinds
        for name, place in places.items()
        if name.startswith(above) and place.is_leaf
    }


def _share(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Dice's coefficient of the names of two records."""
    return 2 * len(one.keys() & other.keys()) / (len(one) + len(other)) if one or other else 0.0


def _lifts(form: ResultForm) -> Iterator[tuple[str, str, float]]:
    """The records and lists that stand elsewhere now, and how sure that is."""
    given = {form.old_path(old) for old in form.moves}
    olds, news = form.olds, form.news
    lists = [list_in(each) for each in (olds, news)]
    one, other = lists
    if one is not None and other is not None:
        if one.name != other.name and one.name not in given:
            first, second = (_inside(p, w.name) for p, w in ((olds, one), (news, other)))
            plain = not first and not second and _item(one) == _item(other)
            likeness = 1.0 if plain else max(_share(first, second), _LEAST)
            yield one.name, other.name, 1.0 if likeness >= _ALIKE else likeness
        return
    if given & {WHOLE, *olds} and any(form.lifts):
        return
    records = [
        [("", _inside(p, ""))]
        + [
            (name, _inside(p, name))
            for name, place in p.items()
            if place.kinds == {"object"} and not place.is_leaf and not place.lists
        ]
        for p in (olds, news)
    ]
    scored = sorted(
        (
            (_share(mine, theirs), a == b, -a.count(".") - b.count("."), a, b)
            for a, mine in records[0]
            for b, theirs in records[1]
        ),
        reverse=True,
    )
    best = scored[0] if scored else None
    still = max((s for s, alike, *_ in scored if alike), default=0.0)
    if best is not None and not best[1] and best[0] >= _ALIKE and best[0] - still >= _CLEAR:
        yield best[3] or WHOLE, best[4] or WHOLE, 1.0


def _item(place: Place) -> Any:
    items = place.schema.get("items")
    return items.get("type") if isinstance(items, Mapping) else None


# -- single values ---------------------------------------------------------------------------------


def _open(
    form: ResultForm, decided: Mapping[str, str], paged: set[str]
) -> tuple[dict[str, Place], dict[str, Place]]:
    """The values that are gone and those that have come, of which nothing is decided."""
    told = {form.old_path(name) for old in decided for name in SLOT.findall(old) or [old]}
    here = {form.new_path(name) for new in decided.values() for name in SLOT.findall(new) or [new]}
    stays = {form.moved(name) for name in form.olds}
    before = set(paged)
    gone = {
        name: place
        for name, place in form.olds.items()
        if place.is_leaf and not form.moved(name) and name not in told
    }
    come = {
        name: place
        for name, place in form.news.items()
        if place.is_leaf and name not in stays | here | before and not _says_itself(place)
    }
    return gone, come


def _says_itself(place: Place) -> bool:
    """Whether the schema of a value leaves one alone."""
    choices = place.schema.get("enum")
    return isinstance(choices, list) and len(choices) == 1


def _alike_places(form: ResultForm) -> Callable[[Place, Place], float]:
    """How alike two values are, given where the records stand that they are in."""

    def alike(one: Place, other: Place) -> float:
        if len(one.lists) != len(other.lists) or not _compatible(one, other):
            return 0.0
        first, second = _apart(form.lifted(one.name).split("."), [*other.path])
        names = max(
            alike_names(first, second),
            alike_names(one.path[-1], other.path[-1]),
        )
        texts = [str(place.schema.get("description") or "") for place in (one, other)]
        parts = [(0.5, names)]
        if all(texts):
            parts.append((0.3, alike_texts(*texts)))
        numbers = one.kinds | other.kinds <= _NUMBERS
        parts.append((0.2, float(one.kinds == other.kinds or numbers)))
        found = sum(w * value for w, value in parts) / sum(w for w, _ in parts)
        full = sorted(words(first)) == sorted(words(second))
        last = words(one.path[-1]) == words(other.path[-1])
        told = bool(texts[0]) and texts[0] == texts[1]
        certain = (full or last or told) and one.kinds == other.kinds
        if bool(choices_of(one.schema)) != bool(choices_of(other.schema)):
            return max(found * _DOUBT / 2, _LEAST if _is_flag(one, other) else 0.0)
        return max(found, SURE) if certain else found * _DOUBT

    return alike


def _apart(one: list[str], other: list[str]) -> tuple[str, str]:
    """Two paths as names, without what they stand in together."""
    while len(one) > 1 and len(other) > 1 and one[0] == other[0]:
        one, other = one[1:], other[1:]
    return " ".join(one), " ".join(other)


_NUMBERS = frozenset(("integer", "number"))
_TEXTLIKE = frozenset(("string", *_NUMBERS))


def _is_flag(one: Place, other: Place) -> bool:
    """Whether one of two values is a boolean, and the other one of some choices."""
    return FLAG in words_of(one.schema, other.schema)


def _compatible(one: Place, other: Place) -> bool:
    """Whether a value of one place may be a value of the other."""
    if not one.kinds or not other.kinds or one.kinds & other.kinds:
        return not (one.is_list and other.is_list) or _item(one) == _item(other)
    return (one.kinds <= _TEXTLIKE and other.kinds <= _TEXTLIKE) or _is_flag(one, other)


def _templates(gone: Mapping[str, Place], come: Mapping[str, Place]) -> list[tuple[str, str]]:
    """Values that seem to be made of several, and the reverse: old to new, one side a template."""
    split = ((name, template) for template, name in _made_of(come, gone))
    return [*_made_of(gone, come), *split]


def _made_of(parts: Mapping[str, Place], wholes: Mapping[str, Place]) -> list[tuple[str, str]]:
    """Texts of one record whose names share the last word of another text: `first_name`."""
    found = []
    for name, whole in wholes.items():
        last = words(whole.path[-1])[-1:]
        mine = [
            part
            for part, place in parts.items()
            if place.kinds == whole.kinds == {"string"}
            and words(place.path[-1])[-1:] == last
            and len(words(place.path[-1])) > 1
            and place.path[:-1] == parts[next(iter(parts))].path[:-1]
            and not choices_of(place.schema)
        ]
        if len(mine) > 1 and not choices_of(whole.schema):
            found.append((" ".join(f"{{{part}}}" for part in mine), name))
    return found


# -- choices, units, formats -----------------------------------------------------------------------


def _settle_choices(
    draft: Draft,
    path: tuple[str, ...],
    place: Place,
    target: Place,
    values: dict[str, dict[str, str]],
    known: Known,
) -> None:
    was, now = _words_of(place, target)
    if not was or not now or (was == now and place.kinds == target.kinds):
        return
    sets = frozenset(was), frozenset(now)
    given = values.get(path[-1], {})
    if _is_flag(place, target):  # a name tells nothing of what yes and no are
        told = {
            word: draft.ask((*path, word), "", 0.0, (*now,)) for word in was if word not in given
        }
        values[path[-1]] = {**given, **told}
        return
    if not given and sets in known:
        values[path[-1]] = known[sets]
        return
    common = [_common(was), _common(now)]

    def alike(one: str, other: str) -> float:
        pairs = zip((one, other), common, strict=True)
        mine, theirs = ([w for w in words(text) if w not in shared] for text, shared in pairs)
        if mine == theirs:
            return 1.0
        likeness = alike_names(one, other)
        if likeness < POSSIBLE:  # nothing in common: the order of the choices is all there is
            return 0.05 if was.index(one) == now.index(other) else 0.0
        return min(likeness, _DOUBT)

    olds, news = ({one: one for one in some} for some in (was, now))
    table = draft.match(path, olds, news, given, alike, possible=0.0)
    if table:
        values[path[-1]] = known[sets] = table


def _words_of(place: Place, target: Place) -> tuple[list[str], list[str]]:
    """The words of a value on both sides: numbers have words beside choices, and so have yes and
    no.
    """
    was, now = choices_of(place.schema), choices_of(target.schema)
    if was and now:
        return was, now
    beside = words_of(place.schema, target.schema)
    return (was or [*beside[0]]), (now or [*beside[1]])


def _common(choices: Iterable[str]) -> frozenset[str]:
    """The words that all of some choices have."""
    each = [frozenset(words(one)) for one in choices]
    shared = frozenset.intersection(*each) if len(each) > 1 else frozenset()
    return shared if all(one - shared for one in each) else frozenset()


def _conversion(place: Place, target: Place) -> str:
    """How a value seems to be converted, by its name, its description and its format."""
    first, second = ((p.path[-1], p.schema, p.kinds) for p in (place, target))
    return conversion_between(first, second) or unit_gained(first, second)


# -- whether answers can be ------------------------------------------------------------------------


def check_results(given: Answers, before: Source, after: Source) -> None:
    """Checks what answers say of the results of a pair of tools."""
    form = form_of(given, before, after)
    _check_moves(given, before, form)
    old, new = before.tool.name, after.tool.name
    for path, table in given.result_values.get(old, {}).items():
        _check_old(form, ("result_values", old, path), path)
        _check_words(form, ("result_values", old, path), path, table)
    for path, how in given.units.get(old, {}).items():
        spot = ("units", old, path)
        _check_old(form, spot, path)
        if how not in ("", UNDECIDED, *_known_conversions()):
            raise WrongEntry(spot, unknown("conversion", how, _known_conversions()))
    for path, value in given.returned.get(new, {}).items() if form.news else ():
        spot = ("returned", new, path)
        _check_known(spot, path, form.news, "")
        if value != UNDECIDED and not _fits(value, form.news[path].schema):
            raise WrongEntry(spot, f"{new} does not return {value!r:.80} for {path}")
    for key, size in given.pages.get(new, {}).items():
        if key != "size" or not isinstance(size, int) or size < 1:
            raise WrongEntry(("pages", new, key), "it takes `size`, a whole number from 1")
        if paged_by(after) is None:
            raise WrongEntry(("pages", new, key), f"{new} does not return pages of one list")


def _check_moves(given: Answers, before: Source, form: ResultForm) -> None:
    """Checks that values move from places that are there to places that are."""
    old = before.tool.name
    for a, b in given.fields.get(old, {}).items():
        spot = ("fields", old, a)
        for name in SLOT.findall(a) or [a]:
            _check_old(form, spot, name)
        for name in SLOT.findall(b) or [b]:
            if name not in ("", UNDECIDED, WHOLE) and form.news:
                _check_known(spot, name, form.news, wrap_of(form.after, form.news))
        _check_lists(form, spot, a, b)


@lru_cache(maxsize=1)
def _known_conversions() -> tuple[str, ...]:
    return tuple(conversions())


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    try:
        return bool(jsonschema_rs.validator_for(dict(schema)).is_valid(value))
    except (ValueError, jsonschema_rs.ReferencingError):
        return True


def _check_old(form: ResultForm, spot: tuple[str, ...], name: str) -> None:
    if form.olds and name != WHOLE:
        _check_known(spot, name, form.olds, form.wrap)


def _check_known(spot: tuple[str, ...], name: str, places: Mapping[str, Place], wrap: str) -> None:
    if name not in places and f"{wrap}.{name}" not in places:
        raise WrongEntry(spot, unknown("path", name, places))


def _check_lists(form: ResultForm, spot: tuple[str, ...], old: str, new: str) -> None:
    """Checks that a value of a record stays one of a record, and one of a list one of a list."""
    first, second = (form.olds.get(form.old_path(old)), form.news.get(form.new_path(new, old)))
    if first is None or second is None or len(first.lists) == len(second.lists):
        return
    inner, outer = (first, second) if first.lists else (second, first)
    why = f"{inner.name} stands in each record of a list, and {outer.name} does not"
    raise WrongEntry(spot, why)


def _check_words(
    form: ResultForm, spot: tuple[str, ...], path: str, table: Mapping[str, str]
) -> None:
    place = form.olds.get(form.old_path(path))
    target = form.news.get(form.moved(form.old_path(path))) if place is not None else None
    was = choices_of(place.schema) if place is not None else []
    now = choices_of(target.schema) if target is not None else []
    if place is not None and target is not None:
        was, now = _words_of(place, target)
    for old, new in table.items():
        if was and old not in was:
            raise WrongEntry((*spot, old), unknown("value", old, was))
        if now and new not in ("", UNDECIDED, *now):
            raise WrongEntry((*spot, old), unknown("value", new, now))
