"""`toolshift world`: check a file of tasks, record its tools, write a first one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from toolshift.cli.group import Group
from toolshift.cli.options import PATH, ModelOptions, as_json, model, options_struct
from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.files import check_writable
from toolshift.core.terminal import print_json, print_table, progress, say
from toolshift.runs.own_checking import check_tasks, let_play
from toolshift.worlds.own import load
from toolshift.worlds.own.file import SYSTEM, WorldFile
from toolshift.worlds.own.world import find_source


@click.group(cls=Group)
def world() -> None:
    """A world from your own tools: an MCP server, an OpenAPI document or Python functions.

    \b
    toolshift world init --mcp "uvx mcp-server-time" --out tasks.yaml
    toolshift world check tasks.yaml
    toolshift run --world tasks.yaml --agent mymodule:my_agent
    """


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """What `toolshift world check` is asked for."""

    file: Path
    as_json: bool


@world.command("check")
@click.argument("file", type=PATH)
@as_json
@options_struct(CheckOptions)
def world_check(options: CheckOptions) -> None:
    """Try every task on its tools and under every shift; exit 1 where one does not pass."""
    with progress("tasks") as watch:
        world = load(options.file)
        found = check_tasks(world, watch)
    if options.as_json:
        print_json(found)
        return
    print_table("", ("task", "", "shifts", ""), [[t.id, t.state, t.shifts, t.said] for t in found])
    if world.shared:
        say(f"\nNote: {world.shared}.")
    if not world.writes and world.file.writes is None:
        say(
            "\nNote: no tool is known to change anything, so no write is judged surplus. Name "
            "those that do under `writes:`."
        )
    broken = sum(task.state == "fail" for task in found)
    say(f"\n{world.name}: {len(found)} tasks, {len(world.tools)} tools, {broken} broken")
    if broken:
        raise SystemExit(1)


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """What `toolshift world record` is asked for: whose calls of which tools to keep where."""

    file: Path
    out: Path
    agents: tuple[str, ...]
    model: ModelOptions


@world.command("record")
@click.argument("file", type=PATH)
@click.option("--out", type=PATH, required=True, help="The recording to write.")
@click.option("--agent", "agents", multiple=True, help="Record this agent's calls too; repeat.")
@model
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
class Source:
    """Where tools come from; "" where they do not."""

    mcp: str
    mcp_url: str
    openapi: str
    python: str

    def named(self) -> dict[str, str]:
        """What is said, as the file of tasks has it."""
        found = {name: value for name, value in asdict(self).items() if value}
        if len(found) != 1:
            raise UsageError(
                "say where the tools come from: one of --mcp, --mcp-url, --openapi and --python"
            )
        return found


@dataclass(frozen=True, kw_only=True)
class InitOptions:
    """What `toolshift world init` is asked for."""

    source: Source
    out: Path


@world.command("init")
@click.option("--mcp", default="", metavar="COMMAND", help="An MCP server to start.")
@click.option("--mcp-url", default="", metavar="URL", help="An MCP server that runs.")
@click.option("--openapi", default="", metavar="FILE", help="An OpenAPI 3 document.")
@click.option("--python", default="", metavar="MODULE[:NAME]", help="Annotated functions.")
@click.option("--out", type=PATH, required=True, help="The file to write.")
@options_struct(InitOptions)
def world_init(options: InitOptions) -> None:
    """Write a first file of tasks, with the tools listed."""
    source, out = options.source.named(), options.out
    if out.exists():
        raise UsageError(f"{out} is there already: name another file")
    tools = dict(source)
    if "openapi" in tools:
        tools.setdefault("base_url", "http://localhost")
    file = WorldFile(
        out,
        "my_world",
        SYSTEM,
        tools,
        None,
        (),
        "",
        lambda place: f"--{place[-1]}".replace("_", "-"),
    )
    listed = find_source(file).listed
    try:
        out.write_text(_skeleton(source, listed))
    except OSError as fault:
        raise UsageError(f"{out}: cannot write ({fault.strerror})") from None
    say(f"{len(listed)} tools are listed in {out}. Fill in the tasks, then:")
    say(f"  {command('world', 'check', out)}")


def _skeleton(source: Mapping[str, str], listed: list[dict[str, Any]]) -> str:
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
