"""Detects corrections in a text: "It is 5. Sorry, I meant 4.", "Ada, or rather Alan".

What follows the sign of a correction has to stand where the first one stood: alone, or in the same
words. "There are 4 copies. Actually, 2 are on loan" takes nothing back.
"""

from __future__ import annotations

import re

from toolshift.reading.assertion import sentence
from toolshift.reading.values import Value, values_in
from toolshift.reading.words import key

_I = re.IGNORECASE
_REACH = 200
"""How far behind a place its correction is looked for, in characters."""
_STRONG = (
    r"(?:no,? (?:wait|sorry)|wait,? no|scratch that|strike that|correction|"
    r"i mean(?:t)?(?: to say)?|"
    r"make that|or rather|edit(?=:)|i misspoke|let me correct (?:that|this|myself))"
)
_SIGN = re.compile(
    rf"\b(?:{_STRONG}|(?:sorry|actually|wait|oops|my mistake|my bad|apologies))\b"
    rf"(?:[\s,.:;!-]+(?:{_STRONG}|no|sorry|actually)\b)*[\s,.:;!-]*",
    _I,
)
_LEAD = re.compile(
    r"(?:(?:it|that|this)(?:'s| is| was| should (?:be|read))|there (?:are|is|were|was)|"
    r"(?:the )?(?:correct|right|actual|true) (?:\w+ )?(?:is|are))\s*",
    _I,
)
_GAP = re.compile(r"[^.!?\n]*[.!?\n]{0,3}[\s)\"'-]*")
"""What may stand between the end of a place and the sign: the rest of its sentence."""


def is_corrected(text: str, start: int, end: int, value: Value | None = None) -> bool:
    """Whether the text corrects what it says at a place."""
    after = text[end : end + _REACH]
    sign = _SIGN.search(after)
    if not sign or not _GAP.fullmatch(after, 0, sign.start()):
        return False
    between = values_in(after[: sign.start()])
    if value and any(other.kind == value.kind for other in between):
        return False
    strong = bool(re.search(_STRONG, sign[0], _I))
    first, last = sentence(text, start, end)
    before, behind = key(text[first:start]), key(after[: min(sign.start(), last - end)])
    begin = end + sign.end()
    rest = text[begin : sentence(text, begin, begin)[1]].rstrip(" .!\"')")
    lead = _LEAD.match(rest)
    if lead:
        rest = rest[lead.end() :]
    elif before and key(rest).startswith(before + " "):
        rest = rest.split(maxsplit=len(before.split()))[-1]
    elif not strong and value is None:
        return False
    if value is None:
        return _is_another_name(text[start:end], rest, strong)
    return _is_another_value(value, rest, behind)


def _is_another_value(value: Value, rest: str, behind: str) -> bool:
    """Whether a text is another value of the kind, alone or with the words behind the first."""
    values = values_in(rest)[:1]
    if not values or values[0].start or values[0].kind != value.kind or values[0].same(value):
        return False
    return key(rest[values[0].end :]) in ("", behind)


def _is_another_name(own: str, rest: str, strong: bool) -> bool:
    """Whether a text is another name and nothing else; a state only behind a clear sign."""
    words = rest.split()
    same = key(rest) in (key(own), "it", "that", "this")
    if same or not 0 < len(words) <= len(own.split()) + 1:
        return False
    return words[0][:1].isupper() if own[:1].isupper() else strong
