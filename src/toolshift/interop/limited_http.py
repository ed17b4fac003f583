"""The client with which MCP servers, and those of a login, are asked: its replies are limited.

The limits are those of `core.http_limits`. A stream of events is open for as long as it likes; how
large one event may be, the MCP library limits.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2

from toolshift.core.http_limits import ReplyLimits, ReplyTooLarge, ReplyTooLong

_PIECE = 2**20
_PACKED = ("gzip", "x-gzip", "deflate")


def limited_client(headers: dict[str, str] | None = None, **how: Any) -> httpx2.AsyncClient:
    """A client whose replies end at the limits.

    It asks for replies that are not packed; one that is all the same is unpacked piece by piece.
    """
    ReplyLimits()  # a limit that is none is said before anything is asked
    asked = {**(headers or {}), "accept-encoding": "identity"}
    return httpx2.AsyncClient(headers=asked, event_hooks={"response": [_limit]}, **how)


async def _limit(reply: httpx2.Response) -> None:
    encoding = reply.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        unpack = None
    elif encoding in _PACKED:
        unpack = zlib.decompressobj(zlib.MAX_WBITS | 32)
        del reply.headers["content-encoding"]  # what the body has then
    else:
        raise httpx2.DecodingError(f"the reply is packed as {encoding[:20]!r}, unasked")
    events = reply.headers.get("content-type", "").startswith("text/event-stream")
    if isinstance(reply.stream, httpx2.AsyncByteStream) and (unpack or not events):
        reply.stream = _Limited(reply.stream, None if events else ReplyLimits(), unpack)


class _Limited(httpx2.AsyncByteStream):
    """A body, unpacked and within its limits."""

    def __init__(
        self, inner: httpx2.AsyncByteStream, limits: ReplyLimits | None, unpack: Any
    ) -> None:
        self._inner, self._limits, self._unpack = inner, limits, unpack

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for packed in self._inner:
            for piece in self._pieces(packed):
                yield piece

    def _pieces(self, packed: bytes) -> Iterator[bytes]:
        try:
            while packed:
                piece = self._unpack.decompress(packed, _PIECE) if self._unpack else packed
                packed = self._unpack.unconsumed_tail if self._unpack else b""
                if self._limits is not None:
                    self._limits.check(piece)
                yield piece
        except (ReplyTooLarge, ReplyTooLong) as beyond:
            raise httpx2.ReadError(f"{beyond}") from None
        except zlib.error as broken:
            raise httpx2.DecodingError(f"{broken}") from None

    async def aclose(self) -> None:
        await self._inner.aclose()
