"""Reads text as a careful person would: one folding, and the codes that a text states."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

import msgspec

from toolshift.core.message import CODE

_SIGNS = (
    dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"), "-")
    | dict.fromkeys(map(ord, "\u2018\u2019\u201a\u201b\u2032\u00b4"), "'")
    | dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb"), '"')
    | dict.fromkeys(map(ord, "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad\u180e"))
)
_SPACES = re.compile(r"[^\S\n]+")
_BOXED = re.compile(r"\\(?:boxed|text(?:bf|tt|it)?|mathrm|mathbf)\s*\{([^{}]*)\}")
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|$)", re.IGNORECASE | re.DOTALL)
_ESCAPED = re.compile(r"\\u(?!d[89a-f])([0-9a-f]{4})", re.IGNORECASE)
_LETTER = CODE.pattern[2 : CODE.pattern.index("{")]
_LOOSE = re.compile(rf"(?<![A-Z0-9])({_LETTER}{{4}})\s?-?\s?({_LETTER}{{4}})(?![A-Z0-9])")
_SPELT = re.compile(
    rf"(?<![A-Z0-9])({_LETTER})"
    + rf"(?:[\s,.]{{1,2}}(?:-\s?|DASH\s|HYPHEN\s)?({_LETTER}))" * 7
    + r"(?![A-Z0-9])"
)
"""A code that is spelt letter by letter, as one reads it aloud."""
_SHAPE = re.compile(r"(?<![^\W_])[^\W_]{4}\s?-?\s?[^\W_]{4}(?![^\W_])")
_DISOWNED = re.compile(
    r"\W{0,3}\s*(is|was|are|were|looks|seems)(\s+\w+){0,2}?(n't|\s+not|\s+(wrong|incorrect|false|"
    r"invalid|mistaken|(the|a)\s+(wrong|incorrect|false)))\b",
    re.IGNORECASE,
)
"""What disowns the code before it: "X is definitely the wrong one"."""
_NEGATED = re.compile(
    r"(\bnot|n't|\brather than|\binstead of|\bnever)(\s+(?!but\b|however\b|only\b)\w+){0,3}\s*$",
    re.IGNORECASE,
)


class Stated(msgspec.Struct, frozen=True):
    """A code that a text states, and where.

    Attributes:
        code: as it was shown.
        start: its place in the folded text without markup.
        end: where it ends there.
        negated: the text says that this is not it.
    """

    code: str
    start: int
    end: int
    negated: bool


def fold(text: str) -> str:
    """The text with one form of each sign: NFKC, hyphens, quotes, spaces; nothing invisible.

    Letters that only look alike stay different.
    """
    if text.isascii():
        return _SPACES.sub(" ", text)
    known = unicodedata.normalize("NFKC", text.translate(_SIGNS)).translate(_SIGNS)
    return _SPACES.sub(" ", known)


def spoken(text: str) -> str:
    """The text without thoughts that leaked into it (`<think>...</think>`), JSON escapes read."""
    said = _THOUGHT.sub("", text) if "<" in text else text
    return _ESCAPED.sub(lambda sign: chr(int(sign[1], 16)), said) if "\\u" in said else said


def bare(text: str) -> str:
    """The folded text without thoughts and markup: emphasis, backticks, boxes and brackets."""
    text = _BOXED.sub(r"\1", fold(spoken(text))).replace("$", " ")
    return re.sub(r"[\[\]{}<>()]", " ", re.sub(r"[*_`\\]", "", text))


def codes_in(text: str, shown: Collection[str] = ()) -> list[Stated]:
    """The codes that a text states, in order.

    The form of a code counts in any case. A code with a space for its hyphen, or none, counts
    where it can only be a code that was shown.

    Args:
        text: the text; it is read without markup (`bare`).
        shown: the codes that were shown.

    Returns:
        The codes with their places, a code once for each time that it stands there.
    """
    text = bare(text)
    found = []
    for match in _LOOSE.finditer(text.upper() if text.isascii() else _upper(text)):
        code = f"{match[1]}-{match[2]}"
        if match[0] == code or code in shown:
            before = text[
                max(0, match.start() - 80) : match.start()
            ]  # a clause, or it is quadratic
            after = text[match.end() : match.end() + 80]
            negated = bool(_NEGATED.search(before) or _DISOWNED.match(after))
            found.append(Stated(code, match.start(), match.end(), negated))
    return found


def disguised_codes(text: str, shown: Collection[str]) -> tuple[set[str], set[str]]:
    """Codes that a person reads in a text and `codes_in` does not.

    Args:
        text: the text; it is read without markup (`bare`).
        shown: the codes that were shown.

    Returns:
        Codes that were shown and are spelt letter by letter; words that letters of other scripts
        make look like a code.
    """
    plain = bare(text)
    letters = ("".join(match.groups()) for match in _SPELT.finditer(_upper(plain)))
    spelt = {code for word in letters if (code := f"{word[:4]}-{word[4:]}") in shown}
    return spelt, {word for word in _SHAPE.findall(plain) if _imitates(word)}


def _imitates(word: str) -> bool:
    """Whether letters of another script stand among Latin ones and digits, or in capitals."""
    if word.isascii() or not any(
        c.isalpha() and "LATIN" not in unicodedata.name(c, "") for c in word
    ):
        return False
    return any(c.isascii() and c.isalnum() for c in word) or ("-" in word and word.isupper())


def _upper(text: str) -> str:
    """Upper case letter by letter, so that places stay the same."""
    return "".join(c.upper() if len(c.upper()) == 1 else c for c in text)
