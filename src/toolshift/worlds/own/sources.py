"""Where real tools come from: one small module a source.

A source lists its tools as an MCP server would (`listed`), so that `connect.tools.from_mcp` makes
ours of all of them, and opens them afresh for every episode as far as it can; `shared` says what
it cannot.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from toolshift.core.codecs import leaves
from toolshift.core.text import storable
from toolshift.core.tool import Field, Result, ToolFailure, error

if TYPE_CHECKING:
    from toolshift.worlds.own.file import WorldFile


class Opened(Protocol):
    """Tools ready for one episode.

    `state` is what a state check is given: an object of the user's, or a function that calls tools.
    """

    state: Any

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        """Makes a real call."""
        ...

    def close(self) -> None:
        """Ends it."""
        ...


class Source(Protocol):
    """Tools of one party; `writes` are those known to change something, None where unknown."""

    listed: list[dict[str, Any]]
    shared: str

    def open(self) -> Opened:
        """Tools in their first state."""
        ...


def result_of(tool: str, data: Any) -> Result:
    """A result with its values as fields; a text stays a text, what is no record has no fields."""
    if isinstance(data, str):
        return Result(True, storable(data), form="text")
    data = _storable(data)
    return Result(True, data, fields_of(tool, data))


def _storable(data: Any) -> Any:
    """Data whose texts a trace can hold: what is fit comes back as it is."""
    if isinstance(data, str):
        return storable(data)
    if isinstance(data, dict):
        return {_storable(key): _storable(value) for key, value in data.items()}
    return [_storable(item) for item in data] if isinstance(data, list | tuple) else data


def fields_of(tool: str, data: Any) -> tuple[Field, ...]:
    """A field for every value of records, under the fact `tool.path`."""
    records = data if isinstance(data, list) else [data]
    if not all(isinstance(record, dict) for record in records):
        return ()
    kinds: dict[tuple[str, ...], Any] = {}
    for record in records:
        for path, value in leaves(record):
            kinds[path] = value if kinds.get(path) is None else kinds[path]
    return tuple(Field(path, fact(tool, path), _kind(value)) for path, value in kinds.items())


def fact(tool: str, path: tuple[str, ...]) -> str:
    """The fact that a value of a tool's result is."""
    return f"{tool}.{'.'.join(path)}"


def _kind(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "string"
    return "integer" if isinstance(value, int) else "number"


def failure_of(fault: BaseException) -> Result:
    """What an agent sees of an exception that a tool raised."""
    if isinstance(fault, ToolFailure):
        return error(storable(fault.code), storable(fault.message))
    if isinstance(fault, SystemExit):
        return error("tool_error", storable(f"the tool called sys.exit({fault.code!r})"))
    said = str(fault.args[0]) if isinstance(fault, LookupError) and fault.args else str(fault)
    code = "not_found" if isinstance(fault, LookupError) else "tool_error"
    return error(code, storable(said) or type(fault).__name__)


def texts_of(file: WorldFile, key: str) -> dict[str, str]:
    """A table of texts of a file (`headers`, `env`), `${NAME}` filled from the environment."""
    found = {}
    given: Mapping[str, Any] = file.tools.get(key, {})
    for name, value in given.items():
        for variable in re.findall(r"\$\{(\w+)\}", str(value)):
            if variable not in os.environ:
                why = f"the environment has no variable {variable}"
                raise file.near(("tools", key, name), why)
        found[name] = re.sub(r"\$\{(\w+)\}", lambda m: os.environ[m[1]], str(value))
    return found
