"""Domains: one folder a world, imported when it is first asked for.

Other packages add theirs by the entry-point group `toolshift.worlds`. A YAML file of tasks over the
user's own tools is a world as well (`worlds.own`): named by its path it is read, and from then on
it goes by its name and a hash, `my_shop@1f2e3d4c`, so that no path stands in what is stored.
"""

from __future__ import annotations

from functools import cache

from toolshift.core.registry import Registry
from toolshift.core.world import World
from toolshift.worlds.names import is_file

WORLDS: Registry[World] = Registry(
    "world",
    {
        "poi": "toolshift.worlds.poi:WORLD",
        "medical": "toolshift.worlds.medical:WORLD",
        "retail": "toolshift.worlds.retail:WORLD",
        "*.yaml": "toolshift.worlds.own:find_own",
        "*.yml": "toolshift.worlds.own:find_own",
        "*@*": "toolshift.worlds.own:find_own",
    },
    "toolshift.worlds",
)
OURS = ("poi", "medical", "retail")


def stored_name(name: str) -> str:
    """The name by which results know a world; another than the given one for a file."""
    return find_world(name).name if is_file(name) else name


def world_names() -> tuple[str, ...]:
    """The names of every world: ours, and those of installed plugins."""
    return WORLDS.names()


@cache
def find_world(name: str) -> World:
    """The world of this name.

    Args:
        name: of a world, a path, or `NAME@HASH`.

    Returns:
        The world; the same object for the same name.

    Raises:
        UsageError: where there is none; offers the nearest names.
    """
    return WORLDS.find(name)
