"""Solvers that read the tools, act, and read what comes back, with a layer around them.

The agents of the instrument drive an episode by its methods. `LoopedEpisode` hands each of their
calls, questions and endings to an agent in a layer as its reply, and gives back what the layer then
shows. So a solver sees exactly what an agent of messages and tools would see: a result in the form
of the lock, and the result of a call that the layer has made in its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from toolshift.core.calls import ToolCall
from toolshift.core.message import ASK_USER, FINAL_ANSWER, REFUSE, Reply, Turn
from toolshift.core.scene import Scene
from toolshift.core.solver import Impossible
from toolshift.core.tool import Result
from toolshift.episode.episode import Episode, Over

NOTICE = "\nNotice: "


class Asked(Exception):
    """The layer asks the agent for its next reply: what came before has been shown to it."""

    def __init__(self, turn: Turn) -> None:
        super().__init__("asked")
        self.turn = turn


class Mouth:
    """What the layer is put around: it says what the solver has decided.

    Args:
        name: of the agent.
        obeys: what a prompt of the layer does: the solver insists on its reply (False), or gives
            up where it is told not to repeat a call (True).
    """

    def __init__(self, name: str, obeys: bool = False) -> None:
        self.name, self.obeys = name, obeys
        self.next: Reply | None = None
        self.said: Reply | None = None
        self.checks: Reply | None = None  # the last call that worked and only reads

    def reply(self, turn: Turn) -> Reply:
        """What was decided; the same again, or a check first, where the layer asks once more."""
        if self.next is not None:
            self.said, self.next = self.next, None
            return self.said
        if self.said is None or not self.pending:
            raise Asked(turn)
        if not self.obeys:
            return self.said
        if "Do not" in str(turn.messages[-1]["content"]):
            raise Impossible("service_failure")
        if self.checks is not None:  # looks again, and then says the same
            self.next = self.said
            return self.checks
        return self.said

    pending = False
    """Whether the reply has been said and not yet carried out."""


class LoopedEpisode(Episode):
    """An episode whose agent acts through a layer.

    Args:
        scene: to act in.
        layer: puts the layer around an agent.
        mouth: the agent that it is put around.
    """

    def __init__(self, scene: Scene, layer: Callable[[Mouth], Any], mouth: Mouth) -> None:
        super().__init__(scene)
        self.mouth, self.layer = mouth, layer(mouth)
        self._inside = False
        self.meant: Counter[str] = Counter()
        self._last: tuple[str, Result] | None = None

    def call(self, name: str, arguments: dict[str, Any], said: str = "") -> tuple[str, Result]:
        """Makes a call through the layer, and reads what the layer shows of it."""
        tool = {each.name: each for each in (*self.scene.clean.tools, *self.tools)}.get(name)
        self.meant.update(tool.origin if tool is not None else (name,))
        turn = self._through(Reply(said, (ToolCall(name, arguments),)))
        assert self._last is not None
        raw, result = self._last
        if result.ok and tool is not None and tool.effect == "read":
            self.mouth.checks = Reply(said, (ToolCall(name, arguments),))
        text = str(turn.messages[-1]["content"])
        return text, result if text == raw else self._as_locked(name, result)

    def ask(self, question: str, prose: bool = False) -> str:
        """Asks the user through the layer."""
        if self._inside:
            return super().ask(question, prose)
        turn = self._through(Reply(calls=(ToolCall(ASK_USER, {"question": question}),)))
        return str(turn.messages[-1]["content"])

    def answer(self, text: str, prose: bool = False) -> str:
        """Answers through the layer."""
        if self._inside:
            return super().answer(text, prose)
        self._through(Reply(calls=(ToolCall(FINAL_ANSWER, {"answer": text}),)), ends=True)
        return ""

    def refuse(self, reason: str, said: str = "", prose: bool = False) -> None:
        """Refuses through the layer."""
        if self._inside:
            super().refuse(reason, said, prose)
        else:
            self._through(Reply(calls=(ToolCall(REFUSE, {"reason": reason}),)), ends=True)

    def next_turn(self) -> None:
        """Counts the turns of replies alone; solvers count a turn a call."""
        if self._inside:
            super().next_turn()

    def _call(self, call: Any, said: str) -> tuple[str, Result]:
        self._last = super()._call(call, said)
        return self._last

    def _through(self, reply: Reply, ends: bool = False) -> Turn:
        """Says a reply, and goes on until the layer asks for the next one."""
        self._still_going()
        asked, self.mouth.next = self.asked, reply
        while True:
            self.mouth.pending = self.mouth.next is not None
            try:
                made = self.layer.reply(self.observation)
            except Asked as done:
                return done.turn
            self.mouth.pending = False
            self._inside = True
            try:
                self.take(made)
            finally:
                self._inside = False
            if ends and (self.end or self.asked != asked):
                return self.observation
            if self.end:
                raise Over

    def _as_locked(self, name: str, result: Result) -> Result:
        """How to read a result that was brought to the form of the lock."""
        known = {tool.name: tool for tool in self.scene.clean.tools}
        return result.with_(form="json", fields=known[name].returns)
