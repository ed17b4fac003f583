"""A seat: one episode as an outside agent drives it, and the store that keeps many of them.

Everything goes through the very `Episode` that agents in this process drive, one turn an act, so
that grades and traces are the same however an agent has come in.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from toolshift.core.calls import read_call
from toolshift.core.message import Reply, protocol_tools
from toolshift.core.step import Step
from toolshift.core.text import storable
from toolshift.core.tool import as_openai
from toolshift.episode.episode import Episode, Over

OVER = "The episode is over."
SPENT = "The budget of this episode is spent: it is over."


class ActResult(msgspec.Struct, frozen=True):
    """What came of one act.

    Attributes:
        text: the result of a call, or the user's reply to a question.
        ok: the act succeeded.
        over: the episode has ended.
        message: the user's next turn, where the act was an answer and there is one.
        notice: the system message that came with it.
        changed: the tools on offer have changed.
    """

    text: str
    ok: bool = True
    over: bool = False
    message: str = ""
    notice: str = ""
    changed: bool = False


class AgentSession:
    """One episode, safe to drive from several threads.

    Args:
        episode: the one to drive.
        protocol: whether `final_answer`, `refuse` and `ask_user` are among the tools.
        watch: told of each act's outcome, in the thread that made it.
    """

    def __init__(
        self,
        episode: Episode,
        protocol: bool = True,
        watch: Callable[[ActResult], None] = lambda heard: None,
    ) -> None:
        self.episode, self.protocol, self.watch = episode, protocol, watch
        self._lock = threading.Lock()

    @property
    def over(self) -> bool:
        """Whether the episode has ended."""
        return bool(self.episode.end)

    @property
    def message(self) -> str:
        """What the user has said last."""
        return str(self.episode.ask_now.text)

    @property
    def instructions(self) -> str:
        """The scene's system message, and the request where nothing else would carry it."""
        system = self.episode.scene.system
        return f"{system}\n\nThe user says: {self.message}" if self.protocol else system

    def tools(self) -> list[dict[str, Any]]:
        """The tools on offer now, in the OpenAI format."""
        with self._lock:
            shown = [as_openai(tool) for tool in self.episode.tools]
        return [*shown, *protocol_tools()] if self.protocol else shown

    def schema(self, name: str) -> dict[str, Any] | None:
        """The JSON Schema of a tool's arguments; None where the tool is not on offer."""
        shown = (tool["function"] for tool in self.tools())
        return next((tool["parameters"] for tool in shown if tool["name"] == name), None)

    # -- what an agent does --------------------------------------------------------------------

    def call(self, name: str, arguments: object) -> ActResult:
        """Calls a tool, one of the protocol included where it is on offer."""
        call = read_call(name, arguments)
        return self._act(
            lambda: self._turn(lambda: self.episode.take_call(call, protocol=self.protocol))
        )

    def ask(self, question: str) -> ActResult:
        """Asks the user."""
        return self._act(lambda: self._turn(lambda: self.episode.ask(storable(question))))

    def answer(self, text: str) -> ActResult:
        """Answers the user's request; words that refuse are read as a refusal."""
        return self._act(lambda: self._turn(lambda: self.episode.final_answer(storable(text))))

    def refuse(self, reason: str, said: str = "") -> ActResult:
        """Refuses for one of `toolshift.core.message.REASONS`."""
        return self._act(lambda: self._turn(lambda: self.episode.refuse(reason, storable(said))))

    def say(self, prose: str) -> ActResult:
        """Ends a turn in prose, which is read by `reading.prose.read_prose`."""
        return self.take(Reply(text=storable(prose)))

    def take(self, reply: Reply) -> ActResult:
        """Carries out one reply, as for an agent in this process."""
        return self._act(lambda: self.episode.take(reply))

    def crash(self, why: str) -> None:
        """Ends the episode because the agent itself broke down."""
        self._act(lambda: self.episode.crash(storable(why)))

    def fail(self, why: str) -> None:
        """Ends the episode because the agent is out of order, by its own word or its silence."""
        self._act(lambda: self.episode.fail(storable(why), own=True))

    # -- inside --------------------------------------------------------------------------------

    def _act(self, act: Callable[[], None]) -> ActResult:
        with self._lock:
            episode = self.episode
            if episode.end:
                return ActResult(OVER, ok=False, over=True)
            before, tools = len(episode.steps), episode.tools
            with suppress(Over):
                act()
            step = episode.steps[before]
            changed = _shown(tools) != _shown(episode.tools)
            heard = _heard(step, bool(episode.end), changed)
        self.watch(heard)
        return heard

    def _turn(self, act: Callable[[], Any]) -> None:
        act()
        self.episode.next_turn()


def _shown(tools: tuple[Any, ...]) -> list[Any]:
    return [(tool.name, tool.description, tool.params) for tool in tools]


def _heard(step: Step, over: bool, changed: bool) -> ActResult:
    if step.kind == "budget":
        return ActResult(SPENT, ok=False, over=True)
    if step.kind in ("call", "ask"):
        return ActResult(step.text, step.ok, over, changed=changed)
    if step.kind == "answer" and step.text:
        return ActResult("Delivered.", True, over, step.text, step.notice, changed)
    return ActResult(f"Delivered. {OVER}", True, over)


class SessionStore:
    """The open episodes of a server, each under an id that cannot be guessed.

    Args:
        idle: seconds without a request after which an episode is closed.
        most: how many may be open at once.
    """

    def __init__(self, idle: float = 1800.0, most: int = 10_000) -> None:
        self.idle, self.most = idle, most
        self._seats: dict[str, AgentSession] = {}
        self._used: dict[str, float] = {}
        self._lock = threading.Lock()

    def __contains__(self, name: str) -> bool:
        return name in self._seats

    def open(self, seat: AgentSession) -> str | None:
        """Takes a seat in; returns its id, None where the store is full."""
        name = secrets.token_urlsafe(18)
        with self._lock:
            if len(self._seats) >= self.most:
                return None
            self._seats[name] = seat
            self._used[name] = time.monotonic()
        return name

    def find(self, name: str) -> AgentSession | None:
        """The seat of an id; being asked for keeps it from expiring."""
        with self._lock:
            seat = self._seats.get(name)
            if seat is not None:
                self._used[name] = time.monotonic()
        return seat

    def close(self, name: str) -> None:
        """Closes an episode, whether or not it is over."""
        with self._lock:
            self._seats.pop(name, None)
            self._used.pop(name, None)

    def expire(self) -> None:
        """Closes the episodes that nobody has asked for in a while."""
        oldest = time.monotonic() - self.idle
        with self._lock:
            gone = [name for name, used in self._used.items() if used < oldest]
        for name in gone:
            self.close(name)
