"""How long a client may take to send a request; one that takes longer loses its connection.

uvicorn waits without end for the head of a request and for its body, so a few idle clients could
hold all the connections that a server may have.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD, BODY = "head", "body"
SECONDS = {HEAD: 10.0, BODY: 60.0}
"""From the connection, or the first byte after an answer, to the end of the head; and to that of
the body."""
LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_Protocol: Any = AutoHTTPProtocol


class Impatient(_Protocol):  # type: ignore[misc]
    """uvicorn's protocol of HTTP with a limit on the time of a request."""

    _stage = ""
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begins to wait for the first head."""
        super().connection_made(transport)
        self._watch(HEAD)

    def data_received(self, data: bytes) -> None:
        """Takes what has come, and waits for the rest of the request, if there is one."""
        super().data_received(data)
        self._watch(self._awaited())

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops waiting."""
        self._watch("")
        super().connection_lost(exc)

    def _awaited(self) -> str:
        """What is still to come of the request: its head, its body, or nothing."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            return HEAD
        return BODY if cycle.more_body else ""

    def _watch(self, stage: str) -> None:
        if stage == self._stage:
            return
        self._stage = stage
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(SECONDS[stage], self._give_up) if stage else None

    def _give_up(self) -> None:
        if self._awaited() != self._stage or self.transport.is_closing():
            return
        if self._stage == HEAD:
            self.transport.write(LATE)
        self.transport.close()
