"""Which shifts of a stack change anything while tools are used.

A shift may find nothing to change in the results of foreign tools: a format cannot drift in a
sentence. Each layer is watched in both directions, so that this can be said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import msgspec

from toolshift.core.layer import Below, Layer, Memory
from toolshift.core.tool import Result, Tool

_now: ContextVar[set[str] | None] = ContextVar("_now", default=None)


class Changes(msgspec.Struct):
    """What a shift has changed so far.

    Attributes:
        tools: the tool list, at any time.
        calls: in how many calls it passed on another call, several, or none.
        results: in how many it gave back another result.
    """

    tools: bool = False
    calls: int = 0
    results: int = 0

    @property
    def any(self) -> bool:
        """Whether it has changed anything."""
        return bool(self.tools or self.calls or self.results)

    def add(self, other: Changes) -> None:
        """Adds those of another session."""
        self.tools |= other.tools
        self.calls += other.calls
        self.results += other.results


@contextmanager
def noting() -> Iterator[set[str]]:
    """Collects the names of the shifts that change a call made inside."""
    found: set[str] = set()
    token = _now.set(found)
    try:
        yield found
    finally:
        _now.reset(token)


@dataclass(frozen=True, eq=False)
class Watched(Layer):
    """A layer of a shift, with a note of what it changes."""

    inner: Layer
    shift: str
    changes: Changes

    @property
    def title(self) -> str:
        """The name of the layer that is watched."""
        return self.inner.title

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        """The tools as the layer shows them."""
        shown = self.inner.tools(tools, memory)
        self.changes.tools |= _seen(shown) != _seen(tools)
        return shown

    def phase(self, memory: Memory) -> int:
        """That of the layer."""
        return self.inner.phase(memory)

    def changes_results(self, tool: Tool) -> bool:
        """Whether the layer says so."""
        return self.inner.changes_results(tool)

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Calls the layer, and compares what it was given with what it passed on."""
        passed: list[tuple[str, dict[str, Any]]] = []
        heard: list[Result] = []

        def under(name: str, arguments: dict[str, Any]) -> Result:
            passed.append((name, arguments))
            result = below(name, arguments)
            heard.append(result)
            return result

        given = (name, dict(arguments))
        result: Result | None = None
        try:
            result = self.inner.call(name, arguments, memory, under)
        finally:  # a call may leave by an exception: a model proxy asks its agent so
            calls = passed != [given]
            results = result is not None and (not heard or _said(result) != _said(heard[-1]))
            self.changes.calls += calls
            self.changes.results += results
            touched = _now.get()
            if touched is not None and (calls or results):
                touched.add(self.shift)
        return result


def _seen(tools: Sequence[Tool]) -> list[Any]:
    return [(tool.name, tool.description, tool.params) for tool in tools if not tool.retired]


def _said(result: Result) -> tuple[Any, ...]:
    return result.ok, result.data, result.form, result.notice


def unchanged(changes: Mapping[str, Changes]) -> list[str]:
    """The shifts that have changed nothing."""
    return [shift for shift, each in changes.items() if not each.any]
