"""How commands end: SIGTERM is like Ctrl-C, the end of a stream too, and no end is a good one
unless a command comes to it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

SILENT_END = (
    "code that is not ToolShift's has ended the program with os._exit(0), before anything was "
    "decided. Finished episodes are kept. The code must return instead; or run it in its own "
    "process (--agent-timeout)"
)
_END = os._exit
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stop_on_sigterm() -> None:
    """Makes SIGTERM stop this process as Ctrl-C does, so that what it has started ends with it.

    CI systems and containers stop a command so. A handler that is there already stays.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def stop(sign: int, frame: FrameType | None) -> None:
        if callable(signal.getsignal(signal.SIGINT)):
            signal.raise_signal(signal.SIGINT)
        else:  # a shell starts what is in its background without Ctrl-C
            raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    _leave_forks_alone(stop)


def _leave_forks_alone(ours: Callable[[int, FrameType | None], None]) -> None:
    """Has SIGTERM end what an agent forks as it always would, even at once."""
    if not hasattr(os, "register_at_fork"):
        return
    masks: list[set[int]] = []

    def before() -> None:
        masks.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})))

    def after() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.pop())

    def after_in_child() -> None:
        if signal.getsignal(signal.SIGTERM) is ours:
            with suppress(ValueError):  # of a thread beside the main one
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
        after()

    os.register_at_fork(before=before, after_in_parent=after, after_in_child=after_in_child)


def forbid_silent_end() -> None:
    """Makes `os._exit(0)` of foreign code end this process with 2 and a sentence.

    It runs nothing at the end, so a gate that it cuts off would look like one that passed.
    """
    process = os.getpid()

    def told(status: int) -> NoReturn:
        if status == 0 and os.getpid() == process:  # what it has forked ends as it likes
            os.write(2, f"Error: {SILENT_END}\n".encode())
            _END(2)
        _END(status)

    os._exit = told


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
