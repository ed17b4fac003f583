"""Where tools and calls come from: servers, documents, lists, traces, conversations, run folders.

read_source("mcp:npx -y my-server@1")   see `shifts.release.inputs.read_side`
read_source("trace.jsonl")              a trace of a proxy, conversations, spans
read_source("runs/first")               the tools of the clean scenes of a run
calls_of("trace.jsonl")                 the calls in any of these
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.files import PACKED, read_given
from toolshift.core.intake import Intake, NotRead, check_read, no_text, some_unread
from toolshift.core.tool import as_openai
from toolshift.data.conversation import RowFault
from toolshift.data.tables import TABLES
from toolshift.data.trace_files import is_trace, lines_of, part_of
from toolshift.drift.calls import RecordedCall, as_calls
from toolshift.drift.stream import Called, Event, Reader, Shown, understood
from toolshift.interop.client_files import server_of
from toolshift.interop.request import Request
from toolshift.interop.server import only_address
from toolshift.runs.cell import Cell
from toolshift.runs.run_folder import RunFolder
from toolshift.shifts.release.inputs import Kind, Side, checked, read_side, side_of

_LINES = (".jsonl", ".ndjson", *TABLES)


def read_source(text: str, headers: Mapping[str, str] = {}) -> Side:
    """Reads the tools of any kind of source; `headers` go to the http address of a server."""
    path = Path(text)
    if path.is_dir():
        return _of_run(path)
    if is_stream(path):
        return _of_stream(path)
    return read_side(text, headers)


def is_stream(path: Path) -> bool:
    """Whether a path is a file of JSON lines or a table, by its name, or of traces."""
    name = path.with_suffix("") if path.suffix in PACKED else path
    if name.suffix == ".json" and path.is_file():
        return is_trace(path)
    return name.suffix in _LINES and path.is_file()


def read_sources(texts: Iterable[str], headers: Mapping[str, str] = {}) -> Side:
    """Reads the tools of several sources as one list; `headers` go to the one http address."""
    texts = list(texts)
    if headers:
        only_address(map(server_of, texts))
    sides = [read_source(text, headers) for text in texts]
    if len(sides) == 1:
        return sides[0]
    tools: dict[str, tuple[dict[str, Any], str]] = {}
    requests: dict[str, Request] = {}
    for side in sides:
        for tool in side.tools:
            known, where = tools.setdefault(tool["name"], (tool, side.origin))
            sent = (side.requests or {}).get(tool["name"])
            if known != tool or (sent and requests.setdefault(tool["name"], sent) != sent):
                raise UsageError(
                    f"{where} and {side.origin} have different tools named {tool['name']}: lock "
                    "each source in its own file"
                )
    kinds = {side.kind for side in sides}
    kind = kinds.pop() if len(kinds) == 1 else "mcp"
    origin = ", ".join(side.origin for side in sides)
    unread = [intake for side in sides for intake in side.unread]
    whole = side_of(kind, origin, [t for t, _ in tools.values()], unread)
    return msgspec.structs.replace(whole, requests=requests or None)


# -- traces and conversations ----------------------------------------------------------------------


def read_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, decompressed where its name says that it is compressed.

    A `.json` file may also be one list of rows, or one object, as exports of platforms are, and
    the rows of a table are read as lines.
    """
    return lines_of(path)


def events_in(path: Path, reader: Reader | None = None) -> Iterator[Event]:
    """The events in a file of traces, conversations or spans."""
    reader = reader or Reader(str(path), part_of(path))
    for number, line in enumerate(read_lines(path), 1):
        try:
            yield from reader.read(line)
        except RowFault as fault:
            raise NotRead(
                f"{path}, {part_of(path)} {number}: {fault}. {understood()}", reader.intake
            ) from None


def _of_stream(path: Path) -> Side:
    """The tools in a stream: for each name the last one that was shown.

    A conversation may show some of the tools; the list of an MCP server is all that it has.
    """
    tools: dict[str, dict[str, Any]] = {}
    kind: Kind = "mcp"
    twice: set[str] = set()
    reader = Reader(str(path), part_of(path))
    for event in events_in(path, reader):
        if isinstance(event, Shown):
            kind = event.kind
            if kind == "mcp":
                tools.clear()
                twice.clear()
            shown: dict[str, dict[str, Any]] = {}
            for tool in event.tools:
                name = str(tool.get("name"))
                if shown.setdefault(name, tool) != tool:
                    twice.add(name)
            tools.update(shown)
    if not tools:
        met = f" {reader.intake.missing()}" if reader.intake.unread else ""
        empty = ": it is empty" if not reader.intake.total else ""
        raise NotRead(
            f"{path} shows no list of tools{empty}. Lock the server itself, or a trace that has "
            "one (`toolshift proxy --trace`, conversations with `tools`, spans of a model with the "
            f"tools that it was given).{met}",
            reader.intake,
        )
    if twice:
        raise UsageError(
            f"{path}: a list in it has different tools named {min(twice)}, so it is not known "
            "which of them was called. Record each server in its own trace"
        )
    return checked(side_of(kind, path.name, list(tools.values()), [reader.intake]))


# -- run folders -----------------------------------------------------------------------------------


def _of_run(path: Path) -> Side:
    """The tools of the clean scenes of a run, as their agents read them."""
    clean: dict[str, Cell] = {}
    folder = RunFolder.read(path)
    for cell in folder.plan.cells:
        if not cell.shifts:
            clean.setdefault(cell.world, cell)
    if not clean:
        raise UsageError(f"{path} has no clean scene, so it does not show the unchanged tools")
    tools: dict[str, dict[str, Any]] = {}
    for cell in clean.values():
        for tool in folder.own.shown(cell).tools:
            function = as_openai(tool)["function"]
            kept = {key: value for key, value in function.items() if key != "parameters"}
            document = {**kept, "inputSchema": function["parameters"]}
            if tools.setdefault(tool.name, document) != document:
                raise UsageError(
                    f"{path}: two of its worlds have different tools named {tool.name}"
                )
    return side_of("openai", path.name, list(tools.values()))


class Calls(NamedTuple):
    """The calls of an agent, and what of their source could not be read."""

    made: list[RecordedCall]
    unread: tuple[Intake, ...] = ()


def calls_of(text: str) -> Calls:
    """The calls of an agent."""
    path = Path(text)
    if path.is_dir():
        return Calls(list(_calls_of_run(path)))  # an agent may have made none
    if is_stream(path):
        return _calls_of_stream(path)
    try:
        raw = read_given(path).removeprefix(BOM_UTF8)
        made = as_calls(msgspec.json.decode(raw, type=list[dict[str, Any]]))
    except OSError as fault:
        raise UsageError(f"{path}: cannot be read ({fault.strerror})") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise UsageError(
            f"{path} is neither JSON lines (.jsonl) nor a list of calls: {no_text(raw) or fault}"
        ) from None
    check_read(Intake(str(path), "call", len(made)), "a call", understood())
    return Calls(made)


def _calls_of_stream(path: Path) -> Calls:
    """The calls in a stream."""
    reader = Reader(str(path), part_of(path))
    called = [event for event in events_in(path, reader) if isinstance(event, Called)]
    reader.check()
    made = [RecordedCall(c.tool, c.arguments) for c in called if c.arguments is not None]
    intake = Intake(str(path), "call", len(made))
    for event in called:
        if event.arguments is None:
            intake = intake.missed(f"a call of {event.tool}", "its arguments are not recorded")
    if not called:
        raise NotRead(
            f"{path}: it contains no call of a tool, so nothing can be checked", reader.intake
        )
    check_read(intake, "a call with its arguments", understood())
    return Calls(made, tuple(some_unread([reader.intake, intake])))


def _calls_of_run(path: Path) -> Iterator[RecordedCall]:
    folder = RunFolder.read(path)
    clean = {cell.id for cell in folder.plan.cells if not cell.shifts}
    for record in folder.records():
        for step in record.steps if record.cell in clean else ():
            if step.kind == "call" and not step.malformed:
                yield RecordedCall(step.name, step.given)
