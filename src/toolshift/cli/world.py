"""A world from the user's own tools."""

from __future__ import annotations

from pathlib import Path

import click

from toolshift.cli.group import Group, toolshift
from toolshift.cli.options import MODEL_OPTIONS, as_json, model

FILE = click.Path(path_type=Path)


@toolshift.group(cls=Group)
def world() -> None:
    """A world from your own tools: an MCP server, an OpenAPI document or Python functions.

    \b
    toolshift world init --mcp "uvx mcp-server-time" --out tasks.yaml
    toolshift world check tasks.yaml
    toolshift run --world tasks.yaml --agent mymodule:my_agent
    """


@world.command("check")
@click.argument("file", type=FILE)
@as_json
def world_check(file: Path, as_json: bool) -> None:
    """Try every task on its tools and under every shift; exit 1 where one does not pass."""
    from toolshift.cli.actions.world import check_command

    check_command(file, as_json)


@world.command("record")
@click.argument("file", type=FILE)
@click.option("--out", type=FILE, required=True, help="The recording to write.")
@click.option("--agent", "agents", multiple=True, help="Record this agent's calls too; repeat.")
@model
def world_record(file: Path, out: Path, agents: tuple[str, ...], **asked: object) -> None:
    """Make the expected calls on the real tools, and keep the answers to replay them offline."""
    from toolshift.cli.actions.world import record_command

    picked = {name: value for name in MODEL_OPTIONS if (value := asked[name]) is not None}
    record_command(file, out, agents, picked)


@world.command("init")
@click.option("--mcp", default="", metavar="COMMAND", help="An MCP server to start.")
@click.option("--mcp-url", default="", metavar="URL", help="An MCP server that runs.")
@click.option("--openapi", default="", metavar="FILE", help="An OpenAPI 3 document.")
@click.option("--python", default="", metavar="MODULE[:NAME]", help="Annotated functions.")
@click.option("--out", type=FILE, required=True, help="The file to write.")
def world_init(out: Path, **source: str) -> None:
    """Write a first file of tasks, with the tools listed."""
    from toolshift.cli.actions.world import init_command

    init_command({name: value for name, value in source.items() if value}, out)
