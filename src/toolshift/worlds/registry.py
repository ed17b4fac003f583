"""Domains: one folder a world, imported when it is first asked for.

Other packages add theirs by the entry-point group `toolshift.worlds`. A YAML file of tasks over the
user's own tools is a world as well (`worlds.own`): named by its path it is read, and from then on
it goes by its name and a hash, `my_shop@1f2e3d4c`, so that no path stands in what is stored. The
categories of BFCL are worlds where the user has installed `bfcl-eval` (`bfcl:multi_turn_base`), and
so are the domains of tau2-bench (`tau2:retail`).
"""

from __future__ import annotations

import sys
from functools import cache

from toolshift.core import plugins
from toolshift.core.errors import UsageError, defined_at, described, placed
from toolshift.core.importing import import_attribute, in_module
from toolshift.core.plugins import load_all, worlds_in
from toolshift.core.registry import Registry
from toolshift.core.world import World
from toolshift.worlds.declared import check_declared
from toolshift.worlds.names import BFCL, TAU2, folder_of, is_file

OURS = ("poi", "medical", "retail")
_added: dict[str, World] = {}


def _load_plugins() -> None:
    """Imports the plugins that are named, for the worlds that they have."""
    for module in load_all():
        for world in worlds_in(module):
            register(world)


WORLDS: Registry[World] = Registry(
    "world",
    {
        "poi": "toolshift.worlds.poi:WORLD",
        "medical": "toolshift.worlds.medical:WORLD",
        "retail": "toolshift.worlds.retail:WORLD",
        "*.yaml": "toolshift.worlds.own:find_own",
        "*.yml": "toolshift.worlds.own:find_own",
        "*@*": "toolshift.worlds.own:find_own",
        "bfcl:*": "toolshift.worlds.bfcl:find_bfcl",
        "tau2:*": "toolshift.worlds.tau2:find_tau2",
        "*:*": "toolshift.worlds.registry:find_object",
    },
    "toolshift.worlds",
    _added,
    _load_plugins,
)


def stored_name(name: str) -> str:
    """The name by which results know a world."""
    return find_world(name).name if is_file(name) or ":" in name else name


def world_names() -> tuple[str, ...]:
    """The names of every world: ours, and those of plugins."""
    return WORLDS.names()


def is_loaded(name: str) -> bool:
    """Whether a world is ToolShift's, an installed package's, or known in this process already.

    Any other name is one of a file or a module, which `find_world` would import or start.
    """
    named = name.startswith((BFCL, TAU2))
    return named or name in WORLDS.installed() or name in world_names()


def find_world(name: str) -> World:
    """The world of this name.

    Args:
        name: of a world, a path, `NAME@HASH`, or `module:object`.

    Returns:
        The world; the same object for the same name.

    Raises:
        UsageError: where there is none (offers the nearest names), and where it declares what
            cannot work.
    """
    return _find(name, folder_of(name) if is_file(name) else "")


@cache
def _find(name: str, folder: str) -> World:
    """The world of a name; a file of it is another one in another working directory."""
    try:
        world = WORLDS.find(name)
    except UsageError as fault:
        written = in_module(name, "WORLD") if str(fault).startswith("unknown") else ""
        if not written:
            raise
        raise UsageError(
            f"world {name!r}: a module and the world in it are written as {written}"
        ) from None
    if name in OURS:
        return world
    return as_world(world, f"world {name}")


def find_object(spec: str) -> World:
    """The world that `module:object` names; found by its own name from then on."""
    module, _, attribute = spec.partition(":")
    world = as_world(import_attribute(module, attribute, "world"), f"world {spec}")
    if world.name in WORLDS.installed() and WORLDS.find(world.name) is world:
        return world  # it has an entry point, by which other processes find it
    register(world)
    plugins.name(module)
    return world


def as_world(given: object, what: str) -> World:
    """A world as it is, or the one of a class."""
    if isinstance(given, type) and issubclass(given, World):
        there = vars(sys.modules[given.__module__]).values()
        made = next((candidate for candidate in there if type(candidate) is given), None)
        try:
            given = made or given()
        except Exception as fault:
            raise UsageError(f"{what} could not be made: {described(fault)}") from fault
    if not isinstance(given, World):
        kind = "a function" if callable(given) else type(given).__name__
        raise UsageError(f"{what} is {kind}, not a toolshift.World or a class of one")
    return given if given.counts else check_declared(given)


def register(world: World) -> str:
    """Makes a world known in this process by its own name."""
    as_world(world, "world")
    name = world.name
    known = _added.get(name)
    if known is None and name in WORLDS.installed():
        known = WORLDS.find(name)
    if known is not None and _class_of(known) != _class_of(world):
        place = placed(f"world {name!r}", defined_at(type(world)))
        raise UsageError(
            f"{place}: {type(known).__module__} has a world of this name already; choose another"
        )
    _added.setdefault(name, world)
    return name


def _class_of(world: World) -> tuple[str, str]:
    return type(world).__module__, type(world).__qualname__
