"""Domains: one folder a world, imported when it is first asked for.

Plugins add theirs by the entry point group `toolshift.worlds`. A YAML file of tasks over the user's
own tools is a world as well (`worlds.own`): named by its path it is read, and from then on it goes
by its name and a hash, `my_shop@1f2e3d4c`, so that no path stands in what is stored.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.core.world import World
from toolshift.worlds.names import is_file

OURS = ("poi", "medical", "retail")


def stored_name(name: str) -> str:
    """The name by which results know a world; another than the given one for a file."""
    return find_world(name).name if is_file(name) else name


def world_names() -> tuple[str, ...]:
    """The names of every world: ours, and those of installed plugins."""
    return (*OURS, *(entry.name for entry in entry_points(group="toolshift.worlds")))


@cache
def find_world(name: str) -> World:
    """The world of this name.

    Raises:
        UsageError: where there is none; offers the nearest names.
    """
    if is_file(name) or "@" in name:
        from toolshift.worlds.own import find_own

        own: World = find_own(name)
        return own
    if name in OURS:
        world: World = import_module(f"toolshift.worlds.{name}").WORLD
        return world
    for entry in entry_points(group="toolshift.worlds", name=name):
        loaded: World = entry.load()
        return loaded
    raise UsageError(unknown("world", name, world_names()))
