"""Domains: one file a world. Plugins add theirs by the entry point group `toolshift.worlds`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from toolshift.errors import UsageError
from toolshift.world import World

OURS = ("poi", "medical", "retail")


@cache
def worlds() -> dict[str, World]:
    """Every world by name: ours, and those of installed plugins."""
    found: dict[str, World] = {
        name: import_module(f"toolshift.worlds.{name}").WORLD for name in OURS
    }
    for entry in entry_points(group="toolshift.worlds"):
        found[entry.name] = entry.load()
    return found


def find_world(name: str) -> World:
    """The world of this name.

    Raises:
        UsageError: where there is none; offers the nearest names.
    """
    from toolshift.shift import unknown

    if name not in worlds():
        raise UsageError(unknown("world", name, worlds()))
    return worlds()[name]
