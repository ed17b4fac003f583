"""Results as the lock declares them, from what comes back today.

A result is read in whatever form it has (`core.codecs`), its values are laid flat, and each
declared value is looked for by the words of its key. It is written as JSON in the declared form
only where every value has exactly one place, no unit has changed and no key says the opposite; else
it stays as it came.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolshift.core.codecs import leaves
from toolshift.core.render import FORMS, NOTICE
from toolshift.drift.effects import contradict
from toolshift.shifts.release.match import words

Keys = tuple[str, ...]
_UNITS = frozenset(
    words(
        "eur usd gbp jpy cents cent km m cm metres meters miles min minutes s sec seconds ms h "
        "hours kg g grams mg mcg ng micrograms lb percent c celsius f fahrenheit kelvin"
    )
)
_OF_THE_CALL = frozenset(words("error errors fault message detail details reason warning note"))
_FORMS = ("xml", "table", "csv", "pairs", "prose", "yaml")
_LARGEST = 64 * 1024
_OPENINGS: Mapping[str, str | tuple[str, ...]] = {
    "xml": "<",
    "table": "|",
    "csv": ("field,value\n", "#,"),
    "prose": ("The ", "There "),
}
"""How a text of a form begins, where its reader would find something in other texts too."""
_WHOLE = re.compile(r"-?\d+")


def restored(text: str, declared: Mapping[str, Any]) -> str:
    """A result in the declared form.

    Args:
        text: as it came, a notice of the server below it or not.
        declared: the JSON Schema of the result in the lock: of a record, of a list of records, or
            of an object whose one value is such a list.

    Returns:
        JSON in the declared form, the notice below it; the text as it came where it has that form,
        is an error, or cannot be brought to it with certainty.
    """
    body, mark, notice = text.partition(NOTICE)
    many, envelope, record = _record_of(declared)
    wanted = _wanted(record)
    if not wanted or not body or len(body) > _LARGEST:
        return text
    for data in _readings(body):
        rows = data if isinstance(data, list) else [data]
        if all(isinstance(row, dict) and wanted.keys() <= row.keys() for row in rows):
            if body[0] in "[{":
                return text
        elif isinstance(data, list) != many:
            continue
        found = [_converted(row, wanted) for row in rows]
        if found and all(each is not None for each in found):
            whole: Any = found if many else found[0]
            whole = {envelope: whole} if envelope else whole
            return f"{_json(whole)}{mark}{notice}"
    return text


def _record_of(declared: Mapping[str, Any]) -> tuple[bool, str, Mapping[str, Any]]:
    """Whether a list is declared, the key that it stands under, and the schema of a record."""
    if declared.get("type") == "array":
        return True, "", _mapping(declared.get("items"))
    known = _mapping(declared.get("properties"))
    if len(known) == 1:
        ((key, inner),) = known.items()
        if _mapping(inner).get("type") == "array":
            return True, key, _mapping(inner.get("items"))
    return False, "", declared


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _wanted(record: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The declared values of a record that is flat; none for another."""
    known = {key: _mapping(inner) for key, inner in _mapping(record.get("properties")).items()}
    deep = any(each.get("type") in ("object", "array") for each in known.values())
    return {} if deep else known


def _readings(body: str) -> Iterator[Any]:
    """The data of a text, in each form in which it can be read."""
    is_json = body[0] in "[{" and not body.startswith("[records=")
    for name in ("json",) if is_json else _FORMS:
        if not body.startswith(_OPENINGS.get(name, "")):
            continue
        try:
            yield FORMS[name].read(body)
        except Exception:  # noqa: S112 - readers of text that is of another form may fail anyhow
            continue


def _converted(row: Any, wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """A record under its declared keys; None where that is not certain."""
    if not isinstance(row, dict) or "error" in row:
        return None
    flat = {path: value for path, value in leaves(row) if not isinstance(value, list | dict)}
    places = _places([*flat], [*wanted]) if len(flat) == len(wanted) else None
    if places is None:
        return None
    found = {key: _typed(flat[path], wanted[key].get("type")) for key, path in places.items()}
    return None if _WRONG in found.values() else {key: found[key] for key in wanted}


def _places(paths: Sequence[Keys], wanted: Sequence[str]) -> dict[str, Keys] | None:
    """The path of each declared value, by the words that only the two share."""
    said = {path: frozenset(word for key in path for word in words(key)) for path in paths}
    shared = frozenset.intersection(*said.values()) if len(said) > 1 else frozenset()
    told = {path: some - shared for path, some in said.items()}
    asked = {key: frozenset(words(key)) for key in wanted}
    found: dict[str, Keys] = {}
    for key, want in asked.items():
        near = [path for path in paths if told[path] & want]
        best = max((len(told[path] & want) for path in near), default=0)
        tops = [path for path in near if len(told[path] & want) == best]
        if len(tops) == 1 and tops[0] not in found.values():
            found[key] = tops[0]
        elif tops:
            return None
    left = [path for path in paths if path not in found.values()]
    rest = [key for key in wanted if key not in found]
    if len(left) != len(rest) or len(rest) > 1:
        return None
    if rest and (not found or told[left[0]] & _OF_THE_CALL - asked[rest[0]]):
        return None  # of one value alone, or of words about the call, nothing says what it is
    found.update(zip(rest, left, strict=True))
    same = all((asked[key] & _UNITS) == (said[path] & _UNITS) for key, path in found.items())
    opposed = any(contradict(key, " ".join(path)) for key, path in found.items())
    return found if same and not opposed and not _rivalled(found, told, asked) else None


def _rivalled(
    found: Mapping[str, Keys],
    told: Mapping[Keys, frozenset[str]],
    asked: Mapping[str, frozenset[str]],
) -> bool:
    """Whether a place fits another declared value as well as its own."""
    return any(
        len(told[path] & want) >= len(told[path] & asked[key]) > 0
        for key, path in found.items()
        for other, want in asked.items()
        if other != key
    )


_WRONG = object()
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


def _typed(value: Any, kind: Any) -> Any:
    """A value of the declared type, as far as its text is one."""
    if value is None or kind not in ("string", "boolean", "number", "integer"):
        return value
    if kind == "string":
        return value if isinstance(value, str) else _WRONG
    if kind == "boolean":
        return _BOOLEANS.get(str(value).lower(), _WRONG)
    return _WRONG if isinstance(value, bool) else _number(value, kind == "integer")


def _number(value: Any, whole: bool) -> Any:
    """A number with all of its digits: a large id would not be the same as a float."""
    if isinstance(value, int) or (isinstance(value, str) and _WHOLE.fullmatch(value)):
        return int(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return _WRONG
    if not math.isfinite(number):
        return _WRONG
    return int(number) if whole and number.is_integer() else number
