"""One registry for each kind of thing that can be added: agents, worlds, shifts.

A registry knows names and `module:object` strings. The object is imported when its name is first
asked for. Ours come from one table, those of other packages from the entry points of one group.
Nothing that looks a name up can tell which is which.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import cached_property, reduce
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from toolshift.core.errors import UsageError, ended, place_of, placed
from toolshift.core.names import unknown

T = TypeVar("T")


class Registry(Generic[T]):
    """Things of one kind, by name.

    A name with `*` in it is a pattern, such as `*.json`: its string names a function, which is
    given the name that was asked for and returns the thing.

    Args:
        what: the kind of thing, for messages: "world".
        ours: the table of what ships with ToolShift: names and `module:object` strings.
        group: the entry-point group of other packages.
        added: what modules have registered by themselves as they were imported, by name.
        plugins: imports further modules that register things by themselves.
        wrong: what is wrong with a thing that another package names, as a clause; "" for nothing.
        modules: an entry point may name a module alone, which registers things in `added`.
    """

    def __init__(
        self,
        what: str,
        ours: Mapping[str, str],
        group: str,
        added: dict[str, T] | None = None,
        plugins: Callable[[], None] = lambda: None,
        wrong: Callable[[Any], str] = lambda _thing: "",
        modules: bool = False,
    ) -> None:
        self.what, self.ours, self.group = what, ours, group
        self._plugins, self._wrong, self._take_modules = plugins, wrong, modules
        self._found: dict[str, T] = {} if added is None else added

    def find(self, name: str) -> T:
        """Finds the thing with a name, the same one each time, but for names that a pattern covers.

        A `UsageError` where there is none (the nearest names are offered), where importing it
        fails, and where two packages have the name, of which one would go unseen.
        """
        if others := self._others.get(name):
            self._check_alone(name, others)
        if name not in self._found and ":" in self._strings.get(name, ""):
            loaded = self._load(self._strings[name], name)
            if name not in self._found:  # its import may have registered it by itself
                wrong = self._wrong(loaded) if name not in self.ours else ""
                if wrong:
                    raise UsageError(f"{self.title(name)} {wrong}")
                self._found[name] = loaded
        if name in self._found:
            return self._found[name]
        pattern = next((p for p in self._patterns if fnmatchcase(name, p)), "")
        if pattern:
            made: T = self._load(self._patterns[pattern], pattern)(name)
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

    def declared(self) -> dict[str, str]:
        """The strings of entry points by name, modules too; nothing is imported for it."""
        return {name: entries[0].value for name, entries in self._others.items()}

    def package(self, name: str) -> str:
        """The package that has an entry point of this name, with its version; "" for ours."""
        others = self._others.get(name)
        return _package(others[0]) if others and name not in self.ours else ""

    def title(self, name: str) -> str:
        """A thing of another package as messages call it, with the place of its code."""
        return f"{self.what} {name!r} of {self.package(name)} ({self.declared()[name]})"

    def _check_alone(self, name: str, others: tuple[EntryPoint, ...]) -> None:
        owners = ["ToolShift"] * (name in self.ours)
        owners += [f"{_package(entry)} ({entry.value})" for entry in others]
        if len(owners) > 1:
            raise UsageError(
                f"{self.what} {name!r} is registered twice, by {' and by '.join(owners)}: rename "
                f"or uninstall {'the latter' if name in self.ours else 'one of the two'}"
            )

    @cached_property
    def _others(self) -> dict[str, tuple[EntryPoint, ...]]:
        """The entry points of other packages by name; a package that is found twice counts once."""
        found: dict[str, dict[tuple[str, str], EntryPoint]] = {}
        for entry in entry_points(group=self.group):
            key = (entry.dist.name if entry.dist else "", entry.value)
            found.setdefault(entry.name, {}).setdefault(key, entry)
        return {name: tuple(entries.values()) for name, entries in found.items()}

    @cached_property
    def _entries(self) -> dict[str, str]:
        return {**self.declared(), **self.ours}

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
        for name, value in self._modules.items():
            if not self._take_modules:
                raise UsageError(
                    f"{self.title(name)} is a module: name the {self.what} in it, MODULE:NAME"
                )
            known, is_new = len(self._found), value not in sys.modules
            self._load(value, name)
            if is_new and len(self._found) == known:
                raise UsageError(
                    f"{self.title(name)} is a module that registers no {self.what} when it is "
                    f"imported: name the {self.what} in it, MODULE:NAME, or uninstall "
                    f"{self.package(name).partition(' ')[0]}"
                )

    @cached_property
    def _modules(self) -> dict[str, str]:
        return {name: value for name, value in self._strings.items() if ":" not in value}

    def _load(self, value: str, name: str) -> Any:
        """Imports what a `module:object` or a `module` string names."""
        module, _, path = value.partition(":")
        try:
            return reduce(getattr, filter(None, path.split(".")), import_module(module))
        except UsageError as wrong:
            raise UsageError(placed(str(wrong), place_of(wrong))) from wrong
        except (Exception, SystemExit) as fault:  # an exit would end this program, unsaid
            package = self.package(name)
            what = self.title(name) if package else f"{self.what} {value}"
            advice = f": fix it, or uninstall {package.partition(' ')[0]}" if package else ""
            raise UsageError(f"{what} cannot be imported: {ended(fault)}{advice}") from fault


def no_such(kind: type, name: str) -> Callable[[object], str]:
    """What is wrong with a thing that is not of a kind, which goes by that name in messages.

    A protocol is held against the names that it has.
    """
    if not getattr(kind, "_is_protocol", False):
        return lambda thing: "" if isinstance(thing, kind) else _of_type(thing, name)
    needed = [*vars(kind).get("__annotations__", {}), *filter(_is_plain, vars(kind))]

    def lacking(thing: object) -> str:
        lacks = [each for each in needed if not hasattr(thing, each)]
        return f"{_of_type(thing, name)}: it has no {', no '.join(lacks)}" if lacks else ""

    return lacking


def _is_plain(name: str) -> bool:
    return not name.startswith("_")


def _of_type(thing: object, name: str) -> str:
    if isinstance(thing, type):
        return f"is the class {thing.__name__}, and no {name}"
    return f"is of type {type(thing).__name__}, and no {name}"


def _package(entry: EntryPoint) -> str:
    """The package of an entry point, as pip writes it."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an installed package"
