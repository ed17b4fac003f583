"""Runs an agent's own code: whatever it does ends its episode, and not the run.

An agent is somebody else's code. It may exit, interrupt, raise what is no `Exception`, or fork and
return twice. Only Ctrl-C and a `UsageError`, by which an agent says that it cannot work at all,
get through.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from toolshift.core.errors import UsageError


class Broken(Exception):
    """The code of an agent has failed.

    Args:
        fault: what it raised.

    Attributes:
        fault: what it raised.
    """

    def __init__(self, fault: BaseException) -> None:
        super().__init__(type(fault).__name__)
        self.fault = fault


class _Interrupts:
    """Whether Ctrl-C has come; `noted` says whether that would be known."""

    noted = came = False


@contextmanager
def noting_interrupts() -> Iterator[None]:
    """Tells Ctrl-C from a `KeyboardInterrupt` that an agent raises itself, while it is open.

    Does nothing in threads beside the main one, and where the program has a handler of its own.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _note)
    _Interrupts.noted, _Interrupts.came = True, False
    try:
        yield
    finally:
        _Interrupts.noted = _Interrupts.came = False
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _note(number: int, frame: Any) -> None:
    _Interrupts.came = True
    signal.default_int_handler(number, frame)


@contextmanager
def keeping_folder() -> Iterator[None]:
    """Goes back to the working directory, wherever agents have gone in the meantime."""
    here = os.getcwd()
    try:
        yield
    finally:
        with suppress(OSError):  # it is gone itself
            os.chdir(here)


@contextmanager
def own_code() -> Iterator[None]:
    """Runs the code of an agent."""
    process = os.getpid()
    try:
        yield
    except UsageError:
        raise
    except BaseException as fault:
        _end_fork(process)
        if isinstance(fault, KeyboardInterrupt) and _is_of_the_user():
            raise
        raise Broken(fault) from fault
    _end_fork(process)
    if _Interrupts.came and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


def _is_of_the_user() -> bool:
    """Whether a `KeyboardInterrupt` is Ctrl-C, which only the main thread is ever told of."""
    if threading.current_thread() is not threading.main_thread():
        return False
    return _Interrupts.came or not _Interrupts.noted


def _end_fork(process: int) -> None:
    """Ends a process that the agent has forked and not ended: the run goes on in its parent."""
    if os.getpid() != process:
        os.write(2, b"toolshift: an agent forked and returned in the child too: the child ends\n")
        os._exit(1)
