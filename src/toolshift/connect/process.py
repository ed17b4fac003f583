"""A program that is run for an agent: its lines, its complaints, and the end of all it started."""

from __future__ import annotations

import atexit
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import IO

from toolshift.core.errors import UsageError

END_OF_TURN = "[end of turn]"
"""A line by which a program says that its answer is complete though it goes on running."""
GRACE = 5.0
"""Seconds that a program has to leave after its episode is over."""
KEPT = 64 * 1024
"""Characters of one answer that are kept, the last ones."""
COMPLAINT = 2000
"""Characters of standard error that are kept, the last ones."""

_running: set[Process] = set()


class Process:
    """A program in a process group of its own.

    Args:
        words: the program and its arguments.
        environment: all of its environment.

    Raises:
        UsageError: where it cannot be started.
    """

    def __init__(self, words: list[str], environment: dict[str, str]) -> None:
        self._told: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._lines: deque[str] = deque()
        self._complaints: deque[str] = deque()
        self._leaves_by = 0.0
        try:
            self._popen = subprocess.Popen(
                words,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except OSError as fault:
            raise UsageError(f"{words[0]} cannot be started: {fault.strerror or fault}") from None
        _running.add(self)
        self._readers = [
            threading.Thread(target=self._read, args=(self._popen.stdout,), daemon=True),
            threading.Thread(target=self._read_complaints, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def ended(self) -> bool:
        """Whether it has ended by itself, and all that it printed has been read."""
        if self._popen.poll() is None:
            return False
        for reader in self._readers:  # a child of its own may still hold the pipe
            reader.join(1.0)
        return self._told.empty()

    @property
    def code(self) -> int:
        """Its exit code, once it has ended."""
        return self._popen.returncode or 0

    @property
    def remainder(self) -> str:
        """What it has printed since its last complete turn."""
        return "".join(self._lines).strip()

    @property
    def complaint(self) -> str:
        """The end of what it wrote to standard error."""
        return "".join(self._complaints).strip()[-COMPLAINT:]

    def next_turn(self, timeout: float) -> str:
        """What it has said in a turn that it marked as complete; "" where none came in time."""
        try:
            return self._told.get(timeout=timeout)
        except queue.Empty:
            return ""

    def tell(self, message: str) -> None:
        """Gives it one line on its standard input."""
        assert self._popen.stdin
        with suppress(OSError, ValueError):  # it has closed its input, or is gone
            self._popen.stdin.write(" ".join(message.splitlines()) + "\n")
            self._popen.stdin.flush()

    def close_input(self) -> None:
        """Tells it that nothing more will come."""
        assert self._popen.stdin
        with suppress(OSError, ValueError):
            self._popen.stdin.close()

    def has_had_time_to_leave(self) -> bool:
        """Whether it has had time enough to leave."""
        self._leaves_by = self._leaves_by or time.monotonic() + GRACE
        return time.monotonic() > self._leaves_by

    def end(self) -> None:
        """Ends it with all that it has started."""
        self.close_input()
        for sign, patience in ((signal.SIGTERM, 1.0), (signal.SIGKILL, 5.0)):
            self._signal(sign)
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(patience)
                break
        self._signal(signal.SIGKILL)  # what it left behind
        _running.discard(self)

    def _signal(self, sign: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, sign)

    def _read(self, stream: IO[str]) -> None:
        size = 0
        for line in _lines_of(stream):
            if line.strip() == END_OF_TURN:
                self._told.put(self.remainder)
                self._lines.clear()
                size = 0
                continue
            self._lines.append(line)
            size += len(line)
            while size > KEPT and len(self._lines) > 1:
                size -= len(self._lines.popleft())
        self._told.put("")  # wakes whoever waits for a turn

    def _read_complaints(self) -> None:
        assert self._popen.stderr
        size = 0
        for line in _lines_of(self._popen.stderr):
            self._complaints.append(line)
            size += len(line)
            while size > 2 * COMPLAINT and len(self._complaints) > 1:
                size -= len(self._complaints.popleft())


def _lines_of(stream: IO[str]) -> Iterator[str]:
    """The lines of a stream; a very long one in pieces."""
    return iter(partial(stream.readline, 8192), "")


def _end_all() -> None:
    """No program outlives the study that has started it, however that ends."""
    for process in list(_running):
        process.end()


atexit.register(_end_all)
