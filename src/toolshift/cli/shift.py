"""Commands that make shifts of one's own."""

from __future__ import annotations

from pathlib import Path

import click

from toolshift.cli.group import Group, toolshift
from toolshift.cli.options import as_json


@toolshift.group(cls=Group)
def shift() -> None:
    """Make a shift of a change that is coming, and show what it changes."""


@shift.command("from-diff")
@click.argument("old")
@click.argument("new")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("change.json"), show_default=True
)
@click.option(
    "--mapping",
    type=click.Path(path_type=Path),
    help="File of answers to what cannot be inferred; read where it exists, else written. Default: "
    "beside --out, ending .mapping.toml.",
)
@click.option("--name", default="", help="Of the shift (default: the file's).")
@click.option("--yes", is_flag=True, help="Take the likeliest of what is doubtful.")
@click.option("--dry-run", is_flag=True, help="Print what changes, and write nothing.")
@as_json
def from_diff(
    old: str,
    new: str,
    out: Path,
    mapping: Path | None,
    name: str,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make a shift of the difference between two versions of a tool list.

    OLD and NEW: a file (MCP tools, OpenAI tools or OpenAPI 3; JSON or YAML), a server that is
    started (mcp:COMMAND), or the http address of one.

    \b
    toolshift shift from-diff tools-v1.json tools-v2.json --out monday.json
    toolshift shift from-diff 'mcp:npx -y my-server@1' 'mcp:npx -y my-server@2' --out monday.json
    toolshift run --agent mymodule:my_agent --world tasks.yaml --shift monday.json
    """
    from toolshift.cli.actions.diff import from_diff_command

    from_diff_command(old, new, out, mapping, name, yes, dry_run, as_json)


@shift.command()
@click.argument("shift")
@as_json
def show(shift: str, as_json: bool) -> None:
    """Show what a shift changes: a file of from-diff, tool by tool, or a registered one."""
    from toolshift.cli.actions.diff import show_command

    show_command(shift, as_json)
