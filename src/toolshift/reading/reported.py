"""Tells what a message says from what it only reports: quotations and fields of shown results.

"It opens at 08:30. Its note reads 'no record'." is an answer: the denial stands in the data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

_QUOTED = re.compile(r"\"([^\"\n]{2,300})\"|`([^`\n]{2,300})`|(?<!\w)'([^'\n]{2,300})'(?!\w)")
_WORD = re.compile(r"[^\W_]+")
_BETWEEN = r"(?:[^\w.!?]+[^\W_]+){0,3}?[^\w.!?]+"
"""Up to three words of a sentence, as in "the field `closing` is set to null"."""
_SAID = {None: ("null", "none"), True: ("true",), False: ("false",)}
"""Literals as JSON and Python write them."""
_MAX_READ, _MAX_FIELDS, _MAX_RESULTS = 40_000, 400, 40


class ShownResults:
    """The results that were shown, as what a message may report.

    Args:
        shown: the results as text, one after the other.
    """

    def __init__(self, shown: str) -> None:
        results = list(_results(shown[-_MAX_READ:]))[-_MAX_RESULTS:]
        self._results = [(_even(text), _fields(data)) for text, data in results]

    def reports_literal(self, text: str) -> bool:
        """Whether a text says of a shown field that it is null, true or false, as it is."""
        return any(
            _said(key, value).search(text)
            for _, fields in self._results
            for key, value in fields
            if value is None or isinstance(value, bool)
        )

    def without_reports(self, text: str) -> str:
        """A text without what it reports of a result beside another value of that result.

        Where no value of the same result is stated, the quotation may be all that is said, as of
        an error, and stays.
        """
        for words, fields in self._results:
            spans = [*_quotations(text, words), *_fields_said(text, fields)]
            rest = _cut(text, spans)
            if spans and any(_stated(value, rest) for _, value in fields):
                text = rest
        return text

    def without_named(self, text: str, request: str) -> str:
        """A text without what it reports of shown fields that the request names: the answer."""
        asked = {*_WORD.findall(request.casefold())}
        for _, fields in self._results:
            named = [one for one in fields if _parts(one[0]) and asked.issuperset(_parts(one[0]))]
            spans = list(_fields_said(text, named))
            for _, value in named:
                spans += _quotations(text, _even(str(value)))
            text = _cut(text, spans)
        return text


def _results(shown: str) -> Iterator[tuple[str, Any]]:
    """Each result as text, and what it holds where it is JSON; else a line is a result."""
    read, start = json.JSONDecoder().raw_decode, 0
    while start < len(shown):
        end = shown.find("\n", start)
        end, data = (len(shown) if end < 0 else end), None
        if shown[start] in "{[":
            with suppress(ValueError, RecursionError):
                data, end = read(shown, start)
        yield shown[start:end], data
        start = end + 1


def _fields(data: Any) -> list[tuple[str, Any]]:
    """The fields of a result, at whatever depth, with plain values."""
    found: list[tuple[str, Any]] = []
    left = [data]
    while left and len(found) < _MAX_FIELDS:
        one = left.pop()
        if isinstance(one, dict):
            found += [(key, value) for key, value in one.items() if not _is_deep(value)]
            left += [value for value in one.values() if _is_deep(value)]
        elif isinstance(one, list):
            left += one
    return found


def _parts(key: str) -> list[str]:
    return _WORD.findall(key.casefold())


def _is_deep(data: Any) -> bool:
    return isinstance(data, dict | list)


def _quotations(text: str, words: str) -> Iterator[tuple[int, int]]:
    """Where a text quotes a result, in quotation marks or as JSON."""
    read, end = json.JSONDecoder().raw_decode, 0
    for match in re.finditer(r"[{\[]", text):
        if match.start() < end:
            continue
        try:
            _, end = read(text, match.start())
        except (ValueError, RecursionError):
            continue
        if _holds(words, text[match.start() : end]):
            yield match.start(), end
    for match in _QUOTED.finditer(text):
        if _holds(words, match[1] or match[2] or match[3]):
            yield match.span()


def _fields_said(text: str, fields: list[tuple[str, Any]]) -> Iterator[tuple[int, int]]:
    """Where a text says what a field holds, by name and value."""
    for key, value in fields:
        if isinstance(value, str | bool) or value is None:
            yield from (match.span() for match in _said(key, value).finditer(text))


def _said(key: str, value: Any) -> re.Pattern[str]:
    name = _loose(key)
    words = _SAID[value] if value is None or isinstance(value, bool) else (value,)
    said = "|".join(filter(None, map(_loose, words)))
    return re.compile(
        rf"(?<!\w){name}{_BETWEEN}(?:{said})(?!\w)" if name and said else "(?!)", re.I
    )


def _loose(text: str) -> str:
    """A pattern of the words of a text, whatever stands between them."""
    return r"[\W_]+".join(map(re.escape, _WORD.findall(text)))


def _stated(value: Any, text: str) -> bool:
    """Whether a text states a value: a number, or a text by its words."""
    if isinstance(value, bool) or value is None:
        return False
    words = _loose(str(value))
    return bool(words) and re.search(rf"(?<!\w){words}(?!\w)", text, re.I) is not None


def _holds(words: str, quoted: str) -> bool:
    said = _even(quoted)
    return bool(said.strip()) and said in words


def _even(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _cut(text: str, spans: list[tuple[int, int]]) -> str:
    kept, at = [], 0
    for start, end in sorted(spans):
        if start >= at:
            kept.append(text[at:start])
        at = max(at, end)
    return "".join((*kept, text[at:]))
