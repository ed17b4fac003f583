"""Commands by which outside programs meet ToolShift."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from toolshift.cli.group import toolshift
from toolshift.cli.options import as_json, entities
from toolshift.core.errors import UsageError


@toolshift.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8410, show_default=True, help="Port; 0 takes a free one.")
@click.option(
    "--token",
    default="",
    envvar="TOOLSHIFT_SERVE_TOKEN",
    help="Bearer token that clients must send; one is made and printed once where --host is not "
    "loopback.",
)
@click.option("--allow-host", "allowed", multiple=True, help="Name to answer to as well; repeat.")
@click.option("--idle", default=1800.0, show_default=True, help="Idle seconds until it is closed.")
@click.option("--no-protocol-tools", is_flag=True, help="Leave answering to the control API.")
@click.option("--stdio", is_flag=True, help="One episode over standard input and output.")
@click.option("--task", default="", metavar="WORLD/KIND[/INDEX]", help="stdio: the task.")
@click.option("--shift", "shifts", multiple=True, metavar="NAME[:SEV]", help="stdio: a shift.")
@click.option("--trace", type=click.Path(path_type=Path), help="stdio: file for the trace.")
@entities
def serve(
    host: str, port: int, token: str, allowed: tuple[str, ...], idle: float,
    no_protocol_tools: bool, stdio: bool, task: str, shifts: tuple[str, ...],
    trace: Path | None, seed: int, pool: str, size: int,
) -> None:  # fmt: skip
    """Serve scenes over MCP to agents in programs of their own.

    \b
    toolshift serve
    toolshift serve --stdio --task poi/visit --shift identity_erasure:2
    """
    from toolshift.cli.actions.serve import Listen, Single, serve_command, stdio_command

    if stdio:
        stdio_command(Single(task, shifts, seed, pool, size, trace), not no_protocol_tools)
        return
    if task or shifts or trace:
        raise UsageError("--task, --shift and --trace go with --stdio; else POST /episodes")
    serve_command(Listen(host, port, token, allowed, idle), not no_protocol_tools)


@toolshift.command()
@click.argument("command", nargs=-1, metavar="-- COMMAND [ARGUMENTS]...")
@click.option("--shift", "shifts", multiple=True, metavar="NAME[:SEV][+NAME[:SEV]]", help="Repeat.")
@click.option("--upstream-url", help="The real server over streamable HTTP, in place of a command.")
@click.option("--header", "headers", multiple=True, help="'Name: value' for it; $VAR is read.")
@click.option("--http", type=click.IntRange(1, 65535), metavar="PORT", help="Serve over HTTP.")
@click.option("--seed", default=0, show_default=True, help="Of every choice.")
@click.option("--pool", default="dev", show_default=True, help="Wordings: train, dev or test.")
@click.option("--needs", "needed", multiple=True, metavar="TOOL", help="Your agent needs it.")
@click.option("--skip-inapplicable", "skip", is_flag=True, help="Leave out what cannot apply.")
@click.option(
    "--allow-traps-that-write", "may_write", is_flag=True, help="Even on tools that write."
)
@click.option("--trace", type=click.Path(path_type=Path), help="Append each call to this file.")
@click.option("--dry-run", is_flag=True, help="Print the tools before and after; serve nothing.")
@as_json
def proxy(
    command: tuple[str, ...],
    upstream_url: str | None,
    headers: tuple[str, ...],
    shifts: tuple[str, ...],
    http: int | None,
    trace: Path | None,
    dry_run: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Show a real MCP server to any MCP client through shifts.

    \b
    toolshift proxy --shift semantic_rename:2 --shift format_drift:1 -- \\
        npx -y @modelcontextprotocol/server-filesystem DIR
    """
    from toolshift.cli.actions.proxy import proxy_command

    proxy_command(command, upstream_url, headers, shifts, how, http, trace, dry_run, as_json)
