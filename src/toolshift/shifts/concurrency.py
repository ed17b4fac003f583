"""Shifts: Several calls of one turn, of which a server takes only some.

An agent that makes all of its calls in one turn does not see what the others bring. Where one of
several fails, the rest has been carried out: it is to be made again, and only it.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from toolshift.core.layer import Below, Layer, Memory
from toolshift.core.scene import Scene
from toolshift.core.shift import Change, NotApplicable, Severity, shift
from toolshift.core.tool import Hint, Result, Tool, error
from toolshift.shifts.action import reach
from toolshift.shifts.toolset import said

MOST_AT_ONCE = {1: 3, 2: 2, 3: 1}
"""Calls of one turn that are carried out, by severity."""


@dataclass(frozen=True)
class Limited(Layer):
    """Of the calls of one turn the first are carried out; the others fail, and can be repeated.

    Attributes:
        most: how many are carried out.
        told: names of the tools whose description says so.
        remark: ends these descriptions.
        code: of the error.
        text: of the error.
    """

    most: int
    told: frozenset[str]
    remark: str
    code: str
    text: str

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        """Some tools say what is taken at once."""
        return tuple(self._told(tool) if tool.name in self.told else tool for tool in tools)

    def _told(self, tool: Tool) -> Tool:
        text = f"{tool.description.rstrip('. ')}. {self.remark}"
        return tool.with_(description=text.lstrip(". "))

    def changes_results(self, tool: Tool) -> bool:
        """No: a call fails, or is carried out as below."""
        return False

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Counts the calls of the turn; those beyond the limit fail before they are carried out."""
        if "turn" not in memory:  # no episode: which calls are of one turn is not known
            return below(name, arguments)
        turn, made = memory["turn"], memory.get("made", (0, 0))
        before = made[1] if made[0] == turn else 0
        if before >= self.most:
            return error(self.code, self.text, Hint("retry"), provoked=True)
        memory["made"] = turn, before + 1
        return below(name, arguments)


@shift(
    tier="interaction",
    dimension="observation",
    level=2,
    imitates="GitHub REST: secondary rate limits on concurrent requests; make them one by one",
)
def concurrency_limit(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Carry out three (1), two (2) or one (3) of the calls that are made in one turn.

    The error says so, and the description of one needed tool, of all needed, of all that are shown.
    """
    if not scene.asks:
        raise NotApplicable("live tools do not know which calls are of one turn")
    if not scene.calls:
        raise NotApplicable("the task needs no call")
    most = MOST_AT_ONCE[severity]
    form = said("concurrency", scene, rng)
    count = f"{most} call" if most == 1 else f"{most} calls"
    texts = {key: form[key].format(count=count) for key in ("remark", "text")}
    told = frozenset(tool.name for tool in reach(scene, rng, severity))
    return Change(layer=Limited(most, told, texts["remark"], form["code"], texts["text"]))
