"""`toolshift view`: the report and every trace in the browser, while the run may still go on."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from pathlib import Path

import click

from toolshift.cli.options import PATH, options_struct
from toolshift.core.errors import UsageError
from toolshift.core.terminal import progress, say
from toolshift.report.html.serve import Server
from toolshift.runs.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class ViewOptions:
    """What `toolshift view` is asked for."""

    runs: tuple[Path, ...]
    port: int
    host: str
    no_browser: bool


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=PATH)
@click.option("--port", default=0, show_default=True, help="0 takes any that is free.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@options_struct(ViewOptions)
def view(options: ViewOptions) -> None:
    """Show the report in the browser, with every trace, also while the run goes on."""
    if not 0 <= options.port < 65536:
        raise UsageError(f"--port goes from 0 (any that is free) to 65535, not {options.port}")
    folders = [RunFolder.read(run) for run in options.runs]
    with Server(folders, options.host, options.port) as server:
        with progress("making the page"):
            server.page()
        try:
            say(f"{', '.join(map(str, options.runs))}: {server.url}  (Ctrl-C stops)")
            if not options.no_browser:
                webbrowser.open(server.url)
            server.serve_forever()
        except KeyboardInterrupt:
            say("Stopped.", err=True)
