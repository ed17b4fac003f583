"""The contract between an agent and an episode.

An agent is anything that, given the conversation so far and the tools on offer, returns an
OpenAI-style assistant message. Nothing else is asked of it, so a model, a framework or a plain
function all fit. Three protocol tools end or pause an episode explicitly; prose is read by
`reading.prose.read_prose` and reported apart.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from toolshift.core.message import Reply, Turn
from toolshift.dialects import read_reply
from toolshift.episode.episode import Episode

if TYPE_CHECKING:
    from pathlib import Path
    from threading import Event


@runtime_checkable
class Agent(Protocol):
    """Anything with a name that answers a turn.

    `reply` may be a coroutine function (`async def`). `concurrency` (an int attribute) bounds how
    many episodes run at once. A `decoding` attribute labels results that were made under a
    constraint.
    """

    name: str

    def reply(self, turn: Turn) -> Reply | str | dict[str, Any]:
        """Answers one turn with an assistant message.

        Args:
            turn: the messages so far and the tools on offer now, both in the OpenAI format.

        Returns:
            A reply, a text, or an OpenAI assistant message (`content`, `tool_calls`).
        """
        ...


@runtime_checkable
class BatchAgent(Agent, Protocol):
    """An agent that answers many turns at once; a study steps as many episodes together.

    `batch` (an int attribute) says how many; without it there are 8.
    """

    def reply_batch(self, turns: Sequence[Turn]) -> Sequence[Reply | str | dict[str, Any]]:
        """Answers each turn, in their order.

        Args:
            turns: one of each episode that is going on, at most `batch`.

        Returns:
            As many replies as there are turns, in the same order.
        """
        ...


@runtime_checkable
class Releases(Protocol):
    """An agent that keeps something between turns, such as the memory of a model."""

    def release(self) -> None:
        """Frees it; a study calls this after its last episode."""
        ...


@runtime_checkable
class ScriptedAgent(Protocol):
    """An agent from inside the instrument, which drives its episode and may look at the scene."""

    name: str

    def play(self, episode: Episode) -> None:
        """Acts until the episode is over."""
        ...


@runtime_checkable
class OutsideAgent(Protocol):
    """An agent in a program of its own, which drives its episode over a wire.

    `concurrency` (an int attribute) bounds how many episodes run at once.
    """

    name: str

    def drive(self, episode: Episode, stop: Event) -> None:
        """Lets the program act until the episode is over; returns early once `stop` is set."""
        ...


@runtime_checkable
class Hiding(Protocol):
    """An agent from which a folder can be hidden."""

    def hide(self, folder: Path) -> None:
        """Hides it, such as the folder of the run, where the agent is isolated."""
        ...


class CallableAgent:
    """Wraps a plain function of (messages, tools) as an agent."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function = function
        self.name = name

    def reply(self, turn: Turn) -> Reply:
        """Calls the function with the messages and the tools."""
        return read_reply(finished(self.function(list(turn.messages), list(turn.tools))))


def finished(value: object) -> Any:
    """Returns a value, or the result of an awaitable.

    All awaitables of a process run in one event loop, in a thread of its own: an asynchronous
    client keeps its connections between turns, and episodes in several threads can share it.
    """
    if not inspect.isawaitable(value):
        return value
    fault, made = asyncio.run_coroutine_threadsafe(_outcome(value), _loop(os.getpid())).result()
    if fault is not None:
        raise fault
    return made


async def _outcome(value: Awaitable[Any]) -> tuple[BaseException | None, Any]:
    try:
        return None, await value
    except BaseException as fault:  # SystemExit or KeyboardInterrupt would end the loop
        return fault, None


@cache
def _loop(process: int) -> asyncio.AbstractEventLoop:
    """The event loop of a process; a forked one gets its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name=f"agents of {process}", daemon=True).start()
    return loop


def converse(agent: Agent, episode: Episode) -> None:
    """Drives an agent that answers turns until the episode is over."""
    while not episode.end:
        episode.take(read_reply(finished(agent.reply(episode.observation))))
