"""A scene with fewer tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolshift.core.errors import UsageError
from toolshift.core.layer import Layer, Memory
from toolshift.core.names import nearest
from toolshift.core.scene import Scene
from toolshift.core.tool import Tool


@dataclass(frozen=True, eq=False)
class OnlyTools(Layer):
    """Shows some of the tools only; those that come up later in an episode stay."""

    hidden: frozenset[str]

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        """What is left."""
        return tuple(tool for tool in tools if tool.name not in self.hidden)


def with_tools(scene: Scene, shown: Sequence[str]) -> Scene:
    """The scene with these of its tools only."""
    names = {tool.name for tool in scene.tools}
    missing = set(shown) - names
    if missing:
        names_missing = ", ".join(sorted(missing))
        raise UsageError(f"the scene shows no tool {names_missing}: {nearest(min(missing), names)}")
    return scene.with_(layers=(*scene.layers, OnlyTools(frozenset(names - set(shown)))))
