"""Brings figures, dates and times of other languages into the one form that is read.

The names of months and the words for numbers are CLDR's and num2words' (`languages.json`, written
by `studies/answers/languages.py`), so that a grade does not depend on what is installed.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from pathlib import Path

_EAST = re.compile(r"(\d{4})\s?[年년]\s?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日일]")
_DOTTED_HOUR = re.compile(r"(?<![\d.,:])(\d{1,2})(?: ?h ?| ?Uhr |[.:])(\d{2})(?= ?(?:Uhr|uur|h)\b)")
_HOUR_OF = re.compile(r"(?<![\d.,:])(\d{1,2}) h (\d{2})\b(?!\s*min)")
_HOUR_UNIT = re.compile(r"(?<=\d:\d\d) ?(?:Uhr|uur|heures?|godz)\b")
_BESIDE_WORDS = re.compile(r"(?<=\d)(?=[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af])")
_ALSO_BESIDE = re.compile(r"(?<=[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af])(?=\d)")
_ENGLISH = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def in_known_form(text: str) -> str:
    """A text with its figures, dates and times as the grammar of `values` reads them."""
    text = "".join(_figure(sign) for sign in text) if not text.isascii() else text
    text = _EAST.sub(lambda m: f"{m[1]}-{int(m[2]):02}-{int(m[3]):02}", text)
    text = _HOUR_UNIT.sub("", _HOUR_OF.sub(r"\1:\2", _DOTTED_HOUR.sub(r"\1:\2", text)))
    text = _ALSO_BESIDE.sub(" ", _BESIDE_WORDS.sub(" ", text))
    return _dates().sub(_as_english, text)


def _figure(sign: str) -> str:
    """A figure of another script as ours."""
    number = unicodedata.decimal(sign, None)
    return sign if number is None else str(number)


@cache
def _table() -> dict[str, dict[str, list[int]] | dict[str, list[str]]]:
    file = Path(__file__).with_name("languages.json")
    table: dict[str, dict[str, list[int]] | dict[str, list[str]]] = json.loads(
        file.read_text(encoding="utf-8")
    )
    return table


@cache
def _dates() -> re.Pattern[str]:
    """A day, a month by name and perhaps a year, in the order of most languages."""
    names = "|".join(map(re.escape, sorted(_table()["months"], key=len, reverse=True)))
    return re.compile(
        rf"(?<![\w./-])(?P<day>\d{{1,2}})(?:\.|er|ª|º)? (?:de |d')?(?P<month>{names})(?!\w)"
        r"(?:,? (?:de |del )?(?P<year>\d{4}))?",
        re.IGNORECASE,
    )


def _as_english(date: re.Match[str]) -> str:
    months = _table()["months"][date["month"].casefold()]
    if len(months) > 1:  # October in one language and November in another
        return date[0]
    year = f" {date['year']}" if date["year"] else ""
    return f"{date['day']} {_ENGLISH[int(months[0]) - 1]}{year}"


def says_in_words(text: str, number: float) -> bool:
    """Whether a word for a small number in some language stands in a text."""
    words = _table()["number_words"].get(f"{number:g}", [])
    lowered = text.casefold()
    return any(re.search(rf"(?<!\w){re.escape(str(word))}(?!\w)", lowered) for word in words)
