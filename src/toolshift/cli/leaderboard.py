"""`toolshift leaderboard`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from toolshift.api import report_of
from toolshift.cli.options import PATH, as_json, options_struct
from toolshift.core.terminal import print_json, progress, say
from toolshift.measure.comparable import comparability
from toolshift.report.html.leaderboard import write_leaderboard
from toolshift.runs.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class LeaderboardOptions:
    """What `toolshift leaderboard` is asked for."""

    runs: tuple[Path, ...]
    out: Path
    as_json: bool


@click.command()
@click.argument("runs", metavar="RUN [RUN ...]", nargs=-1, required=True, type=PATH)
@click.option(
    "--out", required=True, type=PATH, metavar="FOLDER", help="Where the page is written."
)
@as_json
@options_struct(LeaderboardOptions)
def leaderboard(options: LeaderboardOptions) -> None:
    """Put run folders on one static page: agents by suite, and which runs can be compared.

    \b
    toolshift leaderboard runs/* --out site
    """
    folders = [RunFolder.read(path) for path in options.runs]
    reports = []
    with progress("runs") as watch:
        for done, folder in enumerate(folders, 1):
            reports.append(report_of(folder))
            watch(done, len(folders))
    page = write_leaderboard(folders, reports, options.out)
    found = comparability(folders)
    if options.as_json:
        print_json({"page": str(page), "comparable": found})
        return
    for number, group in enumerate(found.groups, 1):
        many = "1 run" if len(group.runs) == 1 else f"{len(group.runs)} runs, comparable"
        say(f"Plan {number}: {group.suite}, {many}")
    for pair in found.apart:
        say(
            f"Plans {pair.first + 1} and {pair.second + 1} cannot be compared: "
            f"{'; '.join(pair.reasons)}"
        )
    say(f"Page: {page}")
