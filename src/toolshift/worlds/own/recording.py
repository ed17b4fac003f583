"""What real tools answered, kept: in memory for every world, in a file to replay it offline.

    {"format": 1, "tools": [...], "writes": [...]}
    {"task": "refund-1", "after": [], "name": "get_order", "arguments": {...}, "ok": true, ...}
    {"task": "refund-1", "after": [...], "holds": true}

An answer belongs to a task and to the writes made before it (`after`); reads are taken to change
nothing. The last kind of line says whether the task's state check held after these writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.files import write
from toolshift.core.tool import JSON, NOT_RECORDED, Result, Tool, error
from toolshift.interop.tools import from_mcp
from toolshift.worlds.own.arguments import without_defaults
from toolshift.worlds.own.file import WorldFile
from toolshift.worlds.own.sources import fields_of

FORMAT = 1
SORTED = msgspec.json.Encoder(order="sorted")
Write = tuple[str, str]
"""A call that changed something: the tool, and its arguments as sorted JSON."""


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a recording: an answer, or what a state check said."""

    task: str
    after: tuple[Write, ...] = ()
    name: str = ""
    arguments: dict[str, Any] = {}
    ok: bool = True
    data: Any = None
    form: str = "json"
    holds: bool | None = None


class Head(msgspec.Struct, frozen=True):
    """The first line: the tools as an MCP server would list them, and those known to write."""

    format: int
    tools: list[dict[str, Any]]
    writes: list[str] | None = None


def as_write(name: str, arguments: dict[str, Any]) -> Write:
    """A write as recordings and grades know it."""
    return name, SORTED.encode(arguments).decode()


class Recording:
    """Answers of real tools; the first answer to a call is kept."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, tuple[Write, ...], Write], Line] = {}
        self.verdicts: dict[tuple[str, tuple[Write, ...]], bool] = {}

    def keep(
        self,
        task: str,
        after: tuple[Write, ...],
        name: str,
        arguments: dict[str, Any],
        result: Result,
    ) -> None:
        """Keeps what a call brought."""
        line = Line(task, after, name, arguments, result.ok, result.data, result.form)
        self.answers.setdefault((task, after, as_write(name, arguments)), line)

    def judge(self, task: str, after: tuple[Write, ...], holds: bool) -> None:
        """Keeps what a state check said."""
        self.verdicts.setdefault((task, after), holds)

    def take(self, line: Line) -> None:
        """Takes up a line of an earlier recording."""
        if line.holds is not None:
            self.judge(line.task, line.after, line.holds)
        else:
            call = as_write(line.name, line.arguments)
            self.answers.setdefault((line.task, line.after, call), line)

    def answer(
        self, task: str, after: tuple[Write, ...], name: str, arguments: dict[str, Any]
    ) -> Result:
        """What a call brought; an error of its own code where it was never made."""
        line = self.answers.get((task, after, as_write(name, arguments)))
        if line is None:
            return error(NOT_RECORDED, f"{name} was never called like this in the recording.")
        fields = fields_of(name, line.data) if line.ok and line.form == "json" else ()
        return Result(line.ok, line.data, fields, line.form)

    def results(self, tool: str) -> list[Any]:
        """The data of the results that a tool gave."""
        return [line.data for line in self.answers.values() if line.ok and line.name == tool]

    @property
    def lines(self) -> Iterable[Line]:
        """Everything, in the order in which it was kept."""
        yield from self.answers.values()
        for (task, after), holds in self.verdicts.items():
            yield Line(task, after, holds=holds)

    def save(self, path: Path, head: Head) -> int:
        """Writes it to a file; returns the number of answers."""
        try:
            write(path, b"".join(JSON.encode(one) + b"\n" for one in (head, *self.lines)))
        except OSError as fault:
            raise UsageError(f"{path}: cannot write ({fault.strerror})") from None
        return len(self.answers)


def kept_lines(lines: Iterable[Line]) -> Recording:
    """A recording of lines that were kept in this form already."""
    recording = Recording()
    for line in lines:
        recording.take(line)
    return recording


def _plain(line: Line, tools: Mapping[str, Tool]) -> Line:
    """The line without arguments at their defaults, as calls are looked up."""

    def plain(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return without_defaults(tools[name], arguments) if name in tools else arguments

    after = tuple(as_write(n, plain(n, msgspec.json.decode(made))) for n, made in line.after)
    arguments = plain(line.name, line.arguments)
    return msgspec.structs.replace(line, arguments=arguments, after=after)


def read_recording(file: WorldFile) -> tuple[Head, Recording]:
    """The recording that a world's file names."""
    path = file.path.parent / str(file.tools["recording"])
    place = ("tools", "recording")
    try:
        raw = path.read_bytes().splitlines()
    except OSError as fault:
        raise file.near(place, f"cannot read {path.name} ({fault.strerror})") from None
    number = 1
    recording = Recording()
    try:
        head = msgspec.json.decode(raw[0] if raw else b"", type=Head)
        tools = {tool.name: tool for tool in from_mcp(head.tools).tools}
        for text in raw[1:]:
            number += 1
            line = _plain(msgspec.json.decode(text, type=Line), tools)
            recording.take(line)
    except (ValueError, RecursionError) as fault:
        raise file.near(place, f"{path.name}:{number}: not a recording: {fault}") from None
    if head.format > FORMAT:
        raise file.near(place, f"{path.name} was written by a newer ToolShift: upgrade to read it")
    return head, recording
