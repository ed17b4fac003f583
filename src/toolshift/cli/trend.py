"""`toolshift trend`: an agent over months, on one static page."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import click

from toolshift.cli.options import PATH, as_json, options_struct
from toolshift.core.terminal import print_json, say
from toolshift.core.text import visible
from toolshift.measure.trend import has_lost, make_trend, read_days, sentence_of
from toolshift.report.html.trend import write_trend


@dataclass(frozen=True, kw_only=True)
class TrendOptions:
    """What `toolshift trend` is asked for."""

    folder: Path
    out: Path | None
    fail_on_loss: bool
    as_json: bool


@click.command()
@click.argument("folder", type=PATH)
@click.option("--out", type=PATH, metavar="FILE", help="The page (default: FOLDER/trend.html).")
@click.option(
    "--fail-on-loss",
    is_flag=True,
    help="Exit code 1 where an agent's last anchors are significantly worse than its first.",
)
@as_json
@options_struct(TrendOptions)
def trend(options: TrendOptions) -> None:
    """Put the runs of many days on one static page: the same anchor tasks, and fresh ones.

    FOLDER holds DAY/anchor and DAY/fresh, as `toolshift schedule` makes them.

    \b
    toolshift trend drift --out drift/trend.html
    """
    found = make_trend(read_days(options.folder))
    out = options.out or options.folder / "trend.html"
    write_trend(found, out)
    lost = has_lost(found)
    if options.as_json:
        print_json({"page": str(out), "lost": lost, "trend": found})
    else:
        for agent in found.agents:
            say(visible(sentence_of(found, agent)))
        say(f"Page: {out}")
    sys.exit(int(bool(lost) and options.fail_on_loss))
