"""Options and arguments that are written once: in the struct that a command is given.

A field says its name, its type and its default; what else the command line needs stands beside it:

    tasks: Annotated[int, option(help="Tasks of each world.")] = 20
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import click
import msgspec

from toolshift.core.intake import NotRead
from toolshift.core.terminal import say, stdout_is_ours
from toolshift.core.text import escaped
from toolshift.core.tool import JSON
from toolshift.runs.location import check_address, check_local, is_address

Option = Callable[[Callable[..., Any]], Callable[..., Any]]
Options = TypeVar("Options")


# -- paths -----------------------------------------------------------------------------------------

if TYPE_CHECKING:
    _PathType = click.Path[Path]
    _PlaceType = click.ParamType[Path | str]
else:  # earlier versions of click have no such parameters
    _PathType, _PlaceType = click.Path, click.ParamType


class _Local(_PathType):
    """A file or folder of this machine; an address is refused, which a path would cut short."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """A path."""
        check_local(os.fspath(value), _name(param))
        return super().convert(value, param, ctx)


PATH = _Local(path_type=Path)


class _Place(_PlaceType):
    """A folder, or the address of one in an object store, which is kept as it is written."""

    name = "path"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path | str:
        """An address as text; all else as a path."""
        check_address(str(value), _name(param))
        return str(value) if is_address(str(value)) else Path(str(value))


PLACE = _Place()


def _name(param: click.Parameter | None) -> str:
    """An option or argument as the help has it."""
    if isinstance(param, click.Option):
        return param.opts[-1]
    return param.human_readable_name if param is not None else "path"


# -- a field as an option or an argument -----------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    """What the command line needs of a field beside its name, its type and its default.

    Attributes:
        make: `click.option` or `click.argument`.
        written: as in `--shift`, where it is not made of the field's name.
        settings: what `make` takes beside, which goes before what is found of the field.
    """

    make: Callable[..., Option]
    written: str
    settings: Mapping[str, Any]


def option(written: str = "", **settings: Any) -> Parameter:
    """Marks a field as an option, such as `--max-cost` for `max_cost`."""
    return Parameter(click.option, written, settings)


def argument(**settings: Any) -> Parameter:
    """Marks a field as an argument."""
    return Parameter(click.argument, "", settings)


def options(*decorators: Option) -> Option:
    """Several options as one decorator."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def options_of(kind: type, marks: Mapping[str, Parameter] | None = None) -> Option:
    """The options of a struct as one decorator.

    Without `marks` those that stand in the struct itself; a struct of another package, which knows
    no command line, has them beside it, by field.
    """
    hints, defaults = get_type_hints(kind, include_extras=True), dict(_defaults(kind))
    if marks is None:
        return options(*_declared(hints, defaults))
    return options(
        *(field_option(name, Annotated[hints[name], mark], defaults[name])
          for name, mark in marks.items())
    )  # fmt: skip


def field_option(name: str, hint: Any, default: object) -> Option:
    """One annotated field as a decorator."""
    kind, mark = get_args(hint)[:2]
    if not isinstance(mark, Parameter):
        found: Option = mark
        return found
    settings = {**_settings(kind), **mark.settings}
    if mark.make is click.argument:
        return mark.make(name, **_arity(settings), **_default_of_argument(default, settings))
    written = mark.written or f"--{name.replace('_', '-')}"
    if default is MISSING and not settings.get("multiple"):
        settings.setdefault("required", True)
    elif default is not MISSING:
        settings.setdefault("default", default)
        settings.setdefault("show_default", _is_told(default, written))
    return mark.make(written, name, **settings)


def _declared(hints: Mapping[str, Any], defaults: Mapping[str, object]) -> Iterator[Option]:
    """The options of the fields that are marked, and those of structs inside."""
    for name, hint in hints.items():
        if get_origin(hint) is Annotated:
            yield field_option(name, hint, defaults[name])
        elif _is_struct(hint):
            yield options_of(hint)


def _defaults(kind: type) -> Iterator[tuple[str, object]]:
    """The fields of a struct with their defaults; `MISSING` where there is none."""
    if is_dataclass(kind):
        yield from ((field.name, field.default) for field in fields(kind))
        return
    assert issubclass(kind, msgspec.Struct)
    for field in msgspec.structs.fields(kind):
        yield field.name, MISSING if field.default is msgspec.NODEFAULT else field.default


def _settings(kind: Any) -> dict[str, Any]:
    """What the type of a field says of its option."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is tuple and parts[1:] == (...,):
        return {"multiple": True, **_settings(parts[0])}
    if origin in (Union, UnionType) and type(None) in parts:
        (inner, *more) = (part for part in parts if part is not type(None))
        flag = {"flag_value": True} if inner is bool else {}
        return {**(_settings(inner) if not more else {}), **flag}
    if origin is Literal:
        return {"type": click.Choice(list(parts))}
    if kind is bool:
        return {"is_flag": True}
    return {"type": PATH if kind is Path else kind} if isinstance(kind, type) else {}


def _arity(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of an argument; one that takes several takes all that are left."""
    several = settings.pop("multiple", False)
    return {"nargs": -1, **settings} if several else settings


def _default_of_argument(default: object, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What may be left out, and what it then is."""
    if "required" in settings:
        return {}
    if default is MISSING or default == ():
        return {"required": default is MISSING}
    return {"default": default, "required": False}


def _is_told(default: object, written: str) -> bool:
    """Whether the help tells a default: not where it is that nothing is given."""
    if isinstance(default, bool):
        return "/" in written
    return default not in (None, "", ())


# -- one struct a command --------------------------------------------------------------------------


def options_struct(
    kind: type[Options],
) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Pass a command its options as one frozen struct, and make them of its marked fields.

    A field that is such a struct itself is made of the options that its own fields name. Where the
    command asks for JSON and its input was not read, that is said as JSON too.
    """

    def decorate(action: Callable[[Options], None]) -> Callable[..., None]:
        @wraps(action)
        def command(**given: object) -> None:
            options = _made(kind, given)
            assert not given, f"{kind.__name__} has no field for {', '.join(given)}"
            as_json = getattr(options, "as_json", False)
            try:
                with stdout_is_ours() if as_json else nullcontext():
                    action(options)
            except NotRead as fault:
                if as_json:
                    said = {"error": str(fault), "unread": [fault.intake]}
                    say(escaped(JSON.encode(said).decode()))  # one line, as `watch` prints
                raise

        return options_of(kind)(command)

    return decorate


def _made(kind: type[Options], given: dict[str, object]) -> Options:
    """A struct of what is given, which is taken away; a field without an option has its default."""
    found: dict[str, Any] = {}
    for name, of in get_type_hints(kind).items():
        if _is_struct(of):
            found[name] = _made(of, given)
        elif name in given:
            found[name] = given.pop(name)
    return kind(**found)


def given(options: object, kind: type[msgspec.Struct], but: Sequence[str] = ()) -> dict[str, Any]:
    """The fields of a struct that options of the same names give; None and () leave one as it is.

    `but` are fields that an option of the same name does not mean.
    """
    values = {name: getattr(options, name, None) for name in kind.__struct_fields__}
    return {
        name: value
        for name, value in values.items()
        if value is not None and value != () and name not in but
    }


def _is_struct(kind: object) -> bool:
    return is_dataclass(kind) or (isinstance(kind, type) and issubclass(kind, msgspec.Struct))


def on_command_line(*names: str) -> list[str]:
    """Which of these parameters of the running command are given, as they are written."""
    context = click.get_current_context()
    given = click.core.ParameterSource.COMMANDLINE
    return [
        param.opts[0]
        for param in context.command.params
        if param.name in names and context.get_parameter_source(param.name) == given
    ]
