"""The words of texts in any script, as Unicode divides them (UAX 29).

    words_of("`getOrder` reads one order")      # {"get", "order", "reads", "one"}
    in_common(words_of(one), words_of(other))   # nothing below three words

Scripts without spaces have no words there but single letters. Two of these that stand side by side
count as one word, as search engines do it; a single letter in common says nothing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from importlib import import_module

from toolshift.core.errors import UsageError
from toolshift.core.installation import extra

LEAST = 3
"""Two texts with fewer words in common are not alike at all."""
LONGEST = 4000
"""Letters of a text that are read."""
_IN_NAMES = r"(?<=\p{Ll})(?=\p{Lu})|_|(?<=\p{L})[.:/](?=\p{L})"
"""Where the words of a name meet, which Unicode takes for one: getOrder, get_order, orders.get."""


@lru_cache(maxsize=8192)
def words_of(text: str) -> frozenset[str]:
    """The different words of a text or a name, in lower case."""
    return frozenset(_words(_divided(unicodedata.normalize("NFC", text[:LONGEST]))))


def in_common(
    one: Collection[str], other: Collection[str], worth: Mapping[str, float] | None = None
) -> float:
    """How much two sets of words share, from 0 to 1; 0 where it is fewer than `LEAST` words.

    With `worth`, a word counts by that, and 1 where it is not in there.
    """
    mine, theirs = set(one), set(other)
    if len(mine & theirs) < LEAST:
        return 0.0
    shared, whole = (
        sum((worth or {}).get(word, 1.0) for word in words)
        for words in (mine & theirs, mine | theirs)
    )
    return shared / whole if whole else 0.0


def _divided(text: str) -> list[str]:
    """A text at the boundaries of its words."""
    try:
        regex = import_module("regex")
    except ImportError:
        raise UsageError(f"adapt needs the package regex: {extra('adapt')}") from None
    spaced = regex.sub(_IN_NAMES, " ", text)
    parts: list[str] = regex.split(r"\b", spaced, flags=regex.WORD | regex.V1)
    return parts


def _words(parts: list[str]) -> Iterator[str]:
    before = ""
    for part in filter(None, parts):
        if len(part) == 1 and unicodedata.category(part) == "Lo":
            if before:
                yield before + part
            before = part
            continue
        before = ""
        if any(unicodedata.category(sign)[0] in "LN" for sign in part):
            yield part.lower()
