"""Ends commands well: SIGTERM is like Ctrl-C, and where a stream is followed both are its end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stop_on_sigterm() -> None:
    """Makes SIGTERM stop this process as Ctrl-C does, so that what it has started ends with it.

    CI systems and containers stop a command so. A handler that is there already stays.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return
    process = os.getpid()

    def stop(sign: int, frame: FrameType | None) -> None:
        if os.getpid() != process:  # a fork that an agent has made ends as it always would
            signal.signal(sign, signal.SIG_DFL)
            signal.raise_signal(sign)
        if callable(signal.getsignal(signal.SIGINT)):
            signal.raise_signal(signal.SIGINT)
        else:  # a shell starts what is in its background without Ctrl-C
            raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)


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
