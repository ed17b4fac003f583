"""An agent of the user's own in a process apart from the run, which is ended where it hangs.

A function cannot be stopped from outside; a process can, with all that it has started. Whatever is
left of an agent that was ended is gone: the next turn meets a fresh one. Each episode that is under
way at the same time has a process of its own.
"""

from __future__ import annotations

import os
import signal
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from pickle import PicklingError
from typing import Any

from toolshift.agents.own_code import Broken, own_code
from toolshift.core.errors import ExplainedFault, UsageError, described
from toolshift.core.message import Reply, Turn
from toolshift.dialects import read_reply
from toolshift.episode.contract import Agent, finished

STARTING = 300.0
"""Seconds that an agent has to be imported and made: it may load a model."""


def check_timeout(seconds: float) -> None:
    """Checks how long an agent has for a turn."""
    if not seconds > 0:
        raise UsageError(f"--agent-timeout {seconds:g}: a number of seconds above 0 is needed")


class SeparateAgent:
    """An agent that answers its turns in another process, each within a time.

    Args:
        agent: the same agent in this process, for its name and settings.
        maker: makes it in the other process.
        timeout: seconds that it has for one turn.

    Raises:
        UsageError: where it cannot be made in another process.
    """

    def __init__(self, agent: Agent, maker: Callable[[], Agent], timeout: float) -> None:
        check_timeout(timeout)
        self.inner, self.name, self.timeout = agent, agent.name, timeout
        self.concurrency = int(getattr(agent, "concurrency", 1))
        self.decoding = getattr(agent, "decoding", "")
        try:
            self._maker = bytes(ForkingPickler.dumps(maker))
        except (PicklingError, AttributeError, TypeError) as fault:
            raise UsageError(
                f"agent {agent.name} cannot be created in its own process ({fault}): name it as "
                "module:function, or leave --agent-timeout out"
            ) from None
        self._idle: list[_Worker] = []
        weakref.finalize(self, _end_all, self._idle)

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the agent, and the time that it has, for a manifest."""
        own = getattr(self.inner, "settings", None)
        return {**(own if isinstance(own, dict) else {}), "agent_timeout": self.timeout}

    def reply(self, turn: Turn) -> Reply:
        """Answers one turn."""
        worker = self._idle.pop() if self._idle else _Worker(self._maker, self.name)
        try:
            said = worker.ask(turn, self.timeout)
        except BaseException:  # Ctrl-C included
            worker.end()
            raise
        self._idle.append(worker)
        if isinstance(said, BaseException):
            raise said
        return said


class _Worker:
    """One process with the agent in it."""

    def __init__(self, maker: bytes, name: str) -> None:
        context = get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process: BaseProcess = context.Process(target=_serve, args=(other, maker))
        self._process.start()
        other.close()
        try:
            ready = self._receive(STARTING)
        except BaseException as fault:
            self.end()
            if isinstance(fault, ExplainedFault):
                raise UsageError(f"agent {name} could not be started: {fault}") from None
            raise
        if isinstance(ready, BaseException):
            self.end()
            raise ready

    def ask(self, turn: Turn, timeout: float) -> Reply | BaseException:
        """What the agent replies, or the fault that it reports."""
        with suppress(OSError):  # it has ended, which `_receive` tells
            self._pipe.send(turn)
        said: Reply | BaseException = self._receive(timeout)
        return said

    def _receive(self, timeout: float) -> Any:
        """What the process says next."""
        try:
            if not self._pipe.poll(timeout):
                raise ExplainedFault(f"it took more than {timeout:g} seconds, and was ended")
            return self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(1.0)
            raise ExplainedFault(
                f"its process ended (exit code {self._process.exitcode})"
            ) from None

    def end(self) -> None:
        """Ends the process with all that it has started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        self._process.kill()
        self._process.join(5.0)
        self._pipe.close()


def _end_all(workers: list[_Worker]) -> None:
    while workers:
        workers.pop().end()


# -- in the other process ------------------------------------------------------------------------


def _serve(pipe: Connection, maker: bytes) -> None:
    """Answers turns until the run is over."""
    os.setsid()  # Ctrl-C is for the run alone, and whatever is started here ends together
    threading.Thread(target=_end_with_run, daemon=True).start()
    made = _try(partial(_make, maker))
    if isinstance(made, BaseException):
        pipe.send(made if isinstance(made, UsageError) else UsageError(str(made)))
        return
    pipe.send(None)
    with suppress(EOFError, OSError):
        while True:
            turn = pipe.recv()
            pipe.send(_try(partial(_reply, made, turn)))


def _make(maker: bytes) -> Any:
    return ForkingPickler.loads(maker)()


def _reply(agent: Agent, turn: Turn) -> Reply:
    return read_reply(finished(agent.reply(turn)))


def _try(work: Callable[[], Any]) -> Any:
    """What the work comes to, or the fault that it ends in."""
    try:
        with own_code():
            return work()
    except Broken as broken:
        return ExplainedFault(described(broken.fault))
    except UsageError as wrong:
        return UsageError(str(wrong))


def _end_with_run() -> None:
    run = parent_process()
    assert run is not None
    wait([run.sentinel])
    os.killpg(os.getpid(), signal.SIGKILL)
