"""Writes results out and reads them back: one writer and one reader per form."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from toolshift.core import codecs
from toolshift.core.tool import Field, Result
from toolshift.core.value_shape import moved
from toolshift.core.values import as_json


@dataclass(frozen=True, slots=True)
class Form:
    """A way to write results. `read(write(data)) == data` for every record or list of records."""

    write: Callable[[Any], str]
    read: Callable[[str], Any]


FORMS: dict[str, Form] = {
    "json": Form(as_json, msgspec.json.decode),
    "yaml": Form(codecs.write_yaml, codecs.read_yaml),
    "xml": Form(codecs.write_xml, codecs.read_xml),
    "csv": Form(codecs.write_csv, codecs.read_csv),
    **{
        name: Form(partial(codecs.write_csv, mark=mark), partial(codecs.read_csv, mark=mark))
        for name, mark in (("csv_semicolon", ";"), ("csv_tab", "\t"))
    },
    "pairs": Form(codecs.write_pairs, codecs.read_pairs),
    "table": Form(codecs.write_table, codecs.read_table),
    "prose": Form(codecs.write_prose, codecs.read_prose),
    "text": Form(str, lambda text: text),
}


def register(name: str, write: Callable[[Any], str], read: Callable[[str], Any]) -> None:
    """Adds a form. Errors stay JSON in every form, as behind most gateways."""
    FORMS[name] = Form(write, read)


def form(name: str) -> Form:
    """The form of this name."""
    return FORMS[name]


NOTICE = "\nNotice: "
_DIGITS = re.compile(r"-?\d+")


def show(result: Result) -> str:
    """The text of a result as an agent sees it."""
    text = FORMS[result.form if result.ok else "json"].write(result.data)
    return f"{text}{NOTICE}{result.notice}" if result.notice else text


def read(text: str, result: Result) -> Any:
    """Reads the data back from the shown text."""
    body = text.removesuffix(f"{NOTICE}{result.notice}") if result.notice else text
    return form(result.form if result.ok else "json").read(body)


def records(text: str, result: Result) -> Any:
    """Reads a record or a list of them back from the shown text, out of what a list stands in."""
    data = read(text, result)
    for key in result.inside if result.ok else ():
        data = data.get(key) if isinstance(data, dict) else None
    return [] if data is None and result.inside and result.ok else data


def facts(record: object, fields: tuple[Field, ...]) -> dict[str, Any]:
    """Reads the facts of one shown record; a missing or null value gives none."""
    stated = {}
    for field in fields:
        value = record
        for key in field.path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            continue
        if field.type != "string":
            value = _number(value, field)
        elif field.minutes and isinstance(value, str):
            value = moved(value, -field.minutes)
        stated[field.fact] = value
    return stated


def _number(value: Any, field: Field) -> float | int:
    try:
        if field.scale == 1:
            return _exact(value, field.type == "integer")
        number = round(float(value) / field.scale, 6)
    except (TypeError, ValueError):
        raise ValueError(
            f"the field {'.'.join(field.path)!r} is declared as type={field.type!r}, and its value "
            f"is {value!r:.60}"
        ) from None
    return int(number) if field.type == "integer" else number


def _exact(value: Any, whole: bool) -> float | int:
    """Keeps all digits of a number: an id of 18 digits, a coordinate with seven places."""
    number = float(value)
    digits = isinstance(value, int) or (isinstance(value, str) and _DIGITS.fullmatch(value))
    if digits and (whole or int(value) != number):
        return int(value)
    return int(round(number, 6)) if whole else number
