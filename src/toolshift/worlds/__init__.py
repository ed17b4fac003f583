"""Domains: one folder a world, imported when it is first asked for.

Plugins add theirs by the entry point group `toolshift.worlds`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from toolshift.errors import UsageError
from toolshift.world import World

OURS = ("poi", "medical", "retail")


def world_names() -> tuple[str, ...]:
    """The names of every world: ours, and those of installed plugins."""
    return (*OURS, *(entry.name for entry in entry_points(group="toolshift.worlds")))


@cache
def find_world(name: str) -> World:
    """The world of this name.

    Raises:
        UsageError: where there is none; offers the nearest names.
    """
    from toolshift.shift import unknown

    if name in OURS:
        world: World = import_module(f"toolshift.worlds.{name}").WORLD
        return world
    for entry in entry_points(group="toolshift.worlds", name=name):
        loaded: World = entry.load()
        return loaded
    raise UsageError(unknown("world", name, world_names()))
