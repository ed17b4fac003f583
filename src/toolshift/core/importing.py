"""Imports by name: objects that a user names, and our modules that are heavy or need extras."""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from toolshift.core.errors import UsageError, ended, place_of, placed

MAX_LISTED = 12
"""Names of a module that a message lists."""


def import_attribute(module: str, attribute: str, what: str) -> Any:
    """Imports an object that the caller named."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    if module.endswith((".py", "/")) or os.sep in module:
        stem = module.removesuffix(".py").strip(os.sep).replace(os.sep, ".")
        raise UsageError(
            f"{what} {module}:{attribute}: {module!r} is a file; name its module, as in "
            f"{stem}:{attribute or 'NAME'}"
        )
    if not module or not all(part.isidentifier() for part in module.split(".")):
        raise UsageError(f"{what} {module}:{attribute}: {module!r} is no module name")
    target: Any = _imported(module, attribute, what)
    for name in attribute.split("."):
        if not hasattr(target, name):
            raise UsageError(f"{what} {module}:{attribute}: {_lacks(target, module, name)}")
        target = getattr(target, name)
    return target


def _imported(module: str, attribute: str, what: str) -> ModuleType:
    """Imports a module that the caller named."""
    try:
        return import_module(module)
    except ModuleNotFoundError as fault:
        if fault.name and module.partition(".")[0] == fault.name.partition(".")[0]:
            files = [path.stem for path in Path().glob("*.py") if path.is_file()]
            near = get_close_matches(module, files, n=1)
            offer = f"; did you mean {near[0]}:{attribute}?" if near else ""
            raise UsageError(
                f"{what} {module}:{attribute}: there is no module {fault.name!r} here or on the "
                f"Python path{offer}"
            ) from None
        raise UsageError(
            f"{what} {module}:{attribute}: it imports {fault.name!r}, which is not installed"
        ) from None
    except UsageError as wrong:
        raise UsageError(placed(str(wrong), place_of(wrong))) from wrong
    except KeyboardInterrupt:
        raise
    except BaseException as fault:  # an exit too: it would end this program, and look like success
        raise UsageError(
            f"{what} {module}:{attribute}: importing {module} raised {ended(fault)}"
        ) from fault


def _lacks(target: Any, module: str, name: str) -> str:
    """The message for a module that has no object of this name."""
    names = [public for public in dir(target) if not public.startswith("_")]
    own = [public for public in names if _is_own(target, public)]
    near = get_close_matches(name, own, n=3) or get_close_matches(name, names, n=3)
    offer = f"it has {', '.join(own[:MAX_LISTED])}" if own else "it has nothing of its own"
    if near:
        offer = f"did you mean {' or '.join(f'{module}:{public}' for public in near)}?"
    message = f"{module} has no {name!r}" if name else "name what is meant in the module"
    return f"{message}: {offer}"


def _is_own(module: Any, name: str) -> bool:
    """Whether a name was made in a module, and not imported there."""
    thing = getattr(module, name)
    home = getattr(thing, "__module__", None) if callable(thing) else type(thing).__module__
    return not isinstance(thing, ModuleType) and home == getattr(module, "__name__", None)


def in_module(name: str, what: str) -> str:
    """What to write for an object of a module that was named otherwise."""
    head, _, last = name.removesuffix(".py").replace(os.sep, ".").rpartition(".")
    for module, attribute in ((name.removesuffix(".py").replace(os.sep, "."), what), (head, last)):
        if _is_module(module):
            return f"{module}:{attribute}"
    return ""


def _is_module(name: str) -> bool:
    """Whether a name is that of a module that is there; nothing but its parents is imported."""
    parts = name.split(".")
    if not name or not all(part.isidentifier() for part in parts):
        return False
    path = Path(*parts)
    try:
        if path.with_suffix(".py").exists() or path.is_dir():
            return True
        return find_spec(name) is not None
    except (ImportError, ValueError, OSError):  # a name may be too long for a file
        return False


def load(name: str) -> Any:
    """Imports a heavy or optional module of ToolShift when it is first needed.

    Such names go downward through the layers like any import, which a test sees to.
    """
    module, _, path = name.partition(":")
    return reduce(getattr, filter(None, path.split(".")), import_module(module))
