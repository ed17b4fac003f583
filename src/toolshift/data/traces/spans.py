"""What traces of every dialect are read into: spans that are calls of tools or turns of models.

`Raw` is a span before its dialect is known: attributes, times, status. `Span` is what it says.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from toolshift.data.conversation import Call

Attributes = Mapping[str, Any]
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


class Raw(msgspec.Struct, frozen=True):
    """A span as any exporter wrote it, before its dialect is known.

    Attributes:
        name: of the span.
        trace: the id of its trace; "" where none is said.
        id: its own.
        parent: the id of the span around it.
        attributes: by their whole names, values decoded from OTLP.
        start: in seconds since 1970; None where no time is said.
        ms: how long it took, in milliseconds.
        failed: whether its status says that it failed; None where it has no status.
        served: whether it is of a server, which answers a call that another span may tell of.
        events: the events inside of it, as names and attributes.
        log: whether it is a record of a log, which tells of a part of the span of that id.
    """

    name: str = ""
    trace: str = ""
    id: str = ""
    parent: str = ""
    attributes: Attributes = {}
    start: float | None = None
    ms: float | None = None
    failed: bool | None = None
    served: bool = False
    events: tuple[tuple[str, Attributes], ...] = ()
    log: bool = False


class Said(msgspec.Struct, frozen=True):
    """One message of a model's conversation.

    Attributes:
        role: system, user, assistant or tool.
        text: what is said; of a tool "".
        calls: the tools that the assistant calls.
        call_id: of the call whose result this is.
        name: of the tool whose result this is, where that is said.
        result: of a tool: what came back, decoded where it is JSON.
        failed: of a tool: True where the message says that the call failed.
    """

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    call_id: str = ""
    name: str = ""
    result: Any = None
    failed: bool | None = None


class ToolRun(msgspec.Struct, frozen=True):
    """A call of a tool as its own span tells it.

    Attributes:
        tool: its name.
        arguments: None where they are not recorded.
        result: None where it is not recorded.
        failed: whether it failed; None where nothing says so.
        id: of the call; "" where none is said.
    """

    tool: str
    arguments: dict[str, Any] | None = None
    result: Any = None
    failed: bool | None = None
    id: str = ""


class ModelTurn(msgspec.Struct, frozen=True):
    """One request to a model, and its reply.

    Attributes:
        tools: on offer, as the span has them.
        said: the conversation so far, as the model was given it.
        replied: what the model answered.
        reasons: why it stopped.
    """

    tools: tuple[dict[str, Any], ...] = ()
    said: tuple[Said, ...] = ()
    replied: tuple[Said, ...] = ()
    reasons: tuple[str, ...] = ()


class Span(msgspec.Struct, frozen=True):
    """A span that was understood.

    Attributes:
        raw: as it came.
        dialect: in which it is written.
        run: the call of a tool that it is, or
        turn: the turn of a model that it is; neither for other work of an agent.
        agent: whether the turn is that of a whole agent, which its models' own spans tell too.
    """

    raw: Raw
    dialect: str
    run: ToolRun | None = None
    turn: ModelTurn | None = None
    agent: bool = False


# -- small parts that dialects share ---------------------------------------------------------------


def decoded(value: Any) -> Any:
    """A text that holds JSON as that; any other value as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
        return value
    try:
        return msgspec.json.decode(value)
    except (ValueError, RecursionError):  # msgspec's own errors, and half a character
        return value


def objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list, which may be JSON in a string, as its items may."""
    value = decoded(value)
    items = value if isinstance(value, list | tuple) else []
    return [each for item in items if isinstance(each := decoded(item), Mapping)]


def arguments_of(value: Any) -> dict[str, Any] | None:
    """Arguments as an object, which may be JSON in a string; None where they are something else."""
    value = decoded(value)
    if value in ("", None):
        return None
    return dict(value) if isinstance(value, Mapping) else None


def loose_arguments(value: Any) -> dict[str, Any] | None:
    """Arguments as an object, also as Python prints a dictionary, as LangChain writes them."""
    found = arguments_of(value)
    if found is not None or not isinstance(value, str) or not value.lstrip().startswith("{"):
        return found
    try:
        told = ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return told if isinstance(told, dict) and all(isinstance(key, str) for key in told) else None


def text_at(attributes: Attributes, *keys: str) -> str:
    """The first of some attributes that is a text."""
    return next((value for key in keys if isinstance(value := attributes.get(key), str)), "")


def first_of(attributes: Attributes, *keys: str) -> Any:
    """The first of some attributes that has a value."""
    return next((attributes[key] for key in keys if attributes.get(key) is not None), None)


def numbered(attributes: Attributes, prefix: str) -> list[dict[str, Any]]:
    """Attributes of numbered things, `PREFIX.0.a.b`, `PREFIX.1...`, each with the rest of its name.

    Where an exporter kept the list whole, as a list of objects, these are flattened.
    """
    whole = attributes.get(prefix)
    if isinstance(whole, list | str):
        return [dict(flat(each)) for each in objects(whole)]
    found: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        head, dot, rest = key.removeprefix(prefix + ".").partition(".")
        if key.startswith(prefix + ".") and head.isascii() and head.isdigit() and len(head) < 7:
            found.setdefault(int(head), {})[rest if dot else ""] = value
    return [found[number] for number in sorted(found)]


def flat(value: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """A nested object as attributes with dots in their names; lists stay as they are."""
    for key, inner in value.items():
        name = f"{before}{key}"
        if isinstance(inner, Mapping) and inner and depth < 12:
            yield from flat(inner, f"{name}.", depth + 1)
        else:
            yield name, inner


def seconds(value: Any, nano: bool = False) -> float | None:
    """A time in seconds since 1970: a number of seconds or of a part of them, or ISO 8601.

    None where it is no moment of the years 1 to 9999, as infinity is none.
    """
    if isinstance(value, bool):
        return None
    found = _seconds(value, nano)
    return found if found is not None and _YEAR_1 <= found < _YEAR_10000 else None


def _seconds(value: Any, nano: bool) -> float | None:
    try:
        if isinstance(value, int | float) or (isinstance(value, str) and _NUMBER.fullmatch(value)):
            number = float(value)
            scale = 1e9 if number > 1e16 else 1e6 if number > 1e14 else 1e3 if number > 1e11 else 1
            return number / (1e9 if nano else scale)
        told = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
        return (told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError, OSError):
        return None


_YEAR_1, _YEAR_10000 = -62_135_596_800, 253_402_300_800


def took(start: Any, end: Any, nano: bool = False) -> float | None:
    """Milliseconds between two times; None where one is missing, or the second is earlier."""
    try:
        if nano:
            passed = (int(end) - int(start)) / 1e6  # a float would round these
        else:
            begun, ended = seconds(start), seconds(end)
            passed = -1.0 if begun is None or ended is None else (ended - begun) * 1000
    except (TypeError, ValueError, OverflowError):
        return None
    return passed if passed >= 0 else None
