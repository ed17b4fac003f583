"""`toolshift report`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from toolshift.api import report_of
from toolshift.core.errors import UsageError
from toolshift.core.files import write
from toolshift.core.names import unknown
from toolshift.core.terminal import console, print_json, progress, save_svg
from toolshift.measure.report import Report
from toolshift.report.tables import GROUPINGS, groups_of
from toolshift.runs.run_folder import RunFolder


@dataclass(frozen=True)
class Wanted:
    """What is to be printed, and which files are to be written beside it."""

    agent: str = ""
    grouping: str = ""
    only_distinguishable: bool = False
    svg: Path | None = None
    html: Path | None = None
    no_html: bool = False
    markdown: Path | None = None
    as_json: bool = False


def report_command(paths: tuple[Path, ...], wanted: Wanted) -> None:
    """Reports on run folders as they stand: in the terminal, and as files that travel."""
    if wanted.grouping and wanted.grouping not in GROUPINGS:
        raise UsageError(unknown("table", wanted.grouping, GROUPINGS))
    folders = [RunFolder.read(path) for path in paths]
    reports = [report_of(folder) for folder in folders]
    if wanted.as_json:
        data = [_as_data(report, wanted) for report in reports]
        print_json(data if len(data) > 1 else data[0])
    else:
        _print(reports, wanted)
    if wanted.markdown is not None:
        from toolshift.report.markdown import as_markdown

        _write(wanted.markdown, as_markdown(reports).encode())
    if wanted.html is not None or not (wanted.no_html or wanted.as_json):
        _write_page(folders, reports, wanted.html or paths[0] / "report.html", wanted)


def _as_data(report: Report, wanted: Wanted) -> Any:
    if not wanted.grouping:
        return report.agent(wanted.agent) if wanted.agent else report
    agents = [report.agent(wanted.agent)] if wanted.agent else report.agents
    return {each.name: groups_of(each, wanted.grouping) for each in agents}


def _print(reports: Sequence[Report], wanted: Wanted) -> None:
    from toolshift.report.terminal import print_report

    paper = console(record=wanted.svg is not None)
    for report in reports:
        print_report(report, paper, wanted.only_distinguishable, wanted.agent, wanted.grouping)
    if wanted.svg is not None:
        save_svg(paper, wanted.svg)


def _write_page(
    folders: list[RunFolder], reports: Sequence[Report], out: Path, wanted: Wanted
) -> None:
    """Writes the HTML page; a run without an episode has none."""
    if not any(report.agents for report in reports):
        return
    from toolshift.report.html import write_page

    with progress("page") as watch:
        write_page(folders, out, reports, watch)
    if not wanted.as_json:
        click.echo(f"\nPage: {out}")


def _write(path: Path, content: bytes) -> None:
    try:
        write(path, content)
    except OSError as fault:
        raise UsageError(f"{path}: cannot write there ({fault.strerror})") from None
