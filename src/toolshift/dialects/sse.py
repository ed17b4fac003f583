"""Streams of server-sent events: lines read as events, and events written."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

import msgspec

_END = re.compile(rb"\r\n|\n|\r(?!\Z)")
"""The end of a line; a carriage return at the end of a piece may be half of one."""
DONE = "[DONE]"
"""The data with which some servers end a stream."""


class Event(NamedTuple):
    """One event: its name, "" where it has none, and its text."""

    name: str
    data: str


async def events(pieces: AsyncIterator[bytes]) -> AsyncIterator[Event]:
    """The events of a stream, wherever it was cut; comments, which keep it alive, are none."""
    name, data = "", list[str]()
    async for line in _lines(pieces):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif line.startswith("event:"):
            name = line[6:].strip()
        elif not line.strip():
            if any(data):  # an event without a text only keeps the connection alive
                yield Event(name, "\n".join(data))
            name, data = "", []
    if any(data):  # some servers end a stream without the empty line
        yield Event(name, "\n".join(data))


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Lines that end as the standard says, and at no other sign that Python takes for an end."""
    rest = b""
    async for piece in pieces:
        *whole, rest = _END.split(rest + piece)
        for line in whole:
            yield line.decode("utf-8", "replace")
    for line in _END.split(rest.rstrip(b"\r")) if rest else ():
        yield line.decode("utf-8", "replace")


def frame(data: Mapping[str, Any], name: str = "") -> bytes:
    """An event as it stands in a stream."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + msgspec.json.encode(data) + b"\n\n"


def read_data(text: str) -> dict[str, Any]:
    """The JSON object of an event; a `ValueError` where it is none."""
    try:
        found = msgspec.json.decode(text)
    except RecursionError:
        raise ValueError("a piece of the stream is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("a piece of the stream is no JSON object")
    return found
