"""A list of tools that stands in a text, in JSON: as one list, or as objects one after another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from toolshift.data.conversation import ToolShown, encoded, lists_tools, rewrapped
from toolshift.lm.call_texts.format import DECODER

_BEGINS = re.compile(r"\[(?=\s*[\{\"])|\{")
_BETWEEN = re.compile(r"\s*,?\s*(?=\{)")
_TRIES = 50
"""How many places that begin like JSON are looked at."""


class Listed(NamedTuple):
    """Tools that stand in a text.

    Attributes:
        begin: of the list in the text.
        end: of it in the text.
        raws: the tools as they stand there.
        between: two of them; None where they are one list.
    """

    begin: int
    end: int
    raws: list[Any]
    between: str | None


def tools_in(text: str) -> Listed | None:
    """The first tools that stand in a text."""
    for match in islice(_BEGINS.finditer(text), _TRIES):
        try:
            value, end = DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, list) and lists_tools(value):
            return Listed(match.start(), end, value, None)
        if isinstance(value, dict) and lists_tools([value]):
            return _one_by_one(text, match.start(), end, value)
    return None


def _one_by_one(text: str, begin: int, end: int, first: Any) -> Listed:
    raws, between = [first], ""
    while following := _BETWEEN.match(text, end):
        try:
            value, ended = DECODER.raw_decode(text, following.end())
        except (ValueError, RecursionError):
            break
        if not lists_tools([value]):
            break
        raws.append(value)
        between = between or following[0]
        end = ended
    return Listed(begin, end, raws, between or "\n")


def written(tools: Sequence[ToolShown], text: str, before: Listed) -> str:
    """Tools as a text lists them."""
    now = [rewrapped(tool, before.raws) for tool in tools]
    like = text[before.begin : before.end]
    if now == before.raws:
        return like
    if before.between is None:
        return encoded(now, like)
    return before.between.join(encoded(tool, like) for tool in now)
