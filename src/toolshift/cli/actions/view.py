"""`toolshift view`: the report and every trace in the browser, while the run may still go on."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from toolshift.core.errors import UsageError
from toolshift.core.terminal import progress
from toolshift.runs.run_folder import RunFolder


def view_command(runs: tuple[Path, ...], host: str, port: int, browser: bool) -> None:
    """Serves the page until Ctrl-C."""
    from toolshift.report.html.serve import Server

    if not 0 <= port < 65536:
        raise UsageError(f"--port goes from 0 (any that is free) to 65535, not {port}")
    folders = [RunFolder.read(run) for run in runs]
    with Server(folders, host, port) as server:
        with progress("making the page"):
            server.page()
        try:
            click.echo(f"{', '.join(map(str, runs))}: {server.url}  (Ctrl-C stops)")
            if browser:
                webbrowser.open(server.url)
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo("Stopped.", err=True)
