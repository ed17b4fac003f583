"""Values that come in another unit or in another format: `g -> kg`, `unix seconds -> date-time`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from toolshift.core.values import as_text
from toolshift.shifts.release.match import words

ARROW = " -> "
_UNITS: dict[str, tuple[tuple[str, str, Fraction], ...]] = {
    "mass": (
        ("mg", "mg|milligrams?", Fraction(1, 1000)),
        ("g", "g|grams?", Fraction(1)),
        ("kg", "kg|kilograms?|kilos?", Fraction(1000)),
    ),
    "length": (
        ("mm", "mm|millimet(?:er|re)s?", Fraction(1, 1000)),
        ("cm", "cm|centimet(?:er|re)s?", Fraction(1, 100)),
        ("m", "met(?:er|re)s?", Fraction(1)),
        ("km", "km|kilomet(?:er|re)s?", Fraction(1000)),
    ),
    "time": (
        ("ms", "ms|millis(?:econds)?|milliseconds?", Fraction(1, 1000)),
        ("s", "s|secs?|seconds?", Fraction(1)),
        ("min", "mins?|minutes?", Fraction(60)),
        ("h", "h|hrs?|hours?", Fraction(3600)),
        ("d", "days?", Fraction(86400)),
        ("weeks", "weeks?|wks?", Fraction(604800)),
    ),
    "temperature": (
        ("C", "c|degrees? c|celsius|centigrade", Fraction(1)),
        ("F", "f|degrees? f|fahrenheit", Fraction(5, 9)),
        ("K", "k|kelvins?", Fraction(1)),
    ),
    "money": (
        ("cents", "cents?|pence|minor units?", Fraction(1, 100)),
        ("units", "euros?|eur|dollars?|usd|pounds?|gbp|major units?", Fraction(1)),
    ),
    "share": (
        ("percent", "percent|percentage|pct|%", Fraction(1, 100)),
        ("fraction", "fraction|ratio", Fraction(1)),
    ),
    "size": (
        ("bytes", "bytes?", Fraction(1)),
        ("kB", "kb|kilobytes?", Fraction(1000)),
        ("MB", "mb|megabytes?", Fraction(10**6)),
        ("GB", "gb|gigabytes?", Fraction(10**9)),
    ),
}
_ZERO = {"C": Fraction("273.15"), "F": Fraction("459.67") * Fraction(5, 9)}
"""What stands for zero of a unit, in the unit of its kind whose scale is 1."""
_SCALE = {name: (kind, scale) for kind, units in _UNITS.items() for name, _, scale in units}
COMMAS, LIST = "commas", "list"
"""A list as a text with commas, and as a list."""
FORMATS = ("unix seconds", "unix milliseconds", "date-time", "date")
"""Ways to write a moment."""
_LONG = 2
"""Letters that a unit needs to be read in a sentence: `s` and `m` are words of many."""


Named = tuple[str, Mapping[str, Any], frozenset[str]]
"""A value: its name, its schema and its types."""


def units_in(name: str, description: str) -> dict[str, str]:
    """By its kind, each unit that a name (`weight_kg`) or a description (`in grams`) says."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").lower()
    found: dict[str, set[str]] = {}
    for kind, units in _UNITS.items():
        for unit, pattern, _ in units:
            ends = re.search(rf"(?<![a-z])(?:{pattern})$", spaced) and len(spaced) > _LONG
            told = [
                hit[0]
                for hit in re.finditer(rf"(?<![\w])(?:{pattern})(?!\w)", description.lower())
                if len(hit[0]) >= _LONG or re.search(rf"\bin {hit[0]}(?!\w)", description.lower())
            ]
            if ends or told:
                found.setdefault(kind, set()).add(unit)
    return {kind: min(units) for kind, units in found.items() if len(units) == 1}


def unit_gained(was: Named, now: Named) -> str:
    """The conversion to a unit that only the new one of two names says, where it can be but one.

    `amount` that became `amount_cents` is in euros, or was in cents already.
    """
    if was[0] == now[0] or not (was[2] & _NUMBERS and now[2] & _NUMBERS):
        return ""
    mine = units_in(was[0], str(was[1].get("description") or ""))
    found = units_in(now[0], "")
    for kind, unit in found.items():
        others = [name for name, *_ in _UNITS[kind] if name != unit]
        if kind not in mine and len(others) == 1:
            return f"{others[0]}{ARROW}{unit}"
    return ""


_NUMBERS = frozenset(("integer", "number"))
_TEXTLIKE = frozenset(("string", *_NUMBERS))


def conversion_between(was: Named, now: Named) -> str:
    """How a value seems to be converted, by its name, its description and its format."""
    if was[2] & _NUMBERS and now[2] & _NUMBERS:
        mine, theirs = (
            units_in(name, str(schema.get("description") or "")) for name, schema, _ in (was, now)
        )
        shared = [kind for kind in mine if kind in theirs and mine[kind] != theirs[kind]]
        return f"{mine[shared[0]]}{ARROW}{theirs[shared[0]]}" if len(shared) == 1 else ""
    lists = [_list_as(schema, kinds) for _, schema, kinds in (was, now)]
    if set(lists) == {COMMAS, LIST}:
        return f"{lists[0]}{ARROW}{lists[1]}"
    first, second = _format_of(*was), _format_of(*now)
    if first and second and first != second and was[2] | now[2] <= _TEXTLIKE:
        return f"{first}{ARROW}{second}"
    return ""


def _list_as(schema: Mapping[str, Any], kinds: frozenset[str]) -> str:
    """How a value writes a list; "" where it says nothing of one."""
    if kinds == {"array"}:
        return LIST
    told = str(schema.get("description") or "").lower()
    return COMMAS if kinds == {"string"} and re.search(r"\b(?:commas?|csv)\b", told) else ""


def _format_of(name: str, schema: Mapping[str, Any], kinds: frozenset[str]) -> str:
    """How a value writes a moment; "" where it is none."""
    form, text = schema.get("format"), str(schema.get("description") or "").lower()
    if kinds == {"string"}:
        told = "date" if re.search(r"\byyyy-mm-dd(?![\w-]|.?hh)", text) else ""
        return str(form) if form in FORMATS else told
    named = words(name)
    is_moment = {"at", "time", "timestamp", "date"} & set(named) or re.search(
        r"\b(?:unix|epoch)\b", text
    )
    if kinds <= _NUMBERS and kinds and is_moment:
        return "unix milliseconds" if "milli" in text or "ms" in named else "unix seconds"
    return ""


def reversed_way(how: str) -> str:
    """The conversion back."""
    before, _, after = how.partition(ARROW)
    return f"{after}{ARROW}{before}"


def conversions() -> Iterator[str]:
    """Every conversion that a mapping may name."""
    for one, (kind, _) in _SCALE.items():
        yield from (
            f"{one}{ARROW}{other}"
            for other, (its, _) in _SCALE.items()
            if its == kind and other != one
        )
    yield from (f"{one}{ARROW}{other}" for one in FORMATS for other in FORMATS if one != other)
    yield from (f"{COMMAS}{ARROW}{LIST}", f"{LIST}{ARROW}{COMMAS}")


def converted(value: Any, how: str) -> Any:
    """A value in another unit or format; as it is where it is none that has one."""
    before, _, after = how.partition(ARROW)
    if before in _SCALE and after in _SCALE:
        return _scaled(value, before, after)
    if before == COMMAS and isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if before == LIST and isinstance(value, list):
        return ",".join(map(as_text, value))
    moment = _moment(value, before)
    return value if moment is None else _written(moment, after)


def _scaled(value: Any, before: str, after: str) -> Any:
    """A number in another unit, exactly where a float can be; one in a text stays a text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    try:
        plain = Fraction(str(value)) * _SCALE[before][1] + _ZERO.get(before, 0)
        number = (plain - _ZERO.get(after, 0)) / _SCALE[after][1]
    except (ValueError, OverflowError):
        return value
    made = number.numerator if number.denominator == 1 else float(number)
    return str(made) if isinstance(value, str) else made


def _moment(value: Any, form: str) -> datetime | None:
    try:
        if form.startswith("unix"):
            number = float(value)
            return datetime.fromtimestamp(number / (1000 if "milli" in form else 1), UTC)
        moment = datetime.fromisoformat(value)
    except (ValueError, TypeError, OverflowError, OSError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _written(moment: datetime, form: str) -> Any:
    if form == "date":
        return moment.date().isoformat()
    if form == "date-time":
        return moment.isoformat().replace("+00:00", "Z")
    seconds = moment.timestamp() * (1000 if "milli" in form else 1)
    return int(seconds) if seconds.is_integer() else seconds
