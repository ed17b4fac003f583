"""Tools from annotated Python functions: `module`, `module:function` or `module:Class`.

A module gives what its `__all__` names, or else its public functions; a class (or a function
without parameters that makes an object) the public methods of a fresh object. Every episode gets
its own copy of the module, so that what one changes another does not see. Functions may be
asynchronous (`async def`); so may be the reset, and what checks the state.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.importing import import_attribute
from toolshift.core.names import unknown
from toolshift.core.tool import Result, error
from toolshift.episode.contract import finished
from toolshift.interop.schema import inlined
from toolshift.worlds.own.file import Place, WorldFile
from toolshift.worlds.own.sources import failure_of, result_of

Function = Callable[..., Any]
OBJECT = {"type": "object"}


def load_own(reference: str, file: WorldFile, place: Place) -> Any:
    """Imports `module` or `module:attribute` of the user's, from the file's folder too."""
    folder = file.path.parent.resolve()
    module, _, attribute = reference.partition(":")
    sys.path[:] = [str(folder), *(each for each in sys.path if each != str(folder))]
    own, loaded = _beside(module, folder), sys.modules.get(module)
    if own.is_file() and loaded is not None and getattr(loaded, "__file__", "") != str(own):
        del sys.modules[module]  # of another world that has a module of this name
    try:
        import_attribute(module, "__name__", "python")
        return import_attribute(module, attribute or "__name__", "python")
    except UsageError as wrong:
        raise file.near(place, str(wrong).replace(":__name__", "")) from None


def _beside(module: str, folder: Path) -> Path:
    return folder.joinpath(*module.split(".")).with_suffix(".py")


class PythonSource:
    """Functions and methods of the user's as tools."""

    shared = ""

    def __init__(self, file: WorldFile) -> None:
        self.file = file
        named = file.tools["python"]
        self.references: list[str] = [named] if isinstance(named, str) else list(named)
        for reference in self.references:
            load_own(reference, file, ("tools", "python"))
        opened = self.open()
        self.listed = [_listed(name, function) for name, function in opened.functions.items()]
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
        place: Place = ("tools", "python")
        if not attribute:
            names = getattr(module, "__all__", None) or _public(module)
            for name in names:
                if not hasattr(module, name):
                    why = unknown(f"name in __all__ of {module.__name__}", name, vars(module))
                    raise self.file.near(place, why)
            found = {name: getattr(module, name) for name in names}
            found = {n: f for n, f in found.items() if inspect.isfunction(f)}
            if not found:
                raise self.file.near(place, f"{module.__name__} has no public function")
            return module, found
        made = module
        for part in attribute.split("."):
            made = getattr(made, part)
        if inspect.isfunction(made) and (inspect.signature(made).parameters or made.__doc__):
            return module, {made.__name__: made}
        state = finished(made()) if callable(made) else made
        names = [n for n in dir(state) if not n.startswith("_")]
        methods = {n: getattr(state, n) for n in names if inspect.ismethod(getattr(state, n))}
        if not methods:
            raise self.file.near(place, f"{module.__name__}:{attribute} has no public method")
        return state, methods

    def _reset(self, reference: str, modules: Mapping[str, ModuleType]) -> None:
        name, _, attribute = reference.partition(":")
        place: Place = ("tools", "reset")
        if not attribute:
            raise self.file.near(place, f"{reference!r} is not module:function")
        found = load_own(reference, self.file, place)
        finished(getattr(modules[name], attribute)() if name in modules else found())


def _copy(name: str, folder: Path) -> ModuleType:
    """The module once more, with a state of its own; what it imports is shared."""
    own = _beside(name, folder)
    spec = spec_from_file_location(name, own) if own.is_file() else find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _public(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and inspect.isfunction(value)
        and value.__module__ == module.__name__
    ]


class PythonTools:
    """The functions of one episode."""

    def __init__(self, functions: Mapping[str, Function], state: Any) -> None:
        self.functions, self.state = functions, state

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        """Calls a function; what it raises is the tool's failure."""
        function = self.functions[name]
        try:
            given = _typed(function, arguments)
        except (msgspec.ValidationError, TypeError) as fault:
            return error("invalid_arguments", str(fault))
        try:
            return result_of(name, msgspec.to_builtins(finished(function(**given)), str_keys=True))
        except Exception as fault:
            return failure_of(fault)

    def close(self) -> None:
        """Leaves it to the garbage collector; an object with `close` is closed."""
        close = getattr(self.state, "close", None)
        if callable(close) and not isinstance(self.state, ModuleType):
            with suppress(Exception):
                finished(close())


def _typed(function: Function, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as the annotations want them: dataclasses, enums, dates."""
    hints = _hints(function)
    return {
        # Keys of JSON are texts, whatever keys the function takes.
        name: msgspec.convert(value, hints[name], str_keys=True) if name in hints else value
        for name, value in arguments.items()
    }


def _hints(function: Function) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        return {}


# -- what a function says of itself --------------------------------------------------------------


def _listed(name: str, function: Function) -> dict[str, Any]:
    """A function as an MCP server would list it."""
    hints, described = _hints(function), _described(inspect.getdoc(function) or "")
    properties: dict[str, Any] = {}
    required = []
    for param in inspect.signature(function).parameters.values():
        if param.kind in (param.VAR_POSITIONAL, param.VAR_KEYWORD):
            continue
        schema = _schema(hints.get(param.name, Any))
        if param.name in described:
            schema = {**schema, "description": described[param.name]}
        if param.default is param.empty:
            required.append(param.name)
        else:
            schema = {**schema, **_default(param.default)}
        properties[param.name] = schema
    shown: dict[str, Any] = {
        "name": name,
        "description": described[""],
        "inputSchema": {**OBJECT, "properties": properties, "required": required},
    }
    outputs = _outputs(hints.get("return", Any))
    return {**shown, "outputSchema": outputs} if outputs else shown


def _default(value: Any) -> dict[str, Any]:
    """The default of a parameter, as a schema says it; nothing for what is no JSON."""
    try:
        return {"default": msgspec.to_builtins(value)}
    except TypeError:
        return {}


def _schema(kind: Any) -> dict[str, Any]:
    try:
        schema = msgspec.json.schema(kind)
    except (TypeError, ValueError):
        return {}
    return {k: v for k, v in inlined(schema, schema).items() if k not in ("$defs", "title")}


def _outputs(kind: Any) -> dict[str, Any] | None:
    """The schema of a result that is a record, or a list of records."""
    schema = _schema(kind)
    if schema.get("properties"):
        return schema
    items = schema.get("items")
    if isinstance(items, dict) and items.get("properties"):
        return {**OBJECT, "properties": {"result": schema}}
    return None


_ARGS = re.compile(r"^(Args|Arguments|Parameters):\s*$", re.M)
_SECTION = re.compile(r"^(\w+):\s*$", re.M)


def _described(doc: str) -> dict[str, str]:
    """The description under "", and those of the parameters, from a docstring in Google style."""
    section = _SECTION.search(doc)
    found = {"": doc[: section.start()].strip() if section else doc.strip()}
    start = _ARGS.search(doc)
    if start is None:
        return found
    body = doc[start.end() :]
    following = _SECTION.search(body)
    name = ""
    for line in body[: following.start() if following else None].splitlines():
        param = re.match(r"\s{2,8}(\w+)(?:\s*\([^)]*\))?:\s*(.*)", line)
        if param:
            name = param[1]
            found[name] = param[2].strip()
        elif name and line.strip():
            found[name] += " " + line.strip()
    return found
