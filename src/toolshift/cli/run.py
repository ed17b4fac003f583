"""`toolshift run`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from toolshift.agents.catalog import contestants
from toolshift.agents.judge import judge_of
from toolshift.api import Evaluation
from toolshift.cli.options import (
    AgentWorkers,
    AsJson,
    Concurrency,
    JudgeModel,
    JudgeUrl,
    ModelOptions,
    Reuse,
    Selected,
    Spending,
    Where,
)
from toolshift.cli.parameters import PLACE, option, options_struct
from toolshift.cli.running import (
    new_folder,
    nothing_measured,
    run_shown,
    say_requests,
    unmeasured,
    with_requests,
)
from toolshift.cli.sectioned import Sectioned
from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.terminal import console, print_json, progress, say
from toolshift.core.text import visible
from toolshift.measure.claims import MARGIN, shift_claims
from toolshift.report.terminal import print_report
from toolshift.runs import spans
from toolshift.runs.estimate import estimate_run
from toolshift.runs.execute import RunSpec, check_at_once
from toolshift.runs.location import is_address, placed
from toolshift.runs.plan import Plan, make_plan
from toolshift.runs.sequential import Claims
from toolshift.runs.suite import given_tasks, select


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
        details: print all measures and intervals below the first screen.
        only_distinguishable: print only what is significant.
        holds_within: points that a shift may cost and still hold; None for the usual margin.
        judge: a model that reads endings in prose; "" for the shipped reading.
        otel: emit OpenTelemetry spans, as the `OTEL_*` variables say.
    """

    agents: Annotated[
        tuple[str, ...],
        option("--agent", help="Agent to run; see `toolshift list agents`; repeat."),
    ] = ()
    commands: Annotated[
        tuple[str, ...],
        option(
            "--agent-command",
            metavar="COMMAND",
            help="Your own program, started for each episode (docs/connect.md); repeat.",
        ),
    ] = ()
    urls: Annotated[
        tuple[str, ...],
        option(
            "--agent-url",
            metavar="URL",
            help="Address of your own running agent; messages are posted to it; repeat.",
        ),
    ] = ()
    selection: Selected
    model: ModelOptions
    reuse: Reuse
    spending: Spending
    holds_within: Annotated[
        float | None,
        option(
            metavar="POINTS",
            show_default=f"{MARGIN:g}",
            help="sequential: a shift counts as harmless if it costs less than this number of "
            "points.",
        ),
    ] = None
    out: Annotated[
        Path | str | None,
        option(
            type=PLACE,
            help="Run folder, or its address in an object store (s3://...); resumes the run in it.",
        ),
    ] = None
    workers: AgentWorkers = 1
    executor: Where = "process"
    concurrency: Concurrency = None
    estimate: Annotated[bool, option(help="Estimate the cost of the run, and run nothing.")] = False
    details: Annotated[
        bool, option(help="Print all measures and intervals too, below the first screen.")
    ] = False
    only_distinguishable: Annotated[bool, option(help="Print only what is significant.")] = False
    judge: JudgeModel = ""
    judge_url: JudgeUrl = None
    otel: Annotated[
        bool, option(help="Emit OpenTelemetry spans of the episodes, as the OTEL_* variables say.")
    ] = False
    as_json: AsJson = False

    @property
    def specs(self) -> tuple[str, ...]:
        """Every agent as a spec."""
        commands = (f"command:{command}" for command in self.commands)
        specs = (*self.agents, *commands, *(f"url:{url}" for url in self.urls))
        if not specs:
            raise UsageError("name an agent: --agent, --agent-command or --agent-url")
        return specs


@click.command(
    cls=Sectioned,
    first=("agents", "suite", "worlds", "shifts", "tasks", "max_cost", "estimate", "out"),
)
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
    agents = contestants(list(specs), options.concurrency, **options.model.given())
    judge = judge_of(options.judge, options.judge_url)
    exchanges = options.reuse.exchanges()
    claims = _claims(options)
    with placed(options.out or new_folder(chosen.suite)) as place:
        how = options.workers, options.executor, judge, exchanges
        spec = RunSpec(chosen, agents, place.path, *how, claims=claims)
        report = run_shown(spec, options.out is not None, lambda *_: place.stream(), place.shown)
    if options.as_json:
        print_json(with_requests(report, exchanges))
    else:
        shown = place.path if place.shown == str(place.path) else None
        print_report(
            report, console(), options.only_distinguishable, run=shown, details=options.details
        )
        say()
        for name in chosen.worlds:
            if chosen.tasks < given_tasks(name) and not chosen.kinds:
                number = given_tasks(name)
                say(f"{chosen.tasks} of the {number} tasks of {name} were run: --tasks {number}.")
        say(f"Run folder: {place.shown}")
        say_requests(exchanges)
    if code := _say_faults(report, place.shown):
        sys.exit(code)


def _claims(options: RunOptions) -> Claims | None:
    """What a sequential run decides; None for a fixed one."""
    margin = options.holds_within
    if not options.spending.is_sequential():
        if margin is not None:
            raise UsageError("--holds-within works only with --design sequential or a --budget")
        return None
    if margin is not None and not 0 < margin < 100:
        raise UsageError(f"--holds-within must be above 0 and under 100 points: {margin:g}")
    return shift_claims(margin or MARGIN, options.spending.budget)


def _say_faults(report: Evaluation, out: str) -> int:
    """Says which shifts are broken, and of which agents nothing was measured."""
    for broken in report.broken:
        name = broken.shift.partition("+")[0].partition(":")[0]
        say(
            visible(
                f"Error: {broken.shift} is broken: {broken.said}. All other scenes were run; "
                f"`{command('check', name)}` says more."
            ),
            err=True,
        )
    unreached = unmeasured(report)
    if not report.agents and not report.broken:
        say(
            "Nothing was measured: no episode was run, because so few tasks, or such a small "
            "budget, cannot decide anything. --design fixed runs all episodes.",
            err=True,
        )
        return 1
    if unreached:
        hint = "" if is_address(out) else f" `{command('trace', out)}` has their texts."
        say(f"{nothing_measured(report)}{hint}", err=True)
    if report.broken and not any(agent.shifts for agent in report.agents):
        return 2
    return int(bool(unreached or report.broken))


def _estimate(plan: Plan, options: RunOptions) -> None:
    estimates = estimate_run(plan, options.specs, options.model.given())
    if options.as_json:
        print_json(estimates)
        return
    for estimate in estimates:
        say(estimate.text)
