"""Tools from annotated Python functions: `module`, `module:function` or `module:Class`.

A module gives what its `__all__` names, or else its public functions; a class (or a function
without parameters that makes an object) the public methods of a fresh object. What counts as a
function, and how it is called, `own.functions` says. Every episode gets
its own copy of the module, so that what one changes another does not see. Functions may be
asynchronous (`async def`); so may be the reset, and what checks the state.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any

from toolshift.core.errors import UsageError, described
from toolshift.core.importing import import_attribute
from toolshift.core.names import unknown
from toolshift.core.text import storable
from toolshift.core.tool import Result, error
from toolshift.episode.contract import finished
from toolshift.worlds.own.file import Place, WorldFile
from toolshift.worlds.own.functions import (
    Callee,
    Function,
    holds_function,
    is_function,
    is_own_function,
    listed,
    looked_up,
    makes_object,
    methods_of,
)
from toolshift.worlds.own.kinds import plain
from toolshift.worlds.own.sources import failure_of, result_of

_IMPORTS = RLock()
"""Held where a copy of a module stands for it; episodes in other threads import it meanwhile."""


def load_own(reference: str, file: WorldFile, place: Place) -> Any:
    """Imports `module` or `module:attribute` of the user's, from the file's folder too."""
    folder = file.path.parent.resolve()
    module, _, attribute = reference.partition(":")
    sys.path[:] = [str(folder), *(each for each in sys.path if each != str(folder))]
    own, loaded = _beside(module, folder), sys.modules.get(module)
    if own.is_file() and loaded is not None and getattr(loaded, "__file__", "") != str(own):
        del sys.modules[module]  # of another world that has a module of this name
    try:
        with _IMPORTS:
            import_attribute(module, "__name__", "python")
            return import_attribute(module, attribute or "__name__", "python")
    except UsageError as wrong:
        raise file.near(place, str(wrong).replace(":__name__", "")) from None


def _beside(module: str, folder: Path) -> Path:
    return folder.joinpath(*module.split(".")).with_suffix(".py")


_PLACE: Place = ("tools", "python")


class PythonSource:
    """Functions and methods of the user's as tools; not `called` where they are only listed."""

    shared = ""

    def __init__(self, file: WorldFile, called: bool = True) -> None:
        self.file = file
        named = file.tools["python"]
        self.references: list[str] = [named] if isinstance(named, str) else list(named)
        for reference in self.references:
            load_own(reference, file, _PLACE)
        opened = self.open()
        try:
            self.listed = [listed(n, made, called) for n, made in opened.functions.items()]
        except UsageError as wrong:
            raise file.near(_PLACE, str(wrong)) from None
        opened.close()

    def open(self) -> PythonTools:
        """Fresh copies of the modules."""
        modules: dict[str, ModuleType] = {}
        functions: dict[str, Function] = {}
        states: list[Any] = []
        for reference in self.references:
            name, _, attribute = reference.partition(":")
            if name not in modules:
                modules[name] = _copy(name, self.file.path.parent.resolve())
            module = modules[name]
            state, found = self._functions(module, attribute)
            states.append(state)
            functions |= found
        reset = self.file.tools.get("reset")
        if reset:
            self._reset(str(reset), modules)
        return PythonTools(functions, states[0])

    def _functions(self, module: ModuleType, attribute: str) -> tuple[Any, dict[str, Function]]:
        if not attribute:
            return module, self._of_module(module)
        reference = f"{module.__name__}:{attribute}"
        made: Any = module
        for part in attribute.split("."):
            made = getattr(made, part)
        if holds_function(made):
            raise self.file.near(_PLACE, _not_a_function(reference, made))
        makes = inspect.isclass(made)
        if not makes and is_function(made):
            makes = self._makes_object(reference, made)
            if not makes:
                name = getattr(made, "__name__", "")
                return module, {name if name.isidentifier() else part: made}
        state = self._made(reference, made) if makes else made
        methods = methods_of(state)
        if not methods:
            why = f"{reference} has no public method"
            if makes and not inspect.isclass(made):
                why = (
                    f"what {reference} returns has no public method; to be a tool itself, a "
                    "function without parameters needs a docstring"
                )
            raise self.file.near(_PLACE, why)
        return state, methods

    def _of_module(self, module: ModuleType) -> dict[str, Function]:
        """The tools of a module: what its `__all__` names, or its own public functions."""
        name, chosen = module.__name__, getattr(module, "__all__", None)
        for each in chosen or ():
            if not hasattr(module, each):
                why = unknown(f"name in __all__ of {name}", each, vars(module))
                raise self.file.near(_PLACE, why)
        public = {key: value for key, value in vars(module).items() if not key.startswith("_")}
        named = {each: getattr(module, each) for each in chosen} if chosen else public
        for key, value in named.items():
            if holds_function(value):
                raise self.file.near(_PLACE, _not_a_function(f"{name}:{key}", value))
        if chosen:
            found = {key: value for key, value in named.items() if is_function(value)}
        else:
            found = {key: value for key, value in named.items() if is_own_function(value, name)}
        if not found:
            raise self.file.near(_PLACE, f"{name} has no public function")
        return found

    def _makes_object(self, reference: str, function: Function) -> bool:
        try:
            return makes_object(function)
        except ValueError:
            why = f"{reference} cannot be a tool: Python does not know its arguments"
            raise self.file.near(_PLACE, why) from None

    def _made(self, reference: str, make: Function) -> Any:
        """The object of which the methods are tools."""
        try:
            return finished(make())
        except (Exception, SystemExit) as fault:
            why = f"{reference} is called without arguments, and raised {described(fault)}"
            raise self.file.near(_PLACE, why) from fault

    def _reset(self, reference: str, modules: Mapping[str, ModuleType]) -> None:
        name, _, attribute = reference.partition(":")
        place: Place = ("tools", "reset")
        if not attribute:
            raise self.file.near(place, f"{reference!r} is not module:function")
        found = load_own(reference, self.file, place)
        try:
            finished(getattr(modules[name], attribute)() if name in modules else found())
        except (Exception, SystemExit) as fault:
            raise self.file.near(place, f"{reference} raised {described(fault)}") from fault


def _copy(name: str, folder: Path) -> ModuleType:
    """The module once more, with a state of its own; what it imports is shared."""
    own = _beside(name, folder)
    spec = spec_from_file_location(name, own) if own.is_file() else find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    run = spec.loader.exec_module
    # While it stands there, others import it half done: it is not run there but for pydantic,
    # whose models look up the names in their annotations in the module that is imported.
    at_once = "pydantic" in sys.modules
    if not at_once:
        run(module)
        if not _annotated(module):
            return module
    with _IMPORTS:
        imported = sys.modules.get(name)
        sys.modules[name] = module
        try:
            if at_once:
                run(module)
            _resolve_annotations(module)
        finally:
            del sys.modules[name]
            if imported is not None:
                sys.modules[name] = imported
    return module


def _annotated(module: ModuleType) -> list[Any]:
    """The classes of a module that say something of their members."""
    own = (value for value in vars(module).values() if inspect.isclass(value))
    return [
        value
        for value in own
        if value.__module__ == module.__name__ and vars(value).get("__annotations__")
    ]


def _resolve_annotations(module: ModuleType) -> None:
    """Replaces names in annotations of its classes by the classes of this copy.

    What reads them later would look in the module that is imported, and find other classes. A name
    that is only there for type checkers stands for anything.
    """
    for value in _annotated(module):
        with suppress(Exception):
            if vars(value).get("__pydantic_complete__") is False:
                value.model_rebuild(raise_errors=False)
        own, hints = vars(value)["__annotations__"], looked_up(value, vars(module))
        own.update({name: hints.get(name, Any) for name in own})


def _not_a_function(reference: str, value: Any) -> str:
    return (
        f"{reference} is a {type(value).__name__}, which holds a function and is none: name the "
        "function itself, without the decorator, or write one that calls it"
    )


class PythonTools:
    """The functions of one episode."""

    def __init__(self, functions: Mapping[str, Function], state: Any) -> None:
        self.functions, self.state = functions, state
        self._callees: dict[str, Callee] = {}

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        """Calls a function; what it raises is the tool's failure, an exit too."""
        if name not in self._callees:
            self._callees[name] = Callee.of(self.functions[name])
        callee = self._callees[name]
        try:
            by_place, by_name = callee.bound(arguments)
        except (ValueError, TypeError) as fault:
            return error("invalid_arguments", storable(str(fault)))
        try:
            return result_of(name, plain(finished(callee.function(*by_place, **by_name))))
        except (Exception, SystemExit, GeneratorExit) as fault:  # an exit would end the run
            return failure_of(fault)

    def close(self) -> None:
        """Leaves it to the garbage collector; an object with `close` is closed."""
        close = getattr(self.state, "close", None)
        if callable(close) and not isinstance(self.state, ModuleType):
            with suppress(Exception):
                finished(close())
