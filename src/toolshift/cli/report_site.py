"""The static pages of `toolshift report --site`: many runs, or the runs of many days."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from toolshift.api import report_of
from toolshift.core.terminal import print_json, progress, say
from toolshift.core.text import visible
from toolshift.measure.comparable import comparability
from toolshift.measure.trend import has_lost, make_trend, read_days, sentence_of
from toolshift.report.html.leaderboard import write_leaderboard
from toolshift.report.html.trend import write_trend
from toolshift.runs.run_folder import RunFolder

DAYS_PAGE = "trend.html"


def write_board(runs: Sequence[Path], site: Path, as_json: bool) -> None:
    """Puts run folders on one static page: agents by suite, and which runs can be compared."""
    folders = [RunFolder.read(path) for path in runs]
    reports = []
    with progress("runs") as watch:
        for done, folder in enumerate(folders, 1):
            reports.append(report_of(folder))
            watch(done, len(folders))
    page = write_leaderboard(folders, reports, site)
    comparable = comparability(folders)
    pairs = zip(folders, reports, strict=True)
    empty = [str(folder.path) for folder, report in pairs if not report.agents]
    if as_json:
        print_json({"page": str(page), "comparable": comparable, "without_episodes": empty})
        return
    for name in empty:
        say(f"{name}: no episode has been run, so it is on no page.")
    for number, group in enumerate(comparable.groups, 1):
        many = "1 run" if len(group.runs) == 1 else f"{len(group.runs)} runs, comparable"
        say(f"Plan {number}: {group.suite}, {many}")
    for pair in comparable.apart:
        say(
            f"Plans {pair.first + 1} and {pair.second + 1} cannot be compared: "
            f"{'; '.join(pair.reasons)}"
        )
    say(f"Page: {page}")


def write_days(folder: Path, site: Path | None, fail_on_loss: bool, as_json: bool) -> None:
    """Puts the runs of many days on one static page: the same anchor tasks, and fresh ones.

    `site` is a folder, or the page itself where it ends in .html; in `folder` where None.
    """
    trend = make_trend(read_days(folder))
    out = site or folder
    if out.suffix != ".html":
        out = out / DAYS_PAGE
    write_trend(trend, out)
    lost = has_lost(trend)
    if as_json:
        print_json({"page": str(out), "lost": lost, "trend": trend})
    else:
        for agent in trend.agents:
            say(visible(sentence_of(trend, agent)))
        say(f"Page: {out}")
    sys.exit(int(bool(lost) and fail_on_loss))
