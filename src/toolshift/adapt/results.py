"""Converts results of today to the form that the lock declares.

A result is read in whatever form it has (`core.codecs`) and written as JSON under the declared
keys. That is done only where it is one flat record or a list of them, it has as many values as are
declared, and each key is the same words as one declared key (`same_words`); else it stays as it
came. No value is changed: of texts without types, such as CSV, one is read as its declared type.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolshift.adapt.same_words import same_spelling, same_words
from toolshift.core.render import FORMS, NOTICE

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
    """A result in the declared form."""
    body, mark, notice = text.partition(NOTICE)
    many = declared.get("type") == "array"
    wanted = _wanted(_mapping(declared.get("items")) if many else declared)
    if not wanted or not body or len(body) > _LARGEST:
        return text
    for data, typed in _readings(body):
        if isinstance(data, list) != many:
            continue
        rows = data if isinstance(data, list) else [data]
        if typed and all(isinstance(row, dict) and wanted.keys() <= row.keys() for row in rows):
            return text
        records = [_converted(row, wanted, typed) for row in rows]
        if records and all(record is not None for record in records):
            return f"{_json(records if many else records[0])}{mark}{notice}"
    return text


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _wanted(record: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The declared values of a record that is flat; none for another."""
    known = {key: _mapping(inner) for key, inner in _mapping(record.get("properties")).items()}
    deep = any(schema.get("type") in ("object", "array") for schema in known.values())
    return {} if deep else known


def _readings(body: str) -> Iterator[tuple[Any, bool]]:
    """The data of a text, in each form in which it can be read, and whether that has types."""
    is_json = body[0] in "[{" and not body.startswith("[records=")
    for name in ("json",) if is_json else _FORMS:
        if not body.startswith(_OPENINGS.get(name, "")):
            continue
        try:
            yield FORMS[name].read(body), is_json
        except Exception:  # noqa: S112 - readers of text that is of another form may fail anyhow
            continue


def _converted(
    row: Any, wanted: Mapping[str, Mapping[str, Any]], typed: bool
) -> dict[str, Any] | None:
    """A record under its declared keys; None where that is not certain."""
    if not isinstance(row, dict) or len(row) != len(wanted):
        return None
    converted: dict[str, Any] = {}
    used: set[str] = set()
    for key, schema in wanted.items():
        kind = schema.get("type")
        places = [name for name in row if isinstance(name, str) and _same_key(key, name, kind)]
        if len(places) != 1 or places[0] in used or isinstance(row[places[0]], list | dict):
            return None
        used.add(places[0])
        value = row[places[0]]
        converted[key] = _typed(value, kind)
        if converted[key] is _WRONG or (typed and converted[key] is not value):
            return None  # of JSON no value is changed, and one of another type is another value
    return converted


def _same_key(one: str, other: str, kind: Any) -> bool:
    return same_words(one, other, versions=False) if kind == "string" else same_spelling(one, other)


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
    """Keeps all digits of a number: a large id would change as a float."""
    if isinstance(value, int) or (isinstance(value, float) and not whole and math.isfinite(value)):
        return value
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return _WRONG
    if not math.isfinite(number):
        return _WRONG
    return int(number) if whole and number.is_integer() else number
