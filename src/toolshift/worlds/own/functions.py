"""What can be called, as a tool: functions, methods, `partial`, cached and decorated ones, objects.

A tool is called by names. So `*names` is a list of that name, `**options` an object, and what a
`partial` has filled in is not shown.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial, partialmethod
from types import SimpleNamespace
from typing import Annotated, Any, get_origin, get_type_hints

from toolshift.core.errors import UsageError
from toolshift.worlds.own.kinds import JSONSchema, Kind, kind_of, plain

Function = Callable[..., Any]
OBJECT = {"type": "object"}
_EMPTY = inspect.Parameter.empty
_SPREAD, _NAMED = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
_DATA = (dict, list, tuple, set, str, int, float, bool, bytes, type(None))
"""What has no methods that could be tools."""
_HELD = ("func", "fn", "function", "coroutine", "on_invoke_tool")
"""Where tools of other libraries keep their function."""


# -- what is a tool ------------------------------------------------------------------------------


def is_function(thing: Any) -> bool:
    """Whether something can be a tool: a function, what stands for one, or a callable object."""
    return _stands_for_one(thing) or (
        callable(thing) and not inspect.isclass(thing) and not methods_of(thing)
    )


def makes_object(function: Function) -> bool:
    """Whether a function makes the object of which the methods are tools: it says nothing else."""
    made_of = function.func if isinstance(function, partial) else function
    if inspect.isclass(made_of):
        return True
    made = hints_of(function).get("return", Any)
    if (get_origin(made) or made) in _DATA:
        return False
    return not (parameters_of(function) or doc_of(function))


def is_own_function(thing: Any, module: str) -> bool:
    """Whether something at the top of a module is a function that was written there."""
    if not _stands_for_one(thing) or inspect.isbuiltin(thing):
        return False
    made_of = thing.func if isinstance(thing, partial) else thing
    return not inspect.isclass(made_of) and getattr(made_of, "__module__", "") == module


def _stands_for_one(thing: Any) -> bool:
    return (
        inspect.isroutine(thing)
        or isinstance(thing, partial)
        or (callable(thing) and not inspect.isclass(thing) and _is_wrapper(thing))
    )


def _is_wrapper(thing: Any) -> bool:
    return callable(inspect.getattr_static(thing, "__wrapped__", None))


def holds_function(thing: Any) -> bool:
    """Whether something is the tool of another library, which holds a function."""
    if inspect.isclass(thing) or inspect.ismodule(thing) or is_function(thing):
        return False
    held = getattr(thing, "__dict__", {})
    return any(inspect.isroutine(held.get(name)) for name in _HELD)


def methods_of(thing: Any) -> dict[str, Function]:
    """The public methods of an object, static ones and `partialmethod` too."""
    found: dict[str, Function] = {}
    for name in dir(thing):
        held = inspect.getattr_static(thing, name, None)
        if name.startswith("_") or isinstance(held, property | cached_property):
            continue
        value = getattr(thing, name, None)
        if inspect.ismethod(value) or (
            isinstance(held, staticmethod | partialmethod)
            and callable(value)
            and not inspect.isclass(value)
        ):
            found[name] = value
    return found


# -- what it says of itself ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool.

    Attributes:
        by: how Python takes it.
        kind: of its value; for `*names` and `**options` that of each.
        default: `inspect.Parameter.empty` where it must be given.
        filled: the default is to be given in place of what the function has there.
    """

    name: str
    by: Any
    kind: Kind
    annotation: Any
    default: Any
    filled: bool = False

    @property
    def many(self) -> bool:
        """Whether it stands for any number of arguments."""
        return self.by in (_SPREAD, _NAMED)

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is _EMPTY and not self.many

    @property
    def schema(self) -> JSONSchema | None:
        """The schema of what a call gives; None where no JSON can be read as that."""
        schema = self.kind.schema
        if schema is None:
            return None
        if self.by == _SPREAD:
            return {"type": "array", "items": schema}
        if self.by == _NAMED:
            return {**OBJECT, "additionalProperties": schema}
        return schema

    def read(self, value: Any) -> Any:
        """The argument as the function is given it."""
        if self.by == _SPREAD:
            return [self.kind.read(each) for each in _expected(list, value, self.name)]
        if self.by == _NAMED:
            given = _expected(dict, value, self.name)
            return {key: self.kind.read(each) for key, each in given.items()}
        return self.kind.read(value)


def _expected(kind: type, value: Any, name: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{name}: Expected `{kind.__name__}`, got `{type(value).__name__}`")
    return value


def parameters_of(function: Function) -> tuple[Parameter, ...]:
    """What a call of a function gives it; a ValueError where Python does not know."""
    bound: Mapping[str, Any] = {}
    if isinstance(function, partial):
        bound = function.keywords
        # A new one: the signature of one that was made to look like its function is that one's.
        function = partial(function.func, *function.args, **function.keywords)
    hints = hints_of(function)
    taken = inspect.signature(function).parameters.values()
    return tuple(_parameter(each, hints) for each in taken if each.name not in bound)


def _parameter(given: inspect.Parameter, hints: Mapping[str, Any]) -> Parameter:
    said = Any if isinstance(given.annotation, str) else given.annotation
    annotation = hints.get(given.name, Any if said is _EMPTY else said)
    default, filled = given.default, False
    if hasattr(type(default), "is_required") and hasattr(type(default), "get_default"):
        annotation, filled = Annotated[annotation, default], True  # a `Field(...)` of pydantic
        default = (
            _EMPTY if default.is_required() else default.get_default(call_default_factory=True)
        )
    return Parameter(given.name, given.kind, kind_of(annotation), annotation, default, filled)


def hints_of(function: Function) -> dict[str, Any]:
    """The annotations of a function, as far as they can be looked up."""
    return looked_up(_code_of(function))


def looked_up(annotated: Any, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """The annotations of a function or class; those that cannot be looked up are left out.

    They are code of others, which may raise anything: a package that loads what it has when it is
    first asked for it raises an `ImportError`.
    """
    with suppress(Exception):
        return get_type_hints(annotated, names, include_extras=True)
    names = getattr(annotated, "__globals__", {}) if names is None else names
    found: dict[str, Any] = {}
    for name, annotation in getattr(annotated, "__annotations__", {}).items():
        alone = SimpleNamespace(__annotations__={name: annotation})
        with suppress(Exception):
            found |= get_type_hints(alone, names, include_extras=True)
    return found


def _code_of(function: Any) -> Any:
    """The function under what is wrapped around it."""
    while True:
        if isinstance(function, partial):
            function = function.func
        elif _is_wrapper(function):
            function = function.__wrapped__
        elif inspect.isroutine(function) or inspect.isclass(function):
            return function
        else:
            return type(function).__call__


def doc_of(function: Any) -> str:
    """What a function says of itself."""
    if isinstance(function, partial):
        own = vars(function).get("__doc__")
        return inspect.cleandoc(own) if own else doc_of(function.func)
    said = inspect.getdoc(function)
    if not said and not inspect.isroutine(function) and not inspect.isclass(function):
        said = inspect.cleandoc(type(function).__call__.__doc__ or "")
    return said or ""


def listed(name: str, function: Function, called: bool = True) -> dict[str, Any]:
    """A function as an MCP server would list it.

    Where it is to be `called`, each argument that must be given has to be readable from JSON, and
    others that are not are left out. What wraps a function may fill in what its caller cannot.
    """
    try:
        taken = parameters_of(function)
    except ValueError:
        why = "Python does not know its arguments: write a function that calls it"
        raise UsageError(f"{name} cannot be a tool: {why}") from None
    described = _described(doc_of(function))
    properties: dict[str, Any] = {}
    required = []
    for param in taken:
        schema = param.schema
        if schema is None and called and param.required and not _is_wrapper(function):
            raise _unreadable(name, param)
        if schema is None and called:
            continue
        schema = schema or {}
        if param.name in described:
            schema = {**schema, "description": described[param.name]}
        if param.required:
            required.append(param.name)
        elif not param.many:
            schema = {**schema, **_default(param.default)}
        properties[param.name] = schema
    shown: dict[str, Any] = {
        "name": name,
        "description": described[""],
        "inputSchema": {**OBJECT, "properties": properties, "required": required},
    }
    outputs = _outputs(kind_of(hints_of(function).get("return", Any)).shown or {})
    return {**shown, "outputSchema": outputs} if outputs else shown


def _unreadable(name: str, param: Parameter) -> UsageError:
    kind = inspect.formatannotation(param.annotation)
    return UsageError(
        f"{name}: no JSON can be read as its argument {param.name}: {kind}. Annotate it with a "
        "type of JSON, a dataclass, a TypedDict, an enum, a date or a pydantic model, give it a "
        f"default, or leave {name} out of the tools, as by `__all__`"
    )


def _default(value: Any) -> dict[str, Any]:
    """The default of a parameter, as a schema says it; nothing for what is no JSON."""
    try:
        return {"default": plain(value)}
    except (TypeError, ValueError):
        return {}


def _outputs(schema: JSONSchema) -> JSONSchema | None:
    """The schema of a result that is a record, or a list of records."""
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


# -- a call --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Callee:
    """A function and what it takes."""

    function: Function
    taken: tuple[Parameter, ...]

    @classmethod
    def of(cls, function: Function) -> Callee:
        """Reads what a function takes."""
        return cls(function, parameters_of(function))

    def bound(self, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments as Python passes them; a TypeError or ValueError where one is wrong."""
        names = {param.name: param for param in self.taken}
        bound = self.function.keywords if isinstance(self.function, partial) else {}
        for name in given.keys() & bound.keys() - names.keys():
            raise TypeError(f"unexpected argument {name!r}")
        values = {n: names[n].read(v) if n in names else v for n, v in given.items()}
        spread = any(p.by == _SPREAD and values.get(p.name) for p in self.taken)
        listed: list[Any] = []
        for param in self.taken:
            if param.by == _SPREAD:
                listed += values.pop(param.name, ())
            elif param.by == _NAMED:
                more = values.pop(param.name, {})
                if twice := sorted(more.keys() & names.keys()):
                    raise TypeError(f"multiple values for argument {twice[0]!r}")
                values |= more
            elif param.by == inspect.Parameter.POSITIONAL_ONLY or (
                spread and param.by == inspect.Parameter.POSITIONAL_OR_KEYWORD
            ):
                if param.required and param.name not in values:
                    raise TypeError(f"missing a required argument: {param.name!r}")
                listed.append(values.pop(param.name, param.default))
            elif param.filled and not param.required:
                values.setdefault(param.name, param.default)
        return listed, values
