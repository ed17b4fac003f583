"""The user's own shifts and worlds that are not installed: named files and modules."""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import isfunction
from pathlib import Path
from types import FunctionType, ModuleType

from toolshift.core.command_line import PLUGINS
from toolshift.core.errors import UsageError, defined_at, ended, place_of, placed
from toolshift.core.shift import declared
from toolshift.core.world import World


def named() -> tuple[str, ...]:
    """The files and modules that are named now, in order."""
    return tuple(filter(None, os.environ.get(PLUGINS, "").split(os.pathsep)))


def name(plugin: str) -> None:
    """Adds a file or module; processes started from now on know it too."""
    if plugin not in named():
        os.environ[PLUGINS] = os.pathsep.join((*named(), plugin))


def load_all() -> tuple[ModuleType, ...]:
    """Imports every file and module that is named, each once."""
    return tuple(map(load, named()))


def worlds_in(module: ModuleType) -> list[World]:
    """The worlds that a module has at its top: objects, and classes of which it has no object."""
    mine = [value for value in vars(module).values() if isinstance(value, World)]
    for value in vars(module).values():
        if not isinstance(value, type) or not issubclass(value, World):
            continue
        own = value.__module__ == module.__name__ and hasattr(value, "name")
        if own and not any(type(world) is value for world in mine):
            mine.append(value())
    return list(dict.fromkeys(mine))


def undecorated(name: str) -> str:
    """What makes a function of a plugin that has this name a shift; "" where there is none."""
    for plugin in named():
        function = vars(load(plugin)).get(name)
        if isfunction(function):
            return _no_shift_yet(plugin, function)
    return ""


def _no_shift_yet(plugin: str, function: FunctionType) -> str:
    place = placed(f"plugin {plugin}: {function.__name__} is a function", defined_at(function))
    return f"{place} and no shift: put @shift(tier=..., dimension=...) over it"


def _nothing_in(plugin: str, module: ModuleType) -> str:
    """What is said of a module without a shift and a world: nothing of it would be known."""
    own = (
        one for one in vars(module).values() if getattr(one, "__module__", "") == module.__name__
    )
    rules = [one for one in own if isfunction(one) and one.__code__.co_argcount == _OF_A_RULE]
    if rules:
        return _no_shift_yet(plugin, rules[0])
    return (
        f"plugin {plugin}: it has no shift and no world. A shift is a function of (scene, rng, "
        "severity) under @shift(...), a world a toolshift.World at its top; an agent is named as "
        "MODULE:NAME, and needs no --plugin"
    )


_OF_A_RULE = 3
"""Parameters of the function of a shift."""


def load(plugin: str) -> ModuleType:
    """Imports a file or a module; from the working directory too."""
    return _load(plugin, str(Path(plugin).resolve()) if plugin.endswith(".py") else "")


@cache
def _load(plugin: str, file: str) -> ModuleType:
    try:
        module = _from_file(plugin, Path(file)) if file else _from_name(plugin)
    except UsageError as wrong:
        raise UsageError(placed(str(wrong), place_of(wrong))) from wrong
    except KeyboardInterrupt:
        raise
    except BaseException as fault:  # an exit too: it would end this program, and look like success
        raise UsageError(f"plugin {plugin} cannot be imported: {ended(fault)}") from fault
    if not _brings(module):
        raise UsageError(_nothing_in(plugin, module))
    return module


def _brings(module: ModuleType) -> bool:
    """Whether a module, or what it imports of its own package, has a shift or a world."""
    held = [*vars(module).values()]
    inside = [value for one in held for value in getattr(one, "__dict__", {}).values()]
    rules = {id(shift.rule): shift.rule.__module__ for shift in declared.values()}
    return (
        any(home.split(".")[0] == module.__name__.split(".")[0] for home in rules.values())
        or any(id(value) in rules for value in held)
        or any(isinstance(value, World) for value in (*held, *inside))
        or bool(worlds_in(module))
    )


def _from_name(plugin: str) -> ModuleType:
    if Path(plugin).suffix or os.sep in plugin:
        raise UsageError(f"plugin {plugin}: name a file that ends in .py, or a module")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        imported = import_module(plugin)
        if getattr(imported, "__file__", None) is None and Path(plugin).is_dir():
            raise UsageError(f"plugin {plugin}: it is a folder; name the file in it, FILE.py")
        return imported
    except ModuleNotFoundError as fault:
        if fault.name != plugin.partition(".")[0] and fault.name != plugin:
            raise
        near = get_close_matches(plugin, [path.stem for path in Path().glob("*.py")])
        offer = f": did you mean {near[0]}.py?" if near else ""
        raise UsageError(
            f"plugin {plugin}: there is no such module here or on the Python path{offer}"
        ) from None


def _from_file(plugin: str, file: Path) -> ModuleType:
    if file.is_dir():
        raise UsageError(
            f"plugin {plugin}: this is a folder, but a plugin must be a file or a module"
        )
    if not file.is_file():
        near = get_close_matches(file.name, [path.name for path in file.parent.glob("*.py")])
        offer = f": did you mean {near[0]}?" if near else ""
        raise UsageError(f"plugin {plugin}: there is no such file{offer}")
    if file.stem in sys.stdlib_module_names:
        raise UsageError(
            f"plugin {plugin}: Python already has a module named {file.stem}; rename the file"
        )
    known = sys.modules.get(file.stem)
    if known is not None and str(getattr(known, "__file__", "")) == str(file):
        return known
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[file.stem] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except BaseException:  # half a module must not pass for the whole one when it is asked for next
        del sys.modules[file.stem]
        if known is not None:
            sys.modules[file.stem] = known
        raise
    return module
