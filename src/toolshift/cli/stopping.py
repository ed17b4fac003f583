"""Ends a command that follows a stream well: SIGTERM and Ctrl-C are like the end of the stream."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stopping:
    """While it is entered, a signal ends `lines`; what is done with a line is finished first."""

    def __init__(self) -> None:
        self.asked = self._waiting = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stopping:
        if threading.current_thread() is threading.main_thread():
            self._before = {sign: signal.signal(sign, self._ask) for sign in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for sign, before in self._before.items():
            signal.signal(sign, before)

    def _ask(self, sign: int, frame: FrameType | None) -> None:
        again, self.asked = self.asked, True
        if self._waiting or again:
            raise KeyboardInterrupt

    def lines(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines, until a signal comes."""
        rest = iter(lines)
        while True:
            self._waiting = True
            try:
                if self.asked:
                    return
                line = next(rest)
            except (StopIteration, KeyboardInterrupt):
                return
            finally:
                self._waiting = False
            yield line
