"""`toolshift gate`: may this build be released?"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from toolshift.agents.catalog import contestants
from toolshift.agents.judge import Judge
from toolshift.api import check_at_once
from toolshift.cli.options import (
    PATH,
    ModelOptions,
    Sectioned,
    as_json,
    at_once,
    judging,
    model,
    taking,
)
from toolshift.cli.run import new_folder, run_into
from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.terminal import Progress, console, print_json, print_table, say
from toolshift.measure.compare import shifts_as_they_were
from toolshift.measure.gate import (
    Family,
    Gate,
    certain_to_fail,
    check_options,
    in_percent,
    in_points,
    judge,
)
from toolshift.report.gate_markdown import gate_markdown
from toolshift.report.junit import junit
from toolshift.runs.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """What `toolshift gate` is asked for.

    Attributes:
        run: the candidate's run folder; None to run `agent` on the baseline's scenes.
        agent: which agent of `run`, or the spec of the agent to run.
        inconclusive: what an inconclusive gate counts as: pass, fail, or None for neither.
        out: the folder of the run that is made; a new one where None.
        judge: a model that reads endings in prose; "" for the shipped reading.
        early: end the run of `agent` as soon as the gate is certain to fail.
    """

    run: Path | None
    baseline: Path
    margin: float
    agent: str
    baseline_agent: str
    by: str
    max_void: float
    inconclusive: Literal["pass", "fail"] | None
    junit: Path | None
    markdown: Path | None
    model: ModelOptions
    early: bool
    out: Path | None
    workers: int
    concurrency: int | None
    judge: str
    judge_url: str | None
    as_json: bool


@click.command(cls=Sectioned)
@click.argument("run", required=False, type=PATH)
@click.option(
    "--baseline",
    required=True,
    type=PATH,
    help="Run folder of what is in use.",
)
@click.option(
    "--margin", required=True, type=float, help="Points of accuracy that a release may lose."
)
@click.option(
    "--agent", default="", help="Without RUN: the agent to run. With it: which agent of RUN."
)
@click.option(
    "--baseline-agent",
    default="",
    help="Agent of the baseline (default: that of the candidate's name).",
)
@click.option(
    "--by",
    default="tier",
    show_default=True,
    help="What is gated beside clean and overall: tier, dimension, shift, or overall for nothing.",
)
@click.option(
    "--max-void",
    default=5.0,
    show_default=True,
    help="Percent of the scenes that may be void or missing; above it nothing is decided.",
)
@click.option(
    "--inconclusive",
    type=click.Choice(["pass", "fail"]),
    help="What an inconclusive gate counts as; exit code 3 where it is not said.",
)
@click.option("--junit", type=PATH, help="Write JUnit XML to this file.")
@click.option("--markdown", type=PATH, help="Write a summary to this file.")
@click.option(
    "--early",
    is_flag=True,
    help="End the run of --agent as soon as the gate is certain to fail, whatever is left would "
    "show. The verdict is that of the whole run.",
)
@model
@judging
@click.option("--out", type=PATH, help="Run folder for --agent; resumes it.")
@at_once
@as_json
@taking(GateOptions)
def gate(options: GateOptions) -> None:
    """Stop a release that is worse than a baseline, paired on the same scenes.

    \b
    toolshift gate runs/new --baseline runs/main --margin 5
    toolshift gate --agent mymodule:my_agent --baseline runs/main --margin 5 --out runs/new

    Exit codes: 0 not worse by the margin, 1 worse by more, 3 inconclusive, 4 not measured (too many
    scenes void or missing), 2 a usage error.
    """
    check_options(options.margin, options.by, options.max_void)
    before = RunFolder.read(options.baseline)
    after = _candidate(before, options)
    found = judge(
        before,
        after,
        options.margin,
        baseline_agent=options.baseline_agent,
        candidate_agent=options.agent if options.run is not None else "",
        by=options.by,
        max_void=options.max_void,
    )
    _write(found, after.path, options)
    if options.as_json:
        print_json(found)
    else:
        _print(found, after.path)
    sys.exit(found.exit_code(options.inconclusive or ""))


def _candidate(before: RunFolder, options: GateOptions) -> RunFolder:
    """The candidate's run: the one that is named, or a new one of exactly the baseline's scenes.

    Raises:
        UsageError: where no candidate is named, or options do not go together.
    """
    if options.run is not None:
        if options.out or options.model.given() or options.judge or options.early:
            raise UsageError(
                "--out, --judge, --early and the options of models are for --agent without RUN: a "
                "finished run is only read. `toolshift regrade RUN --judge` has a judge read it "
                "again."
            )
        return RunFolder.read(options.run)
    if not options.agent:
        raise UsageError("name the candidate: a run folder, or the agent to run with --agent")
    check_at_once(options.workers, options.concurrency)
    shifts_as_they_were(before)
    path = options.out or new_folder("gate")
    if path.exists() and path.resolve() == before.path.resolve():
        raise UsageError(f"{path} is the baseline: name another folder with --out")
    those = contestants([options.agent], options.concurrency, **options.model.given())
    reader = Judge(options.judge, options.judge_url) if options.judge else None
    check = _ending(before, path, options) if options.early else _nothing
    try:
        run_into(path, before.plan, those, options.workers, options.out is not None, reader, check)
    except _CertainError as certain:
        say(f"Ended early: {certain}. The rest cannot change the verdict.", err=True)
    return RunFolder.read(path)


class _CertainError(Exception):
    """The gate fails, whatever is left."""


def _nothing(done: int, total: int) -> None:
    """The run goes on."""


def _ending(before: RunFolder, path: Path, options: GateOptions) -> Progress:
    """What ends a run whose verdict is certain; looks after each twentieth of it."""
    looked = 0

    def check(done: int, total: int) -> None:
        nonlocal looked
        if done >= total or 20 * (done - looked) < total:
            return
        looked = done
        after = RunFolder.read(path)
        if certain_to_fail(
            before, after, options.margin, baseline_agent=options.baseline_agent, by=options.by
        ):
            raise _CertainError(f"{done} of {total} episodes were run")

    return check


def _write(gate: Gate, run: Path, options: GateOptions) -> None:
    if options.junit:
        _save(options.junit, junit(gate, options.inconclusive or ""))
    if options.markdown:
        _save(options.markdown, gate_markdown(gate, str(run)))


def _save(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as fault:
        raise UsageError(f"{file}: cannot write there ({fault.strerror})") from None


def _print(gate: Gate, run: Path) -> None:
    title = f"\n{gate.baseline} -> {gate.candidate}, margin {gate.margin:g} points"
    columns = ("", "verdict", "tasks", "before", "after", "change [90%]", "lost", "gained")
    print_table(title, columns, [_row(family) for family in gate.families])
    worse = [family for family in gate.shifts if family.verdict == "fail"]
    if worse:
        print_table("\nshifts that are worse by more than the margin (not gated)", columns,
                    [_row(family) for family in worse])  # fmt: skip
    for family in gate.families:
        if family.verdict != "pass":
            say(f"\n{family.label}: {family.sentence}")
            if family.lost:
                say(f"  lost: {' '.join(family.examples)} ({command('trace', run, 'EPISODE')})")
    for note in gate.notes:
        console().print(f"\nNote: {note}", style="dim", markup=False)
    say(f"\nGate {gate.sentence}")


def _row(family: Family) -> list[str]:
    return [
        family.label,
        family.verdict,
        str(family.tasks),
        in_percent(family.baseline),
        in_percent(family.candidate),
        in_points(family.change),
        str(family.lost),
        str(family.gained),
    ]
