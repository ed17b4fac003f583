"""Whether an answer says what a check of one's own tools wants: a text, a number, a date."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime

from toolshift.core.reading import bare, fold

_PATTERN = re.compile(r"[\\^$*+?{}\[\]|()]")
_NUMBER = r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_NUMBERS = re.compile(rf"(?<![\w.,-]){_NUMBER}(?!\w|-\d|[.,]\d)")
_DATES = re.compile(
    r"(?<![\w-])\d{4}-\d\d-\d\d(?!\w|-)|"
    r"\b\d{1,2}(?:st|nd|rd|th)? (?:of )?[A-Za-z]{3,9},? \d{4}\b|"
    r"\b[A-Za-z]{3,9} \d{1,2}(?:st|nd|rd|th)?,? \d{4}\b"
)
_FORMS = ("%Y-%m-%d", "%d %B %Y", "%d %b %Y", "%B %d %Y", "%b %d %Y")
_NOT = re.compile(
    r"(\b(not|never|neither|nor|no longer|without|rather than|instead of|ain't)|n't)"
    r"(?: (?!but\b|however\b|only\b)\w+){0,4} $",
    re.IGNORECASE,
)
_LIST_BEFORE = re.compile(r"(\beither|\bor|(?<!\S)[a-z]+(/[a-z]+)*/) ?$", re.IGNORECASE)
_LIST_AFTER = re.compile(
    r" ?(?:(?:, ?\w[\w.-]*)*,? ?\bor\b(?! (?:else|more)\b)|/ ?[a-z]+)", re.IGNORECASE
)


def says(answer: str, wanted: str) -> bool:
    """Whether an answer says what is wanted, once at least neither negated nor among alternatives.

    Args:
        answer: what the agent said.
        wanted: a regular expression where it has a sign of one, which is searched for as it is;
            else a number, a date (`2026-05-03`) or words, compared as such, whatever their case.

    Returns:
        False for a text without it, and where each mention is negated or one of several.
    """
    if _PATTERN.search(wanted):
        forms = dict.fromkeys((answer, fold(answer), bare(answer)))
        return any(_stands(form, *m.span()) for form in forms for m in re.finditer(wanted, form))
    text = bare(answer)
    return any(_stands(text, start, end) for start, end in _places(text, bare(wanted).strip()))


def _places(text: str, wanted: str) -> Iterator[tuple[int, int]]:
    """Where a text has the number, the date or the words."""
    day = _date(wanted)
    if day:
        yield from (m.span() for m in _DATES.finditer(text) if _date(m[0]) == day)
    elif re.fullmatch(_NUMBER, wanted) and not re.match(r"-?0\d", wanted):
        value = _number(wanted)
        yield from (m.span() for m in _NUMBERS.finditer(text) if _number(m[0]) == value)
    else:
        words = r"\s+".join(map(re.escape, wanted.split()))
        found = re.finditer(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE)
        yield from (match.span() for match in found)


def _stands(text: str, start: int, end: int) -> bool:
    """Whether what stands there is said: not negated, and not one of several."""
    before, after = text[:start], text[end:]
    listed = _LIST_BEFORE.search(before) or _LIST_AFTER.match(after)
    return not _NOT.search(before) and not listed


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _date(text: str) -> date | None:
    plain = re.sub(r"(?<=\d)(st|nd|rd|th)\b|,|\bof ", "", text)
    for form in _FORMS:
        try:
            return datetime.strptime(plain, form).date()
        except ValueError:
            continue
    return None
