"""The page of `toolshift report --open`, served during the run too."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from toolshift.cli.parameters import option
from toolshift.core.errors import UsageError
from toolshift.core.terminal import progress, say
from toolshift.report.html.serve import Server
from toolshift.runs.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class ServedPage:
    """Where the page is served, and whether a browser is opened."""

    host: Annotated[str, option(help="--open: address to listen on.")] = "127.0.0.1"
    port: Annotated[int, option(help="--open: port; 0 takes a free one.")] = 0
    no_browser: Annotated[bool, option(help="--open: only print the address.")] = False


def open_page(runs: Sequence[Path], served: ServedPage) -> None:
    """Shows the report in the browser, with every trace, until Ctrl-C."""
    if not 0 <= served.port < 65536:
        raise UsageError(f"--port must be from 0 (any free port) to 65535, not {served.port}")
    folders = [RunFolder.read(run) for run in runs]
    with Server(folders, served.host, served.port) as server:
        with progress("making the page"):
            server.page()
        try:
            say(f"{', '.join(map(str, runs))}: {server.url}  (Ctrl-C stops)")
            if not served.no_browser:
                webbrowser.open(server.url)
            server.serve_forever()
        except KeyboardInterrupt:
            say("Stopped.", err=True)
