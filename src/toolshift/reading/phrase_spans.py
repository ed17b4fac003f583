"""Finds a phrase in a text, ignoring case, accents and hyphens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice

import msgspec

from toolshift.reading.values import Value, values_in

_I = re.IGNORECASE
MAX_PLACES = 24
"""The most mentions of one thing, and of values around one, that are checked."""
_WORD = re.compile(r"[^\W_]+(?:['.@+&-]+[^\W_]+)*")
_VERSION = re.compile(r"v\d+\.\d")
_ARTICLE = re.compile(r"(?:the|a|an)\s+(?=\S)", _I)


class _Token(msgspec.Struct, frozen=True):
    word: str
    start: int
    end: int


def _tokens(text: str) -> list[_Token]:
    """The words; hyphens part letters but not what has figures, nor a prefix that negates."""
    tokens = []
    for match in _WORD.finditer(text):
        word = match[0]
        if "-" in word and not re.search(r"\d|@|\.|^(?:un|non|not|in|dis)-", word, _I):
            spans = [(m.start(), m.end()) for m in re.finditer(r"[^-]+", word)]
        else:
            spans = [(0, len(word))]
        for start, end in spans:
            at = match.start()
            tokens.append(_Token(_folded(word[start:end]), at + start, at + end))
    return tokens


def _folded(word: str) -> str:
    """Without case, accents, a possessive s and the v of a version."""
    parts = unicodedata.normalize("NFKD", word.casefold()).removesuffix("'s")
    parts = parts[1:] if _VERSION.match(parts) else parts
    return "".join(sign for sign in parts if not unicodedata.combining(sign))


def places(text: str, wanted: str) -> Iterator[tuple[int, int]]:
    """The places of a phrase in a text; numbers and dates in it may have another form."""
    sought = _items(_ARTICLE.sub("", wanted, count=1) if _ARTICLE.match(wanted) else wanted)
    tokens, values = _tokens(text), {value.start: value for value in values_in(text)}
    ends = ((first, _match(sought, tokens, first, values)) for first in range(len(tokens)))
    yield from islice(((tokens[first].start, end) for first, end in ends if end), MAX_PLACES)


def _items(wanted: str) -> list[_Token | Value]:
    """The words of what is wanted, and its values in their places."""
    values = values_in(wanted)
    words = [
        token
        for token in _tokens(wanted)
        if not any(value.start < token.end and token.start < value.end for value in values)
    ]
    return sorted([*words, *values], key=lambda item: item.start)


def _match(
    sought: list[_Token | Value], tokens: list[_Token], first: int, values: dict[int, Value]
) -> int:
    """The end of the phrase if it begins at a token; 0 if it does not."""
    place, end = first, 0
    for item in sought:
        if place >= len(tokens):
            return 0
        token = tokens[place]
        if isinstance(item, Value):
            value = values.get(token.start)
            if value is None or not value.same(item):
                return 0
            end = value.end
        elif token.word == item.word:
            end = token.end
        else:
            return 0
        while place < len(tokens) and tokens[place].start < end:
            place += 1
    return end
