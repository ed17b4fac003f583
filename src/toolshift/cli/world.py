"""`toolshift world`: record the tools of a file of tasks, write a first one, make one of traces."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import click

from toolshift.cli.group import Group
from toolshift.cli.options import (
    VARIABLE,
    AsJson,
    Headers,
    ModelOptions,
    named_header,
    say_unread,
)
from toolshift.cli.parameters import argument, option, options_struct
from toolshift.core.command_line import command
from toolshift.core.documents import read_yaml
from toolshift.core.errors import UsageError
from toolshift.core.files import check_writable, write
from toolshift.core.intake import NotRead, check_read, counted, some_unread
from toolshift.core.terminal import print_json, progress, say
from toolshift.core.values import as_json
from toolshift.data.trace_files import read_recorded
from toolshift.data.traces.world import (
    MOST_OF_A_KIND,
    MadeWorld,
    make_world,
    recorded_bytes,
    tasks_text,
)
from toolshift.drift.sources import read_sources
from toolshift.drift.stream import understood
from toolshift.interop.client_files import server_of
from toolshift.interop.server import ADDRESS, COMMAND, command_of
from toolshift.interop.tools import from_mcp
from toolshift.runs.own_checking import let_play
from toolshift.shifts.release.match import said_effect, verb, words
from toolshift.worlds.own import load
from toolshift.worlds.own.file import SOURCES, SYSTEM, WorldFile
from toolshift.worlds.own.openapi import server_in
from toolshift.worlds.own.world import find_source

PYTHON = "python:"
"""How a source begins that is annotated functions, as `mcp:` does for a server."""


@click.group(cls=Group)
def world() -> None:
    """A world from your own tools: an MCP server, an OpenAPI document or Python functions.

    \b
    toolshift world init 'mcp:uvx mcp-server-time' --out tasks.yaml
    toolshift check tasks.yaml
    toolshift run --world tasks.yaml --agent mymodule:my_agent
    """


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """What `toolshift world record` is asked for: whose calls of which tools to keep where."""

    file: Annotated[Path, argument()]
    out: Annotated[Path, option(help="The recording to write.")]
    agents: Annotated[
        tuple[str, ...], option("--agent", help="Record this agent's calls too; repeat.")
    ] = ()
    model: ModelOptions


@world.command("record")
@options_struct(RecordOptions)
def world_record(options: RecordOptions) -> None:
    """Make the expected calls on the real tools, and store the results to replay them offline."""
    path, out = options.file, options.out
    check_writable(out, "--out")
    with progress("episodes") as watch:
        world = load(path)
        if world.source is None:
            raise UsageError(f"{path.name} already replays a recording: record from the real tools")
        try:
            let_play(world, options.agents, options.model.given(), watch)
        finally:
            kept = world.recording.save(out, world.head)
    say(f"{kept} answers of {len(world.tools)} tools are in {out}. To replay them:")
    recording = os.path.relpath(out, path.parent)
    plain = re.fullmatch(r"[\w./-]+", recording)
    say(f"  tools: {{recording: {recording if plain else json.dumps(recording)}}}")


@dataclass(frozen=True, kw_only=True)
class TracesOptions:
    """What `toolshift world from-traces` is asked for.

    Attributes:
        files: traces or conversations.
        out: the file of tasks; the recording is written beside it.
        tools: sources of definitions of tools, as `toolshift lock` takes them.
        writes: the tools that change something.
        most: tasks of one kind.
    """

    files: Annotated[tuple[Path, ...], argument(metavar="FILE...")]
    out: Annotated[
        Path, option(help="The file of tasks to write; the recording is written next to it.")
    ]
    tools: Annotated[
        tuple[str, ...],
        option(metavar="SOURCE", help="Definitions of the tools, as for lock; repeat."),
    ] = ()
    writes: Annotated[
        tuple[str, ...], option(metavar="TOOL", help="A tool that changes something; repeat.")
    ] = ()
    most: Annotated[
        int, option(type=click.IntRange(min=1), help="Maximum number of tasks of one kind.")
    ] = MOST_OF_A_KIND
    as_json: AsJson = False


@world.command("from-traces")
@options_struct(TracesOptions)
def world_from_traces(options: TracesOptions) -> None:
    """Make a world from traces: tasks, expected calls and a recording, with personal data masked.

    FILE: spans of OpenTelemetry, OpenInference or the AI SDK, an export of Langfuse, LangSmith,
    Phoenix or MLflow, or conversations. What cannot be checked is left out, counted by reason.

    \b
    toolshift world from-traces spans.jsonl --writes refund_order --out tasks.yaml
    toolshift check tasks.yaml
    """
    recording = options.out.with_suffix(".recording.jsonl")
    _check_paths(options, recording)
    recorded, intakes = read_recorded(options.files)
    for intake in intakes:
        check_read(intake, "a call of a tool or a turn of a model", understood())
    tools = read_sources(options.tools).tools if options.tools else ()
    with TemporaryDirectory() as folder:
        made = make_world(recorded, Path(folder), tools, options.writes or None, options.most)
    if not made.tasks:
        why = (
            f"none of {counted(len(recorded), 'conversation')} can become a task: {_reasons(made)}"
        )
        raise NotRead(why if recorded else "no conversation is recorded in these files", intakes[0])
    name = re.sub(r"[^A-Za-z0-9_]+", "_", options.out.stem).strip("_") or "traces"
    name = name if name[0].isalpha() else f"w_{name}"
    write(recording, recorded_bytes(made.head, made.lines))
    write(options.out, tasks_text(name, made.system, made.tasks, recording.name).encode())
    if options.as_json:
        print_json(
            {
                "tasks": len(made.tasks), "kinds": made.kinds, "conversations": len(recorded),
                "answers": len(made.lines), "left_out": made.left_out, "masked": made.masked,
                "unread": some_unread(intakes),
            }
        )  # fmt: skip
        return
    _say_made(options, made, len(recorded), recording)
    say_unread(intakes)
    say(f"  {command('check', options.out)}")


def _say_made(options: TracesOptions, made: MadeWorld, count: int, recording: Path) -> None:
    tasks, kinds = counted(len(made.tasks), "task"), counted(len(made.kinds), "kind")
    say(
        f"{options.out}: {tasks} of {kinds}, from {counted(count, 'conversation')}; "
        f"{counted(len(made.lines), 'answer')} in {recording.name}."
    )
    if made.masked:
        say(f"Masked: {', '.join(counted(n, what) for what, n in sorted(made.masked.items()))}.")
    say("Names and addresses cannot be recognised and are not masked: check both files.")
    if made.left_out:
        say(f"Left out: {_reasons(made)}.")


def _reasons(made: MadeWorld) -> str:
    return "; ".join(f"{why} ({count})" for why, count in sorted(made.left_out.items()))


def _check_paths(options: TracesOptions, recording: Path) -> None:
    """Checks that the files to read are there, and those to write are not."""
    if not options.files:
        raise UsageError("name at least one FILE of traces")
    for path in (options.out, recording):
        if path.exists():
            raise UsageError(f"{path} already exists: name another file")
        check_writable(path, "--out")
    for path in options.files:
        if not path.is_file():
            what = "a folder: name a file in it" if path.is_dir() else "not there"
            raise UsageError(f"{path} is {what}")


@dataclass(frozen=True, kw_only=True)
class InitOptions:
    """What `toolshift world init` is asked for."""

    sources: Annotated[tuple[str, ...], argument(metavar="SOURCE")]
    out: Annotated[Path, option(help="The file to write.")]
    headers: Headers = ()

    def tools(self) -> dict[str, Any]:
        """Where the tools come from, and the headers of the server, as the file has both."""
        source = self.source()
        if not self.headers:
            return dict(source)
        kind = next(iter(source))
        if "headers" not in SOURCES[kind]:
            raise UsageError(f"--header works only with the address of a server, not with {kind}")
        headers = dict(named_header(each, "--header") for each in self.headers)
        for name, value in headers.items():
            if not re.search(VARIABLE, value):
                raise UsageError(
                    f"--header {name}: its value would be written into {self.out}; use a "
                    f"variable instead, as in '{name}: ${{TOKEN}}'"
                )
        # In the file a variable has braces.
        put = {name: re.sub(VARIABLE, _braced, value) for name, value in headers.items()}
        return {**source, "headers": put}

    def source(self) -> dict[str, str]:
        """Where the tools come from, as the file of tasks has it."""
        if len(self.sources) != 1:
            raise UsageError(f"name one SOURCE of tools, not {len(self.sources)}")
        (source,) = self.sources
        if source.startswith(COMMAND):
            command_of(source)
            return {"mcp": source.removeprefix(COMMAND)}
        if source.startswith(ADDRESS):
            return {"mcp_url": source}
        if server_of(source) is not None:
            return {"mcp_config": os.path.relpath(source, self.out.parent)}
        if source.startswith(PYTHON):
            return {"python": source.removeprefix(PYTHON)}
        return {"openapi": source}


@world.command("init")
@options_struct(InitOptions)
def world_init(options: InitOptions) -> None:
    """Write a first file of tasks, with the tools listed.

    SOURCE: an MCP server (mcp:COMMAND, its http address, or FILE#NAME for one in the file of an MCP
    client), an OpenAPI 3 document, or annotated functions (python:MODULE[:NAME]).
    """
    tools, out = options.tools(), options.out
    if out.exists():
        raise UsageError(f"{out} already exists: name another file")
    if "openapi" in tools:
        tools = {**tools, "base_url": _address(out, tools)}
    file = WorldFile(
        out,
        "my_world",
        SYSTEM,
        tools,
        None,
        (),
        "",
        lambda place: options.sources[0],
    )
    listed = find_source(file).listed
    try:
        out.write_text(_skeleton(tools, listed))
    except OSError as fault:
        raise UsageError(f"{out}: cannot write ({fault.strerror})") from None
    say(f"{len(listed)} tools are listed in {out}. Fill in the tasks, then:")
    say(f"  {command('check', out)}")


NO_ADDRESS = "http://localhost"


def _address(out: Path, tools: Mapping[str, Any]) -> str:
    """The address of the server by the document; the own machine's where it names none."""
    path = out.parent / str(tools["openapi"])
    try:
        named = server_in(read_yaml(path.read_bytes(), path.name))
    except (OSError, UsageError):  # said where the tools are read
        return NO_ADDRESS
    return named if named.startswith(("http://", "https://")) else NO_ADDRESS


def _braced(found: re.Match[str]) -> str:
    return f"${{{found[1] or found[2]}}}"


def _writes(listed: Sequence[Mapping[str, Any]]) -> list[str]:
    """The tools that change something, as far as they say so, for the user to correct."""
    effects = {
        # Of several verbs in a name the first counts: get_order reads.
        name: said_effect(one)[0] or next(filter(None, map(verb, words(name))), None)
        for name, one in from_mcp(listed).sources.items()
    }
    writing = [name for name, effect in effects.items() if effect == "write"]
    unsaid = [name for name, effect in effects.items() if effect is None]
    if not writing:
        return ["# writes: [...]  (the tools that change something; all others then only read)"]
    lines = [
        f"writes: {json.dumps(writing)}  # guessed from names and hints: the tools that change "
        "something; all others only read"
    ]
    if unsaid:
        lines.append(f"# Add the tools from this list that change something: {', '.join(unsaid)}")
    return lines


def _skeleton(source: Mapping[str, Any], listed: list[dict[str, Any]]) -> str:
    named = as_json(source)
    lines = [
        "world: my_world",
        f"tools: {named}",
        *_writes(listed),
        "tasks:",
        "  - id: first",
        "    ask: What should the agent do?",
        "    calls: []  # the expected calls: [{name: ..., arguments: {...}}]",
        "    check:",
        '      answer: "4"  # what a right answer must state: a value, or a list of values',
        '      example: "There are 4."  # a right answer; needed if no result contains it',
        "",
        "# The tools, with their arguments (* must be given):",
    ]
    for raw in listed:
        schema = raw.get("inputSchema") or {}
        needed = schema.get("required") or ()
        names = [name + "*" * (name in needed) for name in schema.get("properties") or ()]
        told = (str(raw.get("description") or "").strip().splitlines() or [""])[0][:80]
        lines.append(f"#   {raw.get('name')}({', '.join(names)})  {told}".rstrip())
    return "\n".join(lines) + "\n"
