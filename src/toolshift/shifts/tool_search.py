"""Shifts: Tools behind a search, as providers load them: deferred, until a search has found them.

The agent is shown a search tool, and tools that are pinned. What a search finds is in the list from
then on, and is called by its own name; a further search finds others. `tools_behind_search` is
another thing: there what is found stays behind a tool that calls it.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from random import Random
from typing import Any

from toolshift.core.layer import Below, Layer, Memory
from toolshift.core.scene import Scene
from toolshift.core.shift import Change, NotApplicable, Severity, shift
from toolshift.core.tool import Param, Result, Tool
from toolshift.shifts.action import free_names
from toolshift.shifts.careless import oracle_unchanged
from toolshift.shifts.ranking import index_of
from toolshift.shifts.toolset import QUERY, said

MOST_FOUND = {1: 10, 2: 5, 3: 3}
"""Tools that one search finds at most, by severity."""


@dataclass(frozen=True, eq=False)
class Deferred(Layer):
    """Tools that are in the list only once a search has found them.

    Attributes:
        search: the tool that searches.
        pinned: names of tools that are always shown.
        most: how many tools one search finds.
        nothing: what a search says that finds none.
    """

    search: Tool
    pinned: frozenset[str]
    most: int
    nothing: str

    defers = True
    slots = frozenset(("the way to a tool that is not in the list",))

    def phase(self, memory: Memory) -> int:
        """Which tools have been found: a number of their names."""
        found = memory.get("found")
        if not found:
            return 0
        return int.from_bytes(blake2b("\n".join(sorted(found)).encode(), digest_size=8).digest())

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        """The search, what is pinned, and what was found, in the order of the list below."""
        memory["below"] = tools
        known = self.pinned | memory.get("found", frozenset())
        shown = [tool for tool in tools if tool.retired or tool.name in known]
        return (self.search, *shown)

    def changes_results(self, tool: Tool) -> bool:
        """Those of the search alone."""
        return tool.name == self.search.name

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Searches, or calls as below; a tool that a result names is loaded with it."""
        if name == self.search.name:
            return self._found(str(arguments[self.search.params[0].name]), memory)
        result = below(name, arguments)
        if result.hint is not None and result.hint.tool:
            memory["found"] = memory.get("found", frozenset()) | {result.hint.tool}
        return result

    def _found(self, query: str, memory: Memory) -> Result:
        tools: tuple[Tool, ...] = memory["below"]
        known = self.pinned | memory.get("found", frozenset())
        ranked = index_of(tools).search(query, len(tools))
        found = [t for t in ranked if not t.retired and t.name not in known][: self.most]
        memory["found"] = known | {tool.name for tool in found}
        listed = [{"name": tool.name, "description": tool.description} for tool in found]
        return Result(True, listed or [{"message": self.nothing}])


@shift(
    tier="interaction",
    dimension="action",
    level=2,
    order=4,  # above all else: what it finds is what would be shown without it
    imitates="Anthropic Messages: tools with defer_loading are found by tool_search_tool_bm25",
)
def tool_search(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Defer all tools until a search finds them: 10 (1), 5 (2) or 3 (3) by one search.

    At severity 1 the tool that the task needs first is pinned, so that it is always shown.
    """
    if len([tool for tool in scene.tools if tool.origin]) < 2:
        raise NotApplicable("there are not two tools to put behind a search")
    layer = deferring(scene, rng, MOST_FOUND[severity], pinned=severity == 1)
    if scene.asks and not oracle_unchanged(scene, layer):  # live tools have no task
        raise NotApplicable("no words that the task is told in find what it needs")
    return Change(layer=layer)


def deferring(scene: Scene, rng: Random, most: int, pinned: bool) -> Deferred:
    """The layer that defers the tools of a scene, but for the first one needed if it is pinned."""
    form = said("deferred", scene, rng)
    name = free_names(scene)(form["search"])
    words = {"type": "string", "minLength": 1, "description": form["words"]}
    query = Param(form["query"], name + QUERY, words, free=True)
    text = form["finds"].format(most=most)
    search = Tool(name, text, (query,), (), many=True, lists=True)
    first = frozenset(step.name for step in scene.calls[:1]) if pinned else frozenset[str]()
    return Deferred(search, first, most, form["nothing"])
