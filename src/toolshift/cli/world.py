"""`toolshift world`: check a file of tasks, record its tools, write a first one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click
import msgspec

from toolshift.cli.group import Group
from toolshift.cli.options import VARIABLE, Headers, ModelOptions, named_header
from toolshift.cli.parameters import argument, option, options_struct
from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.files import check_writable
from toolshift.core.terminal import progress, say
from toolshift.interop.client_files import server_of
from toolshift.interop.server import ADDRESS, COMMAND, command_of
from toolshift.runs.own_checking import let_play
from toolshift.worlds.own import load
from toolshift.worlds.own.file import SOURCES, SYSTEM, WorldFile
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
    """Make the expected calls on the real tools, and keep the answers to replay them offline."""
    path, out = options.file, options.out
    check_writable(out, "--out")
    with progress("episodes") as watch:
        world = load(path)
        if world.source is None:
            raise UsageError(f"{path.name} replays a recording already: record from the real tools")
        try:
            let_play(world, options.agents, options.model.given(), watch)
        finally:
            kept = world.recording.save(out, world.head)
    say(f"{kept} answers of {len(world.tools)} tools are in {out}. To replay them:")
    recording = os.path.relpath(out, path.parent)
    plain = re.fullmatch(r"[\w./-]+", recording)
    say(f"  tools: {{recording: {recording if plain else json.dumps(recording)}}}")


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
            raise UsageError(f"--header goes with the address of a server, and not with {kind}")
        headers = dict(named_header(each, "--header") for each in self.headers)
        for name, value in headers.items():
            if not re.search(VARIABLE, value):
                raise UsageError(
                    f"--header {name}: its value would be written into {self.out}; put it into a "
                    f"variable, as in '{name}: ${{TOKEN}}'"
                )
        # In the file a variable has braces.
        put = {name: re.sub(VARIABLE, _braced, value) for name, value in headers.items()}
        return {**source, "headers": put}

    def source(self) -> dict[str, str]:
        """Where the tools come from, as the file of tasks has it."""
        if len(self.sources) != 1:
            raise UsageError(f"name one SOURCE of tools, and not {len(self.sources)}")
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
        raise UsageError(f"{out} is there already: name another file")
    asked = {"base_url": "http://localhost", **tools} if "openapi" in tools else tools
    file = WorldFile(
        out,
        "my_world",
        SYSTEM,
        asked,
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


def _braced(found: re.Match[str]) -> str:
    return f"${{{found[1] or found[2]}}}"


def _skeleton(source: Mapping[str, Any], listed: list[dict[str, Any]]) -> str:
    named = msgspec.json.encode(source).decode()
    lines = [
        "world: my_world",
        f"tools: {named}",
        "# writes: [...]  (the tools that change something; others are then taken to read)",
        "tasks:",
        "  - id: first",
        "    ask: What should the agent do?",
        "    calls: []  # the good path: [{name: ..., arguments: {...}}]",
        "    check:",
        '      answer: "what it matches"',
        '      example: "what it matches"  # not needed where a result of the calls has it',
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
