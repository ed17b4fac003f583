"""`toolshift report`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import click

from toolshift.api import report_of, save_report
from toolshift.cli.options import AsJson
from toolshift.cli.parameters import argument, on_command_line, option, options_struct
from toolshift.cli.report_open import ServedPage, open_page
from toolshift.cli.report_site import write_board, write_days
from toolshift.cli.running import UNMEASURED, nothing_measured, unmeasured
from toolshift.cli.sectioned import Sectioned
from toolshift.core.errors import UsageError
from toolshift.core.files import save
from toolshift.core.intake import Intake, NotRead
from toolshift.core.names import unknown
from toolshift.core.terminal import console, print_json, progress, save_svg, say
from toolshift.measure.report import Report
from toolshift.measure.trend import holds_days
from toolshift.report.html import write_page
from toolshift.report.markdown import as_markdown
from toolshift.report.tables import GROUPINGS, groups_of
from toolshift.report.terminal import print_report
from toolshift.report.travel.eval_results import write_results
from toolshift.report.travel.every_eval_ever import write_records
from toolshift.report.words import verdict as verdict_in_words
from toolshift.runs.decisions import decide
from toolshift.runs.parts import joined
from toolshift.runs.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class TravelOptions:
    """The results in forms of others.

    Attributes:
        eee: the folder for records of Every Eval Ever; None writes none.
        model_id: who the agent is, as OWNER/NAME; "" to take it from the run.
        evaluator: who ran the evaluation; "" where it is not said.
        hf_eval_results: the folder for evaluation results of Hugging Face; None writes none.
        hf_dataset: the benchmark on the Hub that they belong to.
        source_url: the address where traces or a text can be read; may be "".
    """

    eee: Annotated[
        Path | None,
        option(
            metavar="FOLDER",
            help="Write records of Every Eval Ever (schema 0.3) below this folder.",
        ),
    ] = None
    model_id: Annotated[
        str, option(metavar="OWNER/NAME", help="Id of the agent or of its model, for --eee.")
    ] = ""
    evaluator: Annotated[str, option(help="Who ran the evaluation, for --eee.")] = ""
    hf_eval_results: Annotated[
        Path | None,
        option(
            metavar="FOLDER",
            help="Write evaluation results of Hugging Face (.eval_results/*.yaml) below this "
            "folder.",
        ),
    ] = None
    hf_dataset: Annotated[
        str, option(metavar="OWNER/NAME", help="The benchmark on the Hub, for --hf-eval-results.")
    ] = ""
    source_url: Annotated[
        str, option(metavar="URL", help="Address of the traces, for --hf-eval-results.")
    ] = ""


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What is to be printed, and which files are to be written beside it.

    Attributes:
        agent: only this agent, in detail; "" shows all agents.
        join: the runs are parts of one.
        grouping: the table to print; "" for the usual ones.
        details: print all measures and intervals below the first screen.
        html: the page; beside the first run where None.
        site: where the page of many runs, or of many days, is written; None writes no page.
        fail_on_loss: end with exit code 1 where an agent is worse on its last day.
        open_: serve the page and show it in the browser.
    """

    runs: Annotated[tuple[Path, ...], argument(metavar="RUN [RUN ...]")]
    agent: Annotated[str, option(help="Only this agent, in detail.")] = ""
    join: Annotated[
        bool,
        option(
            help="The runs are parts of one run, with different seeds: report on them together. A "
            "page is written only with --html."
        ),
    ] = False
    grouping: Annotated[
        str,
        option(
            "--table",
            help="Print this table: tiers, dimensions, cells (tier x dimension), shifts, "
            "severities, kinds or worlds.",
        ),
    ] = ""
    details: Annotated[
        bool, option(help="Print all measures and intervals too, below the first screen.")
    ] = False
    only_distinguishable: Annotated[bool, option(help="Print only what is significant.")] = False
    svg: Annotated[
        Path | None, option(help="Write the printed output as a picture to this file.")
    ] = None
    html: Annotated[
        Path | None,
        option(help="Write the page here (default: report.html in the first run's folder)."),
    ] = None
    no_html: Annotated[bool, option(help="Write no page.")] = False
    markdown: Annotated[
        Path | None, option(help="Write a summary for a pull request to this file.")
    ] = None
    site: Annotated[
        Path | None,
        option(
            metavar="FOLDER",
            help="Write one page of all these runs to this folder: agents by suite, and which "
            "runs can be compared. For a folder of days: a page of the changes since the "
            "first day.",
        ),
    ] = None
    fail_on_loss: Annotated[
        bool,
        option(
            help="For a folder of days: exit code 1 if an agent's last anchors are significantly "
            "worse than its first."
        ),
    ] = False
    open_: Annotated[
        bool,
        option(
            "--open",
            help="Show the page in the browser, with every trace, also during the run.",
        ),
    ] = False
    served: ServedPage
    travel: TravelOptions
    decide: Annotated[
        tuple[str, ...],
        option(
            metavar="EPISODE=right|wrong",
            help="Decide an episode whose answer is unclear by its type; stored in the run folder.",
        ),
    ] = ()
    as_json: AsJson = False


@click.command(
    cls=Sectioned,
    first=("agent", "grouping", "html", "open_", "site", "markdown", "details",
           "as_json"),
)  # fmt: skip
@options_struct(ReportOptions)
def report(wanted: ReportOptions) -> None:
    """Print the report of run folders again, also of unfinished ones, and write their page.

    \b
    toolshift report runs/first --open            in the browser, with every trace
    toolshift report runs/* --site site           many runs on one page: agents by suite
    toolshift report drift --site site            a folder of days (DAY/anchor, DAY/fresh)

    Exit code 4: for some agent no episode has a verdict, so nothing was measured.
    """
    if wanted.open_:
        _only("--open", ("open_", "host", "port", "no_browser"))
        open_page(wanted.runs, wanted.served)
        return
    _check_served(wanted.served)
    days = [run for run in wanted.runs if holds_days(run)]
    if days:
        _report_days(days[0], wanted)
        return
    if wanted.fail_on_loss:
        raise UsageError(
            "--fail-on-loss works only with a folder of days, with runs in DAY/anchor: name such "
            "a folder, or leave --fail-on-loss out"
        )
    if wanted.site is not None:
        _only("--site", ("site", "as_json"))
        write_board(wanted.runs, wanted.site, wanted.as_json)
        return
    _report_runs(wanted)


def _report_days(folder: Path, wanted: ReportOptions) -> None:
    """Writes the page of a folder of days."""
    if len(wanted.runs) > 1:
        raise UsageError(f"{folder} contains the runs of many days: name no other run with it")
    _only(f"{folder}, a folder of days", ("site", "fail_on_loss", "as_json"))
    write_days(folder, wanted.site, wanted.fail_on_loss, wanted.as_json)


def _only(what: str, names: Sequence[str]) -> None:
    """Checks that nothing is asked for beside these options."""
    others = {str(param.name) for param in click.get_current_context().command.params}
    given = on_command_line(*others - {"runs", *names})
    if given:
        raise UsageError(f"{given[0]} cannot be used with {what}: leave one of them out")


def _check_served(served: ServedPage) -> None:
    """Checks that no option of --open stands alone."""
    given = on_command_line(*(field.name for field in fields(served)))
    if given:
        raise UsageError(f"{given[0]} works only with --open: add that, or leave {given[0]} out")


def _report_runs(wanted: ReportOptions) -> None:
    """Prints the reports, and writes what is asked for beside them."""
    if wanted.grouping and wanted.grouping not in GROUPINGS:
        raise UsageError(unknown("table", wanted.grouping, GROUPINGS))
    _check_together(wanted)
    folders = [RunFolder.read(path) for path in wanted.runs]
    if wanted.decide:
        folders = [_decided(folders, wanted.decide)]
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
        save(wanted.markdown, as_markdown(reports).encode())
    for folder, report in zip(folders, reports, strict=True):
        for file in _export(folder, report, wanted):
            say(f"Written: {file}", err=True)
    if wanted.html is not None or not (wanted.no_html or wanted.as_json or wanted.join):
        _write_page(folders, reports, wanted.html or wanted.runs[0] / "report.html", wanted)
    _check_measured(reports)


def _check_measured(reports: Sequence[Report]) -> None:
    """Ends with an exit code of its own where of an agent nothing was measured."""
    without = [report for report in reports if unmeasured(report)]
    for report in without:
        say(nothing_measured(report), err=True)
    if without:
        sys.exit(UNMEASURED)


def _decided(folders: Sequence[RunFolder], told: Sequence[str]) -> RunFolder:
    """The run with unclear answers decided by hand, and its report written again."""
    if len(folders) > 1:
        raise UsageError("--decide works on one run: name only one")
    pairs = [text.partition("=") for text in told]
    records = decide(folders[0], {name: verdict for name, _, verdict in pairs})
    folder = RunFolder.read(folders[0].path)
    save_report(folder, report_of(folder))
    for record in records:
        say(f"Decided: {record.episode}: {verdict_in_words(record.grade)}", err=True)
    return folder


def _check_episodes(folders: Sequence[RunFolder], reports: Sequence[Report]) -> None:
    """Checks that an episode has been run in one of the folders."""
    if not any(report.agents for report in reports):
        names = ", ".join(str(folder.path) for folder in folders)
        raise NotRead(
            f"{names}: no episode has been run, so there is no result. Start the command that "
            "made the folder again to resume it",
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
    for name, given, needed, folder in (
        ("--model-id", travel.model_id, "--eee", travel.eee),
        ("--evaluator", travel.evaluator, "--eee", travel.eee),
        ("--hf-dataset", travel.hf_dataset, "--hf-eval-results", travel.hf_eval_results),
        ("--source-url", travel.source_url, "--hf-eval-results", travel.hf_eval_results),
    ):
        if given and folder is None:
            raise UsageError(
                f"{name} works only with {needed} FOLDER: add that, or leave {name} out"
            )


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
        print_report(
            report,
            paper,
            wanted.only_distinguishable,
            wanted.agent,
            wanted.grouping,
            run,
            wanted.details,
        )
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
