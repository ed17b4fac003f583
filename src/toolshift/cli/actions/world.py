"""`toolshift world`: check a file of tasks, record its tools, write a first one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.terminal import print_json, print_table, progress


def check_command(path: Path, as_json: bool) -> None:
    """Tries every task on its tools and under every shift, and says what was found."""
    from toolshift.runs.own_checking import check_tasks
    from toolshift.worlds.own import load

    with progress("tasks") as watch:
        world = load(path)
        found = check_tasks(world, watch)
    if as_json:
        print_json(found)
        return
    print_table("", ("task", "", "shifts", ""), [[t.id, t.state, t.shifts, t.said] for t in found])
    if world.shared:
        click.echo(f"\nNote: {world.shared}.")
    if not world.writes and world.file.writes is None:
        click.echo(
            "\nNote: no tool is known to change anything, so no write is judged surplus. Name "
            "those that do under `writes:`."
        )
    broken = sum(task.state == "fail" for task in found)
    click.echo(f"\n{world.name}: {len(found)} tasks, {len(world.tools)} tools, {broken} broken")
    if broken:
        raise SystemExit(1)


def record_command(path: Path, out: Path, agents: tuple[str, ...], options: dict[str, Any]) -> None:
    """Makes the expected calls, and perhaps an agent's, on the real tools; keeps the answers."""
    from toolshift.runs.own_checking import let_play
    from toolshift.worlds.own import load

    if out.is_dir():
        raise UsageError(f"{out} is a folder: name a file, as in --out recording.jsonl")
    with progress("episodes") as watch:
        world = load(path)
        if world.source is None:
            raise UsageError(f"{path.name} replays a recording already: record from the real tools")
        try:
            let_play(world, agents, options, watch)
        finally:
            kept = world.recording.save(out, world.head)
    click.echo(f"{kept} answers of {len(world.tools)} tools are in {out}. To replay them:")
    click.echo(f"  tools: {{recording: {out.name}}}")


def init_command(source: Mapping[str, str], out: Path) -> None:
    """Writes a skeleton with the tools of a source listed."""
    from toolshift.worlds.own.file import SYSTEM, WorldFile
    from toolshift.worlds.own.world import find_source

    if len(source) != 1:
        raise UsageError("say where the tools come from: --mcp, --mcp-url, --openapi or --python")
    if out.exists():
        raise UsageError(f"{out} is there already: name another file")
    tools = dict(source)
    if "openapi" in tools:
        tools.setdefault("base_url", "http://localhost")
    file = WorldFile(out, "my_world", SYSTEM, tools, None, (), "", lambda place: f"--{place[-1]}")
    listed = find_source(file).listed
    try:
        out.write_text(_skeleton(source, listed))
    except OSError as fault:
        raise UsageError(f"{out}: cannot write ({fault.strerror})") from None
    click.echo(f"{len(listed)} tools are listed in {out}. Fill in the tasks, then:")
    click.echo(f"  toolshift world check {out}")


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
