"""The pace of requests: how many, and how many tokens, an account may send in a minute."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

MINUTE = 60.0
STALE = 3600.0  # seconds; a place that lies further ahead was written before a clock was set back

_PLACE = struct.Struct("<d")


class Pace:
    """Lets requests through at a steady rate; threads share it, and processes with the same file.

    Each request moves the time of the next one on by its share of a minute. A pause is not saved
    up, so that no burst follows it. A process waits for one place at a time, so that one that is
    stopped leaves no more than one unused.

    Args:
        requests: a minute; None for any number.
        tokens: a minute, of prompts and of the most that replies may have; None for any number.
        file: which the processes share; None for a pace of this process alone, which it also is
            where the file cannot be written or the system has no locks.
        clock: seconds, which all processes have alike.
        sleep: waits so many seconds.
    """

    def __init__(
        self,
        requests: float | None = None,
        tokens: float | None = None,
        file: Path | None = None,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._requests, self._tokens = requests, tokens
        self._clock, self._sleep = clock, sleep
        self._path = file
        self._free = 0.0
        self._turn = threading.Lock()

    def wait(self, tokens: int) -> None:
        """Waits until a request of so many tokens may be sent."""
        share = max(
            MINUTE / self._requests if self._requests else 0.0,
            MINUTE * tokens / self._tokens if self._tokens else 0.0,
        )
        if not share:
            return
        with self._turn:
            seconds = self._take(share)
            if seconds > 0:
                self._sleep(seconds)

    def _take(self, share: float) -> float:
        """Takes the next place; the seconds until it comes."""
        with self._shared() as file:
            now = self._clock()
            free = self._free
            if file is not None:
                written = file.read(_PLACE.size)
                free = _PLACE.unpack(written)[0] if len(written) == _PLACE.size else 0.0
            start = free if now < free < now + STALE else now
            self._free = start + share
            if file is not None:
                file.seek(0)
                file.write(_PLACE.pack(self._free))
            return start - now

    @contextmanager
    def _shared(self) -> Iterator[BinaryIO | None]:
        """The file while no other process has it; None where there is none."""
        file = self._opened()
        if file is None:
            yield None
            return
        with file:  # closing it writes it and lets go of the lock
            yield file

    def _opened(self) -> BinaryIO | None:
        if self._path is None:
            return None
        try:
            import fcntl  # noqa: PLC0415 - not on every system

            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch(mode=0o600)
            file = self._path.open("r+b")
            fcntl.flock(file, fcntl.LOCK_EX)
        except (ImportError, OSError):
            self._path = None
            return None
        return file
