"""The pace of requests: how many, and how many tokens, an account may send in a minute."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

MINUTE = 60.0


class Pace:
    """Lets requests through at a steady rate; threads share it.

    Each request moves the time of the next one on by its share of a minute. A pause is not saved
    up, so that no burst follows it.

    Args:
        requests: a minute; None for any number.
        tokens: a minute, of prompts and of the most that replies may have; None for any number.
        clock: seconds, which never go back.
        sleep: waits so many seconds.
    """

    def __init__(
        self,
        requests: float | None = None,
        tokens: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._requests, self._tokens = requests, tokens
        self._clock, self._sleep = clock, sleep
        self._free = 0.0
        self._lock = threading.Lock()

    def wait(self, tokens: int) -> None:
        """Waits until a request of so many tokens may be sent."""
        share = max(
            MINUTE / self._requests if self._requests else 0.0,
            MINUTE * tokens / self._tokens if self._tokens else 0.0,
        )
        if not share:
            return
        with self._lock:
            now = self._clock()
            start = max(now, self._free)
            self._free = start + share
        if start > now:
            self._sleep(start - now)
