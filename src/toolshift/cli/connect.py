"""Commands by which outside programs meet ToolShift."""

from __future__ import annotations

from pathlib import Path

import click

from toolshift.cli.group import toolshift
from toolshift.cli.options import entities
from toolshift.errors import UsageError


@toolshift.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8410, show_default=True, help="Port; 0 takes a free one.")
@click.option(
    "--token",
    default="",
    envvar="TOOLSHIFT_SERVE_TOKEN",
    help="What clients must bear; one is made and printed once where --host is not loopback.",
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
    from toolshift.commands.serve import Listen, Single, serve_command, stdio_command

    if stdio:
        stdio_command(Single(task, shifts, seed, pool, size, trace), not no_protocol_tools)
        return
    if task or shifts or trace:
        raise UsageError("--task, --shift and --trace go with --stdio; else POST /episodes")
    serve_command(Listen(host, port, token, allowed, idle), not no_protocol_tools)
