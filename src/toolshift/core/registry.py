"""One registry for each kind of thing that can be added: agents, worlds, shifts.

A registry knows names and `module:object` strings. The object is imported when its name is first
asked for. Ours come from one table, those of other packages from the entry points of one group.
Nothing that looks a name up can tell which is which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import cached_property, reduce
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from toolshift.core.errors import UsageError, described, place_of, placed
from toolshift.core.names import unknown

T = TypeVar("T")


class Registry(Generic[T]):
    """Things of one kind, by name.

    A name with `*` in it is a pattern, such as `*.json`: its string names a function, which is
    given the name that was asked for and returns the thing. An entry point whose value is a module
    alone is imported; what that registers in `added` counts.

    Args:
        what: the kind of thing, for messages: "world".
        ours: the table of what ships with ToolShift: names and `module:object` strings.
        group: the entry-point group of other packages.
        added: what modules have registered by themselves as they were imported, by name.
        plugins: imports further modules that register things by themselves.
    """

    def __init__(
        self,
        what: str,
        ours: Mapping[str, str],
        group: str,
        added: dict[str, T] | None = None,
        plugins: Callable[[], None] = lambda: None,
    ) -> None:
        self.what, self.ours, self.group = what, ours, group
        self._plugins = plugins
        self._found: dict[str, T] = {} if added is None else added

    def find(self, name: str) -> T:
        """Finds the thing with a name.

        Args:
            name: a name of the table or of an entry point, or one that a pattern covers.

        Returns:
            The object itself; the same one for the same name, but for patterns.

        Raises:
            UsageError: where there is none (the nearest names are offered), or where importing
                it fails.
        """
        if name not in self._found and ":" in self._strings.get(name, ""):
            loaded = self._load(self._strings[name])
            self._found.setdefault(name, loaded)  # its import may have registered it by itself
        if name in self._found:
            return self._found[name]
        pattern = next((p for p in self._patterns if fnmatchcase(name, p)), "")
        if pattern:
            made: T = self._load(self._patterns[pattern])(name)
            return made
        self._import_modules()
        if name not in self._found:
            raise UsageError(unknown(self.what, name, self.names()))
        return self._found[name]

    def names(self) -> tuple[str, ...]:
        """Every name but patterns: ours in the order of the table, then those of others."""
        self._import_modules()
        known = [name for name, value in self._strings.items() if ":" in value]
        return tuple(dict.fromkeys((*known, *self._found)))

    def installed(self) -> tuple[str, ...]:
        """The names of the table and of entry points; nothing is imported for it."""
        return tuple(name for name, value in self._strings.items() if ":" in value)

    def all(self) -> dict[str, T]:
        """Every thing by name, in the order of `names`; all of them are imported for it."""
        return {name: self.find(name) for name in self.names()}

    @cached_property
    def _entries(self) -> dict[str, str]:
        others = {entry.name: entry.value for entry in entry_points(group=self.group)}
        return {**others, **self.ours}

    @cached_property
    def _strings(self) -> dict[str, str]:
        ours_first = {**self.ours, **self._entries}
        return {name: value for name, value in ours_first.items() if "*" not in name}

    @cached_property
    def _patterns(self) -> dict[str, str]:
        return {name: value for name, value in self._entries.items() if "*" in name}

    def _import_modules(self) -> None:
        """Imports the plugins, and the entry points that are modules."""
        self._plugins()
        for value in self._modules:
            self._load(value)

    @cached_property
    def _modules(self) -> tuple[str, ...]:
        return tuple(value for value in self._strings.values() if ":" not in value)

    def _load(self, value: str) -> Any:
        """Imports what a `module:object` or a `module` string names."""
        module, _, path = value.partition(":")
        try:
            return reduce(getattr, filter(None, path.split(".")), import_module(module))
        except UsageError as wrong:
            raise UsageError(placed(str(wrong), place_of(wrong))) from wrong
        except Exception as fault:
            raise UsageError(
                f"{self.what} {value} cannot be imported: {described(fault)}"
            ) from fault
