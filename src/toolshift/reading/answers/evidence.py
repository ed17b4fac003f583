"""What the request and the results say about values: under which name each was shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from toolshift.reading.answers.stated import words_of

_DECODE = json.JSONDecoder().raw_decode
_STARTS = re.compile(r"(?m)^\s*(?=[\[{])")
MAX_SHOWN = 1000
"""The most values of results that are compared with an answer."""


class Shown(msgspec.Struct, frozen=True):
    """A value of a result.

    Attributes:
        text: the value, as text.
        key: the names that it was shown under, the outer ones first.
        words: the words of the name, and of the texts beside it in its record.
    """

    text: str
    key: str
    words: frozenset[str]


@lru_cache(maxsize=256)
def shown_in(text: str) -> tuple[Shown, ...]:
    """The values of the JSON in what was shown."""
    found: list[Shown] = []
    end = 0
    for start in _STARTS.finditer(text):
        if start.end() < end:
            continue
        try:
            data, end = _DECODE(text, start.end())
        except (ValueError, RecursionError):
            continue
        found += _leaves(data, "", frozenset())
        if len(found) > MAX_SHOWN:
            break
    return tuple(found[:MAX_SHOWN])


def _leaves(data: Any, key: str, around: frozenset[str]) -> Iterator[Shown]:
    if isinstance(data, dict):
        texts = {k: v for k, v in data.items() if isinstance(v, str)}
        for name, value in data.items():
            beside = [words_of(text) for other, text in texts.items() if other != name]
            path = f"{key}_{name}" if key else str(name)
            yield from _leaves(value, path, around.union(*beside))
    elif isinstance(data, list):
        for item in data:
            yield from _leaves(item, key, around)
    elif data is not None and data != "":
        text = "yes" if data is True else "no" if data is False else str(data)
        yield Shown(text, key, words_of(key.replace("_", " "), 3) | (around - words_of(text)))
