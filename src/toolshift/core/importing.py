"""Importing by name: what a user names, and what of ours is heavy or needs an extra."""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from functools import reduce
from importlib import import_module
from typing import Any

from toolshift.core.errors import UsageError, described


def import_attribute(module: str, attribute: str, what: str) -> Any:
    """Imports something of the caller's.

    Args:
        module: to import, from the working directory too.
        attribute: of the module; may have dots.
        what: it is named for, at the beginning of each message.

    Returns:
        The object.

    Raises:
        UsageError: where the module or the attribute is not there, or importing it fails.
    """
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    if not module or not all(part.isidentifier() for part in module.split(".")):
        raise UsageError(f"{what} {module}:{attribute}: {module!r} is no module name")
    try:
        found = import_module(module)
    except ModuleNotFoundError as fault:
        if fault.name and module.partition(".")[0] == fault.name.partition(".")[0]:
            raise UsageError(
                f"{what} {module}:{attribute}: there is no module {fault.name!r} here or on the "
                "Python path"
            ) from None
        raise UsageError(
            f"{what} {module}:{attribute}: it imports {fault.name!r}, which is not installed"
        ) from None
    except Exception as fault:
        raise UsageError(
            f"{what} {module}:{attribute}: importing {module} raised {described(fault)}"
        ) from fault
    for name in attribute.split("."):
        if not hasattr(found, name):
            names = [each for each in dir(found) if not each.startswith("_")]
            near = get_close_matches(name, names, n=3)
            offer = f": did you mean {' or '.join(near)}?" if near else ""
            raise UsageError(f"{what}: {module} has no {name!r}{offer}")
        found = getattr(found, name)
    return found


def load(name: str) -> Any:
    """Imports a part of ToolShift when it is first needed: one that is heavy, or needs an extra.

    Such names go downward through the layers like any import, which a test sees to.

    Args:
        name: a `module:object` string, or a module.

    Returns:
        The object, or the module.
    """
    module, _, path = name.partition(":")
    return reduce(getattr, filter(None, path.split(".")), import_module(module))
