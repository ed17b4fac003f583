"""When tools change in mid-session: with the calls of a client, or by a deployment of the server.

MCP 2026-07-28 lets the tools of a server change over time, and not as a side effect of requests.
A deployment changes them for all sessions at once, at a time or at a signal, as a new release does.
"""

from __future__ import annotations

import asyncio
import signal
import time

import anyio

from toolshift.core.errors import UsageError

SIGNAL = "signal"


class Deployment:
    """The moment from which on the shifts that come in mid-session hold, in every session.

    Args:
        after: seconds from now; None for not before it is told.
        by_signal: SIGHUP brings it about.
    """

    def __init__(self, after: float | None = None, by_signal: bool = False) -> None:
        self._due = None if after is None else time.monotonic() + after
        self._by_signal = by_signal
        self._happened = anyio.Event()

    @property
    def done(self) -> bool:
        """Whether it has happened."""
        return self._happened.is_set() or (self._due is not None and time.monotonic() >= self._due)

    def happen(self) -> None:
        """Brings it about, in the thread of the event loop."""
        self._happened.set()

    def begin(self) -> None:
        """Waits for its signal from now on; called in the event loop of the server."""
        if self._by_signal:
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGHUP, self._happened.set)

    async def come(self) -> None:
        """Returns once it has happened."""
        left = None if self._due is None else max(0.0, self._due - time.monotonic())
        with anyio.move_on_after(left):
            await self._happened.wait()


def read_deployment(text: str) -> Deployment:
    """A deployment from the words of a command line."""
    if text == SIGNAL:
        if not hasattr(signal, "SIGHUP"):
            raise UsageError("--deploy signal: this system has no SIGHUP. Give seconds")
        return Deployment(by_signal=True)
    try:
        after = float(text)
    except ValueError:
        after = -1.0
    if not 0 <= after < 1e9:
        raise UsageError(f"--deploy {text!r}: give seconds, as in --deploy 30, or the word signal")
    return Deployment(after)
