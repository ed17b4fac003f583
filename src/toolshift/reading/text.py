"""Normalises text, and finds the codes that it states."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Collection

import msgspec

from toolshift.core.message import CODE
from toolshift.reading.harmony import for_the_user
from toolshift.reading.words import SETS_ASIDE

_SIGNS = (
    dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"), "-")
    | dict.fromkeys(map(ord, "\u2018\u2019\u201a\u201b\u2032\u00b4"), "'")
    | dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb"), '"')
    | dict.fromkeys(map(ord, "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad\u180e"))
)
_SPACES = re.compile(r"[^\S\n]+")
_BOXED = re.compile(r"\\(?:boxed|text(?:bf|tt|it)?|mathrm|mathbf)\s*\{([^{}]*)\}")
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|$)", re.IGNORECASE | re.DOTALL)
_THOUGHT_BEFORE = re.compile(r"^.*</(?:think|thinking|reasoning)>", re.IGNORECASE | re.DOTALL)
"""A thought whose opening tag stands in the prompt, as many chat templates have it."""
_THOUGHT_LINES = re.compile(
    r"(?:^|\n)[ \t]*<(think|thinking|reasoning)>.*?(?:</\1>|$)", re.IGNORECASE | re.DOTALL
)
_THOUGHT_LINES_BEFORE = re.compile(
    r"^.*</(?:think|thinking|reasoning)>[ \t]*(?:\n|$)", re.IGNORECASE | re.DOTALL
)
_ESCAPED = re.compile(r"\\u(?!d[89a-f])([0-9a-f]{4})", re.IGNORECASE)
_LETTER = CODE.pattern[2 : CODE.pattern.index("{")]
_LOOSE = re.compile(rf"(?<![A-Z0-9])({_LETTER}{{4}})\s?-{{0,2}}\s?({_LETTER}{{4}})(?![A-Z0-9])")
_NUMBERS = ("TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")
_DIGIT = dict(zip(_NUMBERS, "23456789", strict=True))
_LETTER_ALOUD = rf"({_LETTER}|{'|'.join(_DIGIT)})"
_AS_IN = r"(?:\s(?:AS\sIN|FOR|LIKE)\s[A-Z]+)?"
_PAUSE = r"(?:[\s,./-]|\b(?:DASH|HYPHEN|MINUS)\b){1,8}?"
_SPELT = re.compile(
    rf"(?<![A-Z0-9]){_LETTER_ALOUD}" + rf"{_AS_IN}{_PAUSE}{_LETTER_ALOUD}" * 7 + r"(?![A-Z0-9])"
)
"""A code that is spelt letter by letter, as one reads it aloud: "Q dash 7", "B as in Bravo"."""
_SHAPE = re.compile(r"(?<![^\W_])[^\W_]{4}\s?-?\s?[^\W_]{4}(?![^\W_])")
_DISOWNED = re.compile(
    r"\W{0,3}\s*(is|was|are|were|looks|seems)(\s+\w+){0,2}?(n't|\s+not|\s+(wrong|incorrect|false|"
    r"invalid|mistaken|(the|a)\s+(wrong|incorrect|false)))\b",
    re.IGNORECASE,
)
"""Words that deny the code before them: "X is definitely the wrong one"."""
_NEGATED = re.compile(
    rf"({SETS_ASIDE})(\s+(?!but\b|however\b|only\b)\w+){{0,3}}\s*$",
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
    """Normalises the signs of a text: NFKC, hyphens, quotes, spaces; removes invisible ones.

    Letters that only look alike stay different.
    """
    if text.isascii():
        return _SPACES.sub(" ", text)
    known = unicodedata.normalize("NFKC", text.translate(_SIGNS)).translate(_SIGNS)
    return _SPACES.sub(" ", known)


def spoken(text: str) -> str:
    """Removes leaked thoughts (`<think>...</think>`) from a text, and decodes its escapes.

    Of a reply in Harmony (`<|channel|>final<|message|>...`) it is what is for the user. Escapes are
    those of JSON (`\\u2011`) and of HTML (`&#45;`, also where it was escaped twice).
    """
    text = for_the_user(text)
    words = _THOUGHT_BEFORE.sub("", _THOUGHT.sub("", text)) if "<" in text else text
    words = html.unescape(html.unescape(words)) if "&" in words else words
    return _ESCAPED.sub(lambda sign: chr(int(sign[1], 16)), words) if "\\u" in words else words


def without_thoughts(text: str) -> str:
    """The text without thoughts that fill lines of it; what stands inside a line stays."""
    if "<" not in text:
        return text
    return _THOUGHT_LINES_BEFORE.sub("", _THOUGHT_LINES.sub("\n", text))


def bare(text: str) -> str:
    """The folded text without thoughts and markup: emphasis, backticks, boxes and brackets."""
    return re.sub(r"[()]", " ", with_parentheses(text))


def with_parentheses(text: str) -> str:
    """The same as `bare`, sign for sign, with its round parentheses left in."""
    text = _BOXED.sub(r"\1", fold(spoken(text))).replace("$", " ")
    return re.sub(r"[\[\]{}<>]", " ", re.sub(r"[*_`\\]", "", text))


def codes_in(text: str, shown: Collection[str] = ()) -> list[Stated]:
    """The codes that a text states, in order.

    The form of a code counts in any case. A code with a space for its hyphen, or none, counts
    where it can only be a code that was shown.
    """
    return codes_of_bare(bare(text), shown)


def codes_of_bare(text: str, shown: Collection[str]) -> list[Stated]:
    """The codes of a text that is without markup already; see `codes_in`."""
    codes = []
    for match in _LOOSE.finditer(text.upper() if text.isascii() else _upper(text)):
        code = f"{match[1]}-{match[2]}"
        if match[0] == code or code in shown:
            before = text[
                max(0, match.start() - 80) : match.start()
            ]  # a clause, or it is quadratic
            after = text[match.end() : match.end() + 80]
            negated = bool(_NEGATED.search(before) or _DISOWNED.match(after))
            codes.append(Stated(code, match.start(), match.end(), negated))
    return codes


def written_out(text: str, shown: Collection[str]) -> str:
    """The text with each code that is spelt letter by letter written as it was shown."""
    parts, end = [], 0
    for match in _SPELT.finditer(_upper(text)):
        letters = "".join(_DIGIT.get(letter, letter) for letter in match.groups())
        code = f"{letters[:4]}-{letters[4:]}"
        if code in shown:
            parts += [text[end : match.start()], code]
            end = match.end()
    return "".join((*parts, text[end:]))


def imitated_codes(text: str) -> set[str]:
    """Words that letters of other scripts make look like a code."""
    return {word for word in _SHAPE.findall(bare(text)) if _imitates(word)}


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
