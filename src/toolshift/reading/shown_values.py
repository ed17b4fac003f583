"""Whether a value was shown, in whatever form: "3 Dec 2026" shows 2026-12-03, 1,200 shows 1200."""

from __future__ import annotations

import re

from toolshift.reading.text import fold
from toolshift.reading.values import Value, value_of, values_in

_GAP = re.compile(r"[\s_]+")
MAX_READ = 50_000
"""Characters of what was shown that are searched for other forms; the last ones count."""


def is_shown(value: str, shown: str) -> bool:
    """Whether a text was shown: as it is, in other case or spacing, or as the same value."""
    read = shown[-MAX_READ:]
    if value.casefold() in shown.casefold() or _even(value) in _even(read):
        return True
    sought = value_of(fold(value).strip())
    return bool(sought) and all(_is_among(one, values_in(fold(read))) for one in sought)


def is_shown_number(number: float, shown: str) -> bool:
    """Whether a number was shown, with whatever separators, or in words."""
    if re.search(rf"(?<![\w.]){re.escape(f'{number:g}')}(?!\w|\.\d)", shown):
        return True
    read = fold(shown[-MAX_READ:])
    return any(
        value.kind == "number" and float(number) in value.readings and _has_figures(value, read)
        for value in values_in(read)
    )


def _has_figures(value: Value, text: str) -> bool:
    """Whether a value is not the word "no", which is read as 0 too."""
    return 0.0 not in value.readings or text[value.start : value.end].strip().lower() in (
        "0",
        "zero",
    )


def _is_among(value: Value, others: list[Value]) -> bool:
    return any(value.same(other) for other in others)


def _even(text: str) -> str:
    """A text in one case, with one form of each sign, and one space between words."""
    return _GAP.sub(" ", fold(text).casefold()).strip()
