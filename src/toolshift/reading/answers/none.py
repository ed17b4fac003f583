"""Detects answers that the requested value is nobody or nothing: "There is no assignee."."""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolshift.reading.assertion import verdict
from toolshift.reading.options import telling_words
from toolshift.reading.quantity import RequestContext

_I = re.IGNORECASE
_NONE = re.compile(r"(?:nobody|no[ -]?one|none|nothing|nowhere|null|nil|n/a|zero|0)\W*", _I)
_ABSENT = re.compile(
    r"\b(?P<word>nobody|no[ -]one|none|nothing|nowhere|null|nil|n/a)\b|"
    r"\b(?:no|without(?: an?| any)?|(?:does|do|has|have)(?: not|n't) (?:have |got )?(?:an?|any)) "
    r"(?:current |further |single )?(?P<noun>[^\W\d_]{3,})|"
    r"(?:\bnot|n't)(?: (?:yet|been|currently|now|being|be))* (?P<verb>[^\W\d_]{3,})|"
    r"\bun(?P<un>[^\W\d_]{4,}ed)\b",
    _I,
)
_OF_OTHER = re.compile(
    r" (?:but|except|other than|besides|apart from|else|knows?|could|can|would|found|saw|said|"
    r"match(?:es|ed|ing)?|called|named|by|with|was found|turned up|came up|is known)\b",
    _I,
)
"""What stands behind "nobody" where that is not the value: "nobody knows", "nobody but Jo"."""
_LOOKED_FOR = re.compile(r"\b(?:f[io]u?nd|sees?|saw|locat\w+|return\w*|got|shows?)\W+$", _I)
_A_CERTAIN_ONE = re.compile(
    r" (?:called|named|with|by|matching|like|under)\b| [\w-]*\d| (?:was |is )?(?:not )?found\b", _I
)
"""What makes "no ticket" a thing that is not there: "no ticket T-999"."""
_EMPTY = re.compile(
    r"[\"']?([\w -]{1,60})[\"']?\s*[:=]\s*(?:null|none|nobody|\"\"|''|\[\]|\{\}|0|unassigned)"
    r"(?=\W|$)",
    _I,
)
_MAX_SHOWN = 40_000


def is_none(wanted: str) -> bool:
    """Whether the expected answer is a word for nobody or nothing."""
    return bool(_NONE.fullmatch(wanted.strip()))


def says_none(text: str, context: RequestContext) -> bool:
    """Whether a text claims that there is none of what was asked for."""
    return any(verdict(text, *span, False) == "said" for span in _places(text, context))


def _places(text: str, context: RequestContext) -> Iterator[tuple[int, int]]:
    """The places where a text says that there is no value."""
    about = telling_words(context.request)
    shown = context.shown[:_MAX_SHOWN]
    for key in _EMPTY.findall(shown):
        about |= telling_words(key.replace("_", " "))
        about |= _said_of(key.replace("_", " "), shown)
    for match in _ABSENT.finditer(text):
        if match["word"]:
            if not _OF_OTHER.match(text, match.end()):
                yield match.span()
            continue
        if match["noun"] and _is_not_there(text, match):
            continue
        word = match["noun"] or match["verb"] or match["un"]
        if word.casefold()[:5] in about:
            yield match.span()


def _said_of(key: str, shown: str) -> set[str]:
    """The words in the names of tools whose description speaks of an empty field.

    `check_availability`, described as "How many pieces are free", makes "not available" of "free".
    """
    about = re.compile(rf"^(\w+_\w+) .*\b{re.escape(key)}\b", re.M | _I)
    names = about.findall(shown) if len(key) > 2 else []
    return {word for name in names for word in telling_words(name.replace("_", " "))}


def _is_not_there(text: str, match: re.Match[str]) -> bool:
    """Whether a thing was looked for and not found, which does not mean that it has no value."""
    before = text[max(0, match.start() - 20) : match.start()]
    return bool(_LOOKED_FOR.search(before) or _A_CERTAIN_ONE.match(text, match.end()))
