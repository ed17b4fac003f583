"""`toolshift report`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from toolshift.api import report_of
from toolshift.cli.options import PATH, as_json, options_struct
from toolshift.core.errors import UsageError
from toolshift.core.files import write
from toolshift.core.intake import Intake, NotRead
from toolshift.core.names import unknown
from toolshift.core.terminal import console, print_json, progress, save_svg, say
from toolshift.measure.report import Report
from toolshift.report.html import write_page
from toolshift.report.markdown import as_markdown
from toolshift.report.tables import GROUPINGS, groups_of
from toolshift.report.terminal import print_report
from toolshift.report.travel.eval_results import write_results
from toolshift.report.travel.every_eval_ever import write_records
from toolshift.runs.parts import joined
from toolshift.runs.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class TravelOptions:
    """The results in forms of others.

    Attributes:
        eee: the folder for records of Every Eval Ever; None for none.
        model_id: who the agent is, as OWNER/NAME; "" to take it from the run.
        evaluator: who ran the evaluation; "" where it is not said.
        hf_eval_results: the folder for evaluation results of Hugging Face; None for none.
        hf_dataset: the benchmark on the Hub that they belong to.
        source_url: where traces or a text can be read; "" for nowhere.
    """

    eee: Path | None
    model_id: str
    evaluator: str
    hf_eval_results: Path | None
    hf_dataset: str
    source_url: str


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What is to be printed, and which files are to be written beside it.

    Attributes:
        agent: only this agent, in detail; "" for all.
        join: the runs are parts of one.
        grouping: the table to print; "" for the usual ones.
        html: the page; beside the first run where None.
    """

    runs: tuple[Path, ...]
    agent: str
    join: bool
    grouping: str
    only_distinguishable: bool
    svg: Path | None
    html: Path | None
    no_html: bool
    markdown: Path | None
    travel: TravelOptions
    as_json: bool


@click.command()
@click.argument("runs", metavar="RUN [RUN ...]", nargs=-1, required=True, type=PATH)
@click.option("--agent", default="", help="Only this agent, in detail.")
@click.option(
    "--join",
    is_flag=True,
    help="The runs are parts of one, with seeds of their own: report on the whole. A page is "
    "written with --html only.",
)
@click.option(
    "--table",
    "grouping",
    default="",
    help="Print this table: tiers, dimensions, cells (tier x dimension), shifts, severities, kinds "
    "or worlds.",
)
@click.option("--only-distinguishable", is_flag=True, help="Print only what is significant.")
@click.option("--svg", type=PATH, help="Draw what is printed to this file.")
@click.option(
    "--html",
    type=PATH,
    help="Write the page here (default: report.html in the first run's folder).",
)
@click.option("--no-html", is_flag=True, help="Write no page.")
@click.option("--markdown", type=PATH, help="Write a summary for a pull request to this file.")
@click.option(
    "--eee",
    type=PATH,
    metavar="FOLDER",
    help="Write records of Every Eval Ever (schema 0.3) below this folder.",
)
@click.option("--model-id", default="", metavar="OWNER/NAME", help="Who the agent is, for --eee.")
@click.option("--evaluator", default="", help="Who ran the evaluation, for --eee.")
@click.option(
    "--hf-eval-results",
    type=PATH,
    metavar="FOLDER",
    help="Write evaluation results of Hugging Face (.eval_results/*.yaml) below this folder.",
)
@click.option(
    "--hf-dataset",
    default="",
    metavar="OWNER/NAME",
    help="The benchmark on the Hub, for --hf-eval-results.",
)
@click.option(
    "--source-url", default="", metavar="URL", help="Where traces are, for --hf-eval-results."
)
@as_json
@options_struct(ReportOptions)
def report(wanted: ReportOptions) -> None:
    """Print the report of run folders again, also of unfinished ones, and write their page."""
    if wanted.grouping and wanted.grouping not in GROUPINGS:
        raise UsageError(unknown("table", wanted.grouping, GROUPINGS))
    _check_together(wanted)
    folders = [RunFolder.read(path) for path in wanted.runs]
    if wanted.join:
        folders = [joined(folders)]
    reports = [report_of(folder) for folder in folders]
    _check_episodes(folders, reports)
    if wanted.as_json:
        data = [_as_data(report, wanted) for report in reports]
        print_json(data if len(data) > 1 else data[0])
    else:
        _print(folders, reports, wanted)
    if wanted.markdown is not None:
        _write(wanted.markdown, as_markdown(reports).encode())
    for folder, report in zip(folders, reports, strict=True):
        for file in _export(folder, report, wanted):
            say(f"Written: {file}", err=True)
    if wanted.html is not None or not (wanted.no_html or wanted.as_json or wanted.join):
        _write_page(folders, reports, wanted.html or wanted.runs[0] / "report.html", wanted)


def _check_episodes(folders: Sequence[RunFolder], reports: Sequence[Report]) -> None:
    """Checks that an episode has been run in one of the folders."""
    if not any(report.agents for report in reports):
        names = ", ".join(str(folder.path) for folder in folders)
        raise NotRead(
            f"{names}: no episode has been run, so there is no result. The command that made the "
            "folder goes on with it",
            Intake(names, "episode"),
        )


def _check_together(wanted: ReportOptions) -> None:
    """Checks that each option has the one that it is for."""
    travel = wanted.travel
    if travel.hf_eval_results and not travel.hf_dataset:
        raise UsageError(
            "--hf-eval-results needs --hf-dataset OWNER/NAME: the benchmark on the Hub that the "
            "results belong to"
        )
    if wanted.html and wanted.no_html:
        raise UsageError("--html writes the page and --no-html writes none: leave one of them out")
    for option, given, needed, folder in (
        ("--model-id", travel.model_id, "--eee", travel.eee),
        ("--evaluator", travel.evaluator, "--eee", travel.eee),
        ("--hf-dataset", travel.hf_dataset, "--hf-eval-results", travel.hf_eval_results),
        ("--source-url", travel.source_url, "--hf-eval-results", travel.hf_eval_results),
    ):
        if given and folder is None:
            raise UsageError(f"{option} is for {needed} FOLDER: add that, or leave {option} out")


def _export(folder: RunFolder, report: Report, wanted: ReportOptions) -> list[Path]:
    """Writes the results in forms of others; returns the files."""
    travel, files = wanted.travel, []
    if travel.eee is not None:
        with progress("episodes") as watch:
            files += write_records(
                folder, report, travel.eee, wanted.agent, travel.model_id, travel.evaluator, watch
            )
    if travel.hf_eval_results is not None:
        files += write_results(
            folder,
            report,
            travel.hf_eval_results,
            travel.hf_dataset,
            wanted.agent,
            travel.source_url,
        )
    return files


def _as_data(report: Report, wanted: ReportOptions) -> Any:
    if not wanted.grouping:
        return report.agent(wanted.agent) if wanted.agent else report
    agents = [report.agent(wanted.agent)] if wanted.agent else report.agents
    return {each.name: groups_of(each, wanted.grouping) for each in agents}


def _print(folders: Sequence[RunFolder], reports: Sequence[Report], wanted: ReportOptions) -> None:
    paper = console(record=wanted.svg is not None)
    for folder, report in zip(folders, reports, strict=True):
        run = None if wanted.join else folder.path
        print_report(report, paper, wanted.only_distinguishable, wanted.agent, wanted.grouping, run)
    if wanted.svg is not None:
        save_svg(paper, wanted.svg)


def _write_page(
    folders: list[RunFolder], reports: Sequence[Report], out: Path, wanted: ReportOptions
) -> None:
    """Writes the HTML page; a run without an episode has none."""
    if not any(report.agents for report in reports):
        return
    with progress("page") as watch:
        write_page(folders, out, reports, watch)
    if not wanted.as_json:
        say(f"\nPage: {out}")


def _write(path: Path, content: bytes) -> None:
    try:
        write(path, content)
    except OSError as fault:
        raise UsageError(f"{path}: cannot write there ({fault.strerror})") from None
