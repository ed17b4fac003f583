"""Noticing that the tools moved, and telling the agent: `toolshift.adapt(agent, lock=...)`."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """Makes this package callable: `toolshift.adapt` is both the package and the function.

    Python sets a package as an attribute of the one above it as soon as a module in it is imported.
    """

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Calls `layer.adapt`."""
        return import_module(f"{self.__name__}.layer").adapt(*given, **named)


sys.modules[__name__].__class__ = _Package
