"""What a format of calls is, and what its reader is given and gives back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from toolshift.core.calls import Call
from toolshift.lm.call_texts.tools import Tools

NAME = r"\w[\w.\-/:$]*+"
"""The name of a tool, where a template writes it without quotes."""
DECODER = json.JSONDecoder()
NEVER = re.compile(r"(?!)")


class Broken(ValueError):
    """What stands behind a mark is meant as a call, and cannot be read.

    Args:
        name: of the tool, as far as it is known.
        calls: those before it, behind the same mark.
        start: where the broken call begins; None for directly behind the mark.
    """

    def __init__(
        self, name: str = "", calls: tuple[Call, ...] = (), start: int | None = None
    ) -> None:
        super().__init__(name)
        self.name, self.calls, self.start = name, calls, start


class Text:
    """A text that remembers what was looked for, so that nothing is looked for twice.

    Without it, a thousand marks that are never closed would each be read to the end.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._found: dict[re.Pattern[str], tuple[int, re.Match[str] | None]] = {}

    def find(self, pattern: re.Pattern[str], start: int) -> re.Match[str] | None:
        """The first match at `start` or after it."""
        since, match = self._found.get(pattern, (len(self.text) + 1, None))
        if since <= start and (match is None or match.start() >= start):
            return match
        match = pattern.search(self.text, start)
        self._found[pattern] = (start, match)
        return match

    def skip(self, start: int) -> int:
        """The place after white space."""
        while self.text[start : start + 1].isspace():
            start += 1
        return start

    def at(self, start: int, signs: str) -> bool:
        """Whether one of these signs stands there."""
        return start < len(self.text) and self.text[start] in signs


class Found(NamedTuple):
    """Calls that were read, and where the text goes on."""

    calls: tuple[Call, ...]
    end: int


Body = Callable[[Text, "re.Match[str]", Tools], Found | None]
"""Reads what stands behind a mark (the match). None where it is of another format; it raises
`Broken` where it is of this one and cannot be read."""


class Format(msgspec.Struct, frozen=True):
    """One way in which models write calls.

    Attributes:
        name: of the format.
        models: that write it.
        source: where the template, or the parser of a server, says so.
        example: one call, `get_ticket(ticket_id="T-31")`, as it is written.
        opening: what stands before the body; None for a form without a mark, which only the whole
            text tells from prose (`parse_reply`).
        body: what reads the call.
        closing: what ends it; a text may end without it where the body itself has an end.
        sure: its mark alone says that a call follows, so that what cannot be read is malformed.
    """

    name: str
    models: str
    source: str
    example: str
    opening: re.Pattern[str] | None = None
    body: Body | None = None
    closing: re.Pattern[str] = NEVER
    sure: bool = True


def either(*bodies: Body) -> Body:
    """A body in the first of some forms that it has."""

    def read(text: Text, mark: re.Match[str], tools: Tools) -> Found | None:
        return next((found for body in bodies if (found := body(text, mark, tools))), None)

    return read


def offered(body: Body) -> Body:
    """A body that is one only where the mark names a tool on offer."""

    def read(text: Text, mark: re.Match[str], tools: Tools) -> Found | None:
        return body(text, mark, tools) if mark["name"] in tools.names else None

    return read
