"""`toolshift run`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import click

from toolshift.agents.catalog import contestants
from toolshift.agents.contestant import Contestant
from toolshift.agents.judge import Judge, judge_of
from toolshift.api import (
    Evaluation,
    check_at_once,
    check_executor,
    planning,
    report_of,
    run_plan,
    save_report,
)
from toolshift.cli.options import (
    PLACE,
    ModelOptions,
    Sectioned,
    as_json,
    at_once,
    executor,
    judging,
    model,
    options_struct,
    selection,
)
from toolshift.core.command_line import command
from toolshift.core.errors import BudgetSpent, UsageError
from toolshift.core.terminal import Progress, console, print_json, progress, say
from toolshift.core.text import visible
from toolshift.report.terminal import print_report
from toolshift.runs import spans
from toolshift.runs.ahead import Ahead
from toolshift.runs.estimate import estimate_run
from toolshift.runs.location import RunLocation, is_address, placed
from toolshift.runs.plan import Plan, make_plan
from toolshift.runs.pool import Executor
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import ResolvedSelection, Selection, select


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What `toolshift run` is asked for.

    Attributes:
        agents: specs of agents.
        commands: programs that are agents, each started for an episode.
        urls: addresses of agents that run already.
        out: the run folder, or its address in an object store; a new folder, named by the clock,
            where None.
        executor: where workers are.
        estimate: say what the run would cost, and run nothing.
        only_distinguishable: print only what is significant.
        judge: a model that reads endings in prose; "" for the shipped reading.
        otel: emit OpenTelemetry spans, as the `OTEL_*` variables say.
    """

    agents: tuple[str, ...]
    commands: tuple[str, ...]
    urls: tuple[str, ...]
    selection: Selection
    model: ModelOptions
    out: Path | str | None
    workers: int
    executor: Executor
    concurrency: int | None
    estimate: bool
    only_distinguishable: bool
    judge: str
    judge_url: str | None
    otel: bool
    as_json: bool

    @property
    def specs(self) -> tuple[str, ...]:
        """Every agent as a spec.

        Raises:
            UsageError: where there is none.
        """
        commands = (f"command:{each}" for each in self.commands)
        found = (*self.agents, *commands, *(f"url:{each}" for each in self.urls))
        if not found:
            raise UsageError("name an agent: --agent, --agent-command or --agent-url")
        return found


@click.command(cls=Sectioned)
@click.option("--agent", "agents", multiple=True, help="`toolshift list agents`; repeat.")
@click.option(
    "--agent-command",
    "commands",
    multiple=True,
    metavar="COMMAND",
    help="Your own program, started for each episode (docs/connect.md); repeat.",
)
@click.option(
    "--agent-url",
    "urls",
    multiple=True,
    metavar="URL",
    help="Your own agent, which runs already: messages are posted to it; repeat.",
)
@selection
@model
@judging
@click.option(
    "--out",
    type=PLACE,
    help="Run folder, or its address in an object store (s3://...); resumes the run in it.",
)
@at_once
@executor
@click.option("--estimate", is_flag=True, help="Say what the run would cost, and run nothing.")
@click.option("--only-distinguishable", is_flag=True, help="Print only what is significant.")
@click.option(
    "--otel",
    is_flag=True,
    help="Emit OpenTelemetry spans of the episodes, as the OTEL_* variables say.",
)
@as_json
@options_struct(RunOptions)
def run(options: RunOptions) -> None:
    """Run agents in clean and shifted scenes, and report where they break.

    \b
    toolshift run --agent mymodule:my_agent
    toolshift run --agent chat:gpt-4.1-mini --max-cost 2 --price-in 0.4 --price-out 1.6
    toolshift run --agent smol:static --agent memorises_names --suite standard --out runs/first
    """
    specs, chosen = options.specs, select(options.selection)
    check_at_once(options.workers, options.concurrency)
    if options.estimate:
        with progress("planning") as watch:
            plan = make_plan(chosen, lambda cells: watch(cells, 0))
        _estimate(plan, options)
        return
    if options.otel:
        spans.set_up()
    those = contestants(list(specs), options.concurrency, **options.model.given())
    judge = judge_of(options.judge, options.judge_url)
    check_executor(options.executor, those, judge)
    with placed(options.out or new_folder(chosen.suite)) as place:
        report = _run(chosen, those, place, judge, options)
    if options.as_json:
        print_json(report)
    else:
        shown = place.path if place.shown == str(place.path) else None
        print_report(report, console(), options.only_distinguishable, run=shown)
        say(f"\nRun folder: {place.shown}")
    if code := _say_faults(report, place.shown):
        sys.exit(code)


def _run(
    chosen: ResolvedSelection,
    those: list[Contestant],
    place: RunLocation,
    judge: Judge | None,
    options: RunOptions,
) -> Evaluation:
    """Plans and runs."""
    with _planning(chosen, those, place, judge, options) as (plan, ahead):
        return run_into(
            place.path,
            plan,
            those,
            options.workers,
            options.out is not None,
            judge,
            lambda done, total: place.stream(),
            ahead,
            options.executor,
            place.shown,
        )


@contextmanager
def _planning(
    chosen: ResolvedSelection,
    those: list[Contestant],
    place: RunLocation,
    judge: Judge | None,
    options: RunOptions,
) -> Iterator[tuple[Plan, Ahead | None]]:
    """Plans with a progress bar; where that is stopped, says how to go on, and ends."""
    with ExitStack() as stack:
        try:
            with progress("planning") as watch:

                def both(cells: int) -> None:
                    watch(cells, 0)
                    place.stream()

                found = stack.enter_context(
                    planning(
                        chosen, those, place.path, options.workers, both, judge, options.executor
                    )
                )
        except KeyboardInterrupt:
            say(
                f"Stopped while planning. Run the same command with "
                f"{shlex.join(['--out', place.shown])} to go on.",
                err=True,
            )
            sys.exit(130)
        yield found


def run_into(
    path: Path,
    plan: Plan,
    those: list[Contestant],
    workers: int,
    resumed: bool,
    judge: Judge | None = None,
    check: Progress = lambda done, total: None,
    ahead: Ahead | None = None,
    executor: Executor = "process",
    shown: str = "",
) -> Evaluation:
    """Runs a plan, or what is left of it; where it is stopped, says how to go on, and ends.

    Args:
        path: the run folder.
        plan: what is run.
        those: who runs.
        workers: processes for scripted agents.
        resumed: whether the folder was named by the user, who knows how to go on then.
        judge: reads endings in prose; the shipped reading where None.
        check: told of the progress too; what it raises ends the run.
        ahead: episodes that have been played while the plan was made.
        executor: where workers are.
        shown: what the folder is called; its path where "".

    Returns:
        The report.

    Raises:
        UsageError: where an agent or the folder cannot work.
    """
    try:
        with progress("episodes") as watch:

            def both(done: int, total: int) -> None:
                watch(done, total)
                check(done, total)

            return run_plan(plan, those, path, workers, both, judge, ahead, executor)
    except (KeyboardInterrupt, BudgetSpent) as stop:
        _say_stopped(path, isinstance(stop, BudgetSpent), str(stop), shown or str(path))
        sys.exit(2 if isinstance(stop, BudgetSpent) else 130)
    except UsageError as wrong:
        if (path / "episodes.jsonl").exists() and not resumed:
            go_on = shlex.join(["--out", str(path)])
            raise UsageError(f"{wrong} Finished episodes are kept: {go_on} goes on.") from None
        raise


def new_folder(suite: str) -> Path:
    """A folder named by the clock; nothing scored depends on it."""
    base = Path("runs") / f"{datetime.now():%Y%m%d-%H%M%S}-{suite.partition(' ')[0]}"
    path, number = base, 2
    while path.exists():
        path, number = base.with_name(f"{base.name}-{number}"), number + 1
    return path


def _say_stopped(path: Path, spent: bool, why: str, shown: str) -> None:
    """Tells what is kept and how to go on."""
    kept = 0
    if (path / "manifest.json").exists():
        folder = RunFolder.read(path)
        kept = sum(1 for _ in folder.records())
        if kept:
            save_report(folder, report_of(folder))
    reason = f"Stopped: {why}" if spent else "Stopped."
    say(
        f"{reason} {kept} finished episodes are kept in {shown}. Run the same command with "
        f"{shlex.join(['--out', shown])} to go on.",
        err=True,
    )


def _say_faults(report: Evaluation, out: str) -> int:
    """Says which shifts are broken, and of which agents nothing was measured.

    Returns:
        The exit code: 0 where there is none, 2 where every shift is broken, else 1.
    """
    for each in report.broken:
        name = each.shift.partition("+")[0].partition(":")[0]
        say(
            visible(
                f"Error: {each.shift} is broken: {each.said}. The rest was run; "
                f"`{command('check', name)}` says more."
            ),
            err=True,
        )
    unreached = [
        each.name
        for each in report.agents
        if each.infrastructure == each.everything.void > 0
        and each.everything.episodes == each.everything.void
    ]
    if unreached:
        hint = "" if is_address(out) else f" `{command('trace', out)}` has their texts."
        say(
            f"Nothing was measured of {', '.join(unreached)}: every episode ended in an "
            f"infrastructure error.{hint}",
            err=True,
        )
    if report.broken and not any(agent.shifts for agent in report.agents):
        return 2
    return int(bool(unreached or report.broken))


def _estimate(plan: Plan, options: RunOptions) -> None:
    found = estimate_run(plan, options.specs, options.model.given())
    if options.as_json:
        print_json(found)
        return
    for each in found:
        say(each.text)
