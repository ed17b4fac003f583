"""Replies over HTTP, within limits: of the time for all of one, and of its size once unpacked.

A timeout of silence alone never ends a reply that drips, and a small compressed body can unpack to
one that fills the memory. Both limits hold for every reply that is read: of models, of agents, of
servers of tools. How long a server of tools may take to say which it has stands here too, for it is
no less a wait for a reply.

| variable | what it limits | where it is not set |
|---|---|---|
| `TOOLSHIFT_REPLY_SECONDS` | a whole reply | 1800 |
| `TOOLSHIFT_REPLY_MB` | its size, unpacked | 64 |
| `TOOLSHIFT_LIST_SECONDS` | until a server of MCP has started and listed its tools | 60 |
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from toolshift.core.errors import UsageError
from toolshift.core.http import httpx

SECONDS, MEGABYTES = "TOOLSHIFT_REPLY_SECONDS", "TOOLSHIFT_REPLY_MB"
LIST_SECONDS = "TOOLSHIFT_LIST_SECONDS"
_DEFAULTS = {SECONDS: 1800.0, MEGABYTES: 64.0, LIST_SECONDS: 60.0}


class ReplyTooLong(httpx.ReadTimeout):
    """A reply that goes on beyond the time for all of it."""


class ReplyTooLarge(httpx.HTTPError):
    """A reply that unpacks to more than is read."""


class ReplyLimits:
    """The limits of one reply, which begin when they are made.

    Args:
        seconds: for the whole reply; None for what the environment says.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = limit(SECONDS) if seconds is None else seconds
        self.size = int(limit(MEGABYTES) * 2**20)
        self._named = seconds is None
        self._end = time.monotonic() + self.seconds
        self._read = 0

    def check(self, piece: bytes) -> None:
        """Counts a piece of the reply; raises where the time is up, or where it is too much."""
        self._read += len(piece)
        if self._read > self.size:
            raise ReplyTooLarge(
                f"the reply has more than {self.size / 2**20:g} MB, unpacked; {MEGABYTES} sets how "
                "many are read"
            )
        if time.monotonic() > self._end:
            more = f"; {SECONDS} sets how many it has" if self._named else ""
            raise ReplyTooLong(f"the reply was not whole after {self.seconds:g} seconds{more}")

    def pieces(self, reply: httpx.Response) -> Iterator[bytes]:
        """A reply, piece by piece."""
        if "content-encoding" in reply.headers:
            pieces: Iterable[bytes] = reply.iter_bytes()
        else:  # nothing is to be unpacked, and to be told so piece by piece takes time
            assert isinstance(reply.stream, httpx.SyncByteStream)
            pieces = reply.stream
        for piece in pieces:
            self.check(piece)
            yield piece

    async def apieces(self, reply: httpx.Response) -> AsyncIterator[bytes]:
        """A reply, piece by piece."""
        async for piece in reply.aiter_bytes():
            self.check(piece)
            yield piece


def limit(name: str) -> float:
    """A limit, as the environment has it."""
    given = os.environ.get(name, "")
    try:
        value = float(given) if given else _DEFAULTS[name]
    except ValueError:
        value = 0.0
    if not value > 0:
        raise UsageError(f"{name} is {given!r}: it must be a number above 0")
    return value


def fetch(
    client: httpx.Client,
    method: str,
    url: httpx.URL | str,
    seconds: float | None = None,
    **how: Any,
) -> httpx.Response:
    """Sends a request, and reads the whole reply within the limits; it is unpacked."""
    return whole(*fetch_content(client, method, url, seconds, **how))


def fetch_content(
    client: httpx.Client,
    method: str,
    url: httpx.URL | str,
    seconds: float | None = None,
    **how: Any,
) -> tuple[httpx.Response, bytes]:
    """The same, with the content beside the reply: `whole` takes a tenth of the time of a call."""
    limits = ReplyLimits(seconds)
    reply = client.send(client.build_request(method, url, **how), stream=True)
    try:
        return reply, b"".join(limits.pieces(reply))
    finally:
        reply.close()


def whole(reply: httpx.Response, content: bytes) -> httpx.Response:
    """A reply whose unpacked content has been read."""
    kept = [(k, v) for k, v in reply.headers.multi_items() if k.lower() not in _OF_TRANSPORT]
    return httpx.Response(reply.status_code, headers=kept, content=content, request=reply.request)


_OF_TRANSPORT = ("content-encoding", "content-length", "transfer-encoding")
