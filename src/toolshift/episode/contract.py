"""Who acts: the contract between an agent and an episode.

An agent is anything that, given the conversation so far and the tools on offer, returns an
OpenAI-style assistant message. Nothing else is asked of it, so a model, a framework or a plain
function all fit. Three protocol tools end or pause an episode explicitly; prose is read by the
rule in `read_prose` and reported apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from toolshift.core.message import Reply, Turn
from toolshift.episode.episode import Episode

if TYPE_CHECKING:
    from threading import Event


@runtime_checkable
class Agent(Protocol):
    """Anything with a name that answers a turn.

    An agent may also offer `reply_batch(turns) -> list[Reply]`; a study then steps many episodes
    together, and calls its `release()`, if there is one, when they have ended. `concurrency` (an
    int attribute) bounds how many episodes run at once. A `decoding` attribute labels results that
    were made under a constraint.
    """

    name: str

    def reply(self, turn: Turn) -> Reply | str | dict[str, Any]:
        """Answers one turn with an assistant message."""
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


class CallableAgent:
    """Wraps a plain function of (messages, tools) as an agent."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function = function
        self.name = name

    def reply(self, turn: Turn) -> Reply:
        """Calls the function with the messages and the tools."""
        return Reply.of(self.function(list(turn.messages), list(turn.tools)))


def converse(agent: Agent, episode: Episode) -> None:
    """Lets an agent that answers turns act until the episode is over."""
    while not episode.end:
        episode.take(Reply.of(agent.reply(episode.observation)))
