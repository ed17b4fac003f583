"""`toolshift verify`: have the tools moved, does it matter, and what does it cost this agent?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

import click
import msgspec

from toolshift.agents.catalog import check_settings, contestants
from toolshift.cli.options import (
    AgentWorkers,
    AsJson,
    Concurrency,
    Headers,
    ModelOptions,
    Selected,
    headers_of,
    say_unread,
)
from toolshift.cli.parameters import argument, option, options_struct
from toolshift.cli.running import new_folder, run_shown
from toolshift.cli.sectioned import Sectioned
from toolshift.core.errors import UsageError
from toolshift.core.files import save
from toolshift.core.intake import Intake
from toolshift.core.terminal import print_json, print_table, say
from toolshift.core.text import visible
from toolshift.core.tool import JSON
from toolshift.core.values import as_json
from toolshift.drift.calls import BrokenCall
from toolshift.drift.changes import OF_REQUESTS, ToolChange
from toolshift.drift.cost import Cost, cost_in_words, costs_of, write_shifts
from toolshift.drift.events import (
    INSTRUCTIONS,
    DriftEvent,
    DriftReport,
    drift_report,
    hash_report,
)
from toolshift.drift.lock import Lock, check_holds_tools, read_any_lock
from toolshift.drift.other_locks import HashLock
from toolshift.drift.sarif import sarif
from toolshift.drift.schemas import SEVERITIES
from toolshift.drift.sources import Calls, calls_of, read_sources
from toolshift.interop.client_files import file_of
from toolshift.runs.execute import RunSpec, check_at_once
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import Selection, select
from toolshift.shifts.release.inputs import Side, side_of

MAX_ROWS = 60
_NO_REQUESTS = (
    "was made by an older version and does not contain how tools are requested (server, path, "
    "method, login), so this is not compared: lock the tools again"
)
FailOn = Literal["harmless", "maybe", "breaking", "calls"]


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """What `toolshift verify` is asked for.

    Attributes:
        sources: of the tools as they are; what was locked where empty.
        calls: the file or run with the calls that the agent made; may be "".
        fail_on: what counts as drift: a severity and those above it, or recorded calls that break.
        headers: "Name: value" for the http address among the sources.
        sarif: the SARIF file to write; None writes no file.
        agents: specs of agents to run under the drift.
        out: the folder of their run; a new one where None.
    """

    lock: Annotated[Path, argument()]
    sources: Annotated[tuple[str, ...], argument(metavar="[SOURCE]...")] = ()
    calls: Annotated[
        str,
        option(
            metavar="TRACE",
            help="Calls that your agent made: a trace, conversations, spans (.jsonl), a run "
            "folder, or a JSON list. A change is breaking for your agent if one of them "
            "breaks.",
        ),
    ] = ""
    fail_on: Annotated[
        FailOn,
        option(
            help="When to end with exit code 1: at any change, at changes that may break calls, "
            "at breaking changes, or only if recorded calls break. New texts that may "
            "instruct the model always count."
        ),
    ] = "harmless"
    headers: Headers = ()
    sarif: Annotated[Path | None, option(help="Write SARIF 2.1.0 to this file.")] = None
    agents: Annotated[
        tuple[str, ...], option("--agent", help="Run this agent under the drift; repeat.")
    ] = ()
    selection: Selected
    model: ModelOptions
    out: Annotated[Path | None, option(help="Run folder for --agent; resumes it.")] = None
    workers: AgentWorkers = 1
    concurrency: Concurrency = None
    as_json: AsJson = False


class Verdict(msgspec.Struct, frozen=True):
    """What is printed as JSON; `unread` has what could not be read of the inputs."""

    drift: bool
    worst: str | None
    report: DriftReport
    costs: list[Cost]
    sentences: list[str]
    unread: list[Intake]


@click.command(
    cls=Sectioned,
    first=("calls", "fail_on", "sarif", "agents", "worlds", "tasks", "out", "as_json"),
)
@options_struct(VerifyOptions)
def verify(options: VerifyOptions) -> None:
    """Compare tools with their lock: what changed, what it breaks and what it costs your agent.

    LOCK may also be a file of mcp-diff, mcpdrift, mcplock, mcp-tool-pin-check or mcp-warden. SOURCE
    is a source of `toolshift lock`. It may be left out if the lock was made from an http address or
    from a file next to it.

    \b
    toolshift verify toolshift.lock 'mcp:npx -y my-server@2' --calls trace.jsonl
    toolshift verify toolshift.lock tools.json --agent mymodule:my_agent --world tasks.yaml

    Exit codes: 0 no drift, 1 drift, 2 could not check, also if no tool was found in LOCK or SOURCE,
    or no call in TRACE.
    """
    _check(options)
    known = read_any_lock(options.lock)
    check_holds_tools(known, options.lock)
    if isinstance(known, HashLock) and (options.calls or options.agents):
        raise UsageError(
            f"{known.origin} contains only hashes: for --calls or --agent, make a lock with "
            "`toolshift lock`"
        )
    sources = options.sources or [_origin(known, options.lock)]
    now = read_sources(sources, headers_of(options.headers))
    if isinstance(known, Lock):
        known = known.beside(now.tools, now.kind)
        if known.kind == "openapi" and known.requests is None and now.requests:
            say(f"Warning: {options.lock} {_NO_REQUESTS}", err=True)
    calls = calls_of(options.calls) if options.calls else None
    report = _compared(known, now, calls, options)
    unread = [*now.unread, *(calls.unread if calls else ())]
    say_unread(unread)
    if options.sarif:
        _write_sarif(report, options, unread)
    costs = []
    changes = [one for one in report.changes if one.kind not in OF_REQUESTS]
    if isinstance(known, Lock) and options.agents and changes:
        costs = _costs(known, now, changes, options)
    drifted = counts(report, options.fail_on)
    sentences = [cost_in_words(cost, changes) for cost in costs]
    if options.as_json:
        print_json(Verdict(drifted, report.worst, report, costs, sentences, unread))
    else:
        _print(report)
        for cost, sentence in zip(costs, sentences, strict=True):
            _print_cost(cost, sentence)
    sys.exit(int(drifted))


def _check(options: VerifyOptions) -> None:
    """Checks what can be checked before anything is read."""
    if options.selection.shifts:
        raise UsageError("--shift: the shift is the drift itself; leave it out")
    if options.fail_on == "calls" and not options.calls:
        raise UsageError("--fail-on calls: no calls are given; add --calls TRACE")
    if options.calls and not Path(options.calls).exists():
        raise UsageError(f"--calls {options.calls}: there is no such file")
    check_at_once(options.workers, options.concurrency)
    _check_agents(options)


def _check_agents(options: VerifyOptions) -> None:
    """Checks agents now, and not on the day on which something has moved."""
    check_settings(options.agents, options.model.given())
    context = click.get_current_context()
    names = (*Selection.__struct_fields__, "out", "workers", "concurrency")
    given = click.core.ParameterSource.COMMANDLINE
    passed = [param for param in context.command.params if param.name in names]
    passed = [param for param in passed if context.get_parameter_source(param.name or "") == given]
    if passed and not options.agents:
        raise UsageError(
            f"{passed[0].opts[0]} works only with --agent: add --agent, or leave it out"
        )


def _compared(
    known: Lock | HashLock, now: Side, calls: Calls | None, options: VerifyOptions
) -> DriftReport:
    """What drifted."""
    if isinstance(known, HashLock):
        return hash_report(known, now.tools, now.origin)
    report = drift_report(
        known, now.tools, now.origin, calls.made if calls else None, requests=now.requests
    )
    if options.fail_on == "calls" and report.elsewhere == report.calls:
        raise UsageError(f"--fail-on calls: {_elsewhere(report)}")
    return report


def _elsewhere(report: DriftReport) -> str:
    """How many recorded calls say nothing, for the lock does not hold their tools."""
    if report.elsewhere == report.calls:
        return (
            f"none of the {report.calls} recorded calls is of a locked tool, so none was "
            "checked; calls must use the names in the lock"
        )
    return f"{report.elsewhere} of {report.calls} recorded calls are of no locked tool"


def _origin(lock: Lock | HashLock, path: Path) -> str:
    """The source that was locked, where the lock can name it whole."""
    beside = path.parent / lock.origin
    file = file_of(str(beside))
    if file is not None and file.is_file():
        return str(beside)
    if lock.origin.startswith(("http://", "https://")) and ", " not in lock.origin:
        return lock.origin
    if beside.exists() and lock.origin:
        return str(beside)
    raise UsageError(
        f"{path} was locked from {lock.origin or 'a list'}, which cannot be read again from "
        "here: name the SOURCE after the lock"
    )


def counts(report: DriftReport, fail_on: FailOn) -> bool:
    """Whether what was found is drift."""
    if report.instructs:
        return True
    if fail_on == "calls":
        return report.breaks_calls
    if report.worst is None:
        return False
    return SEVERITIES.index(report.worst) >= SEVERITIES.index(fail_on)


def _write_sarif(report: DriftReport, options: VerifyOptions, unread: Sequence[Intake]) -> None:
    assert options.sarif is not None
    path = options.lock
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    content = options.lock.read_text(encoding="utf-8")
    document = sarif(report, path.as_posix(), content, version("toolshift"), unread)
    save(options.sarif, msgspec.json.format(JSON.encode(document), indent=1) + b"\n")


# -- the cost --------------------------------------------------------------------------------------


def _costs(
    lock: Lock, now: Side, changes: Sequence[ToolChange], options: VerifyOptions
) -> list[Cost]:
    """Runs the agents clean and under exactly this drift."""
    before = side_of(lock.kind, lock.origin or "the lock", lock.documents)
    with TemporaryDirectory() as folder:
        paths = write_shifts(before, now, Path(folder))
        chosen = select(msgspec.structs.replace(options.selection, shifts=tuple(paths)))
        agents = contestants(list(options.agents), options.concurrency, **options.model.given())
        path = options.out or new_folder("drift")
        run_shown(RunSpec(chosen, agents, path, options.workers), options.out is not None)
        folder_of_run = RunFolder.read(path)
        names = [agent.name for agent in agents]
        costs = costs_of(folder_of_run.plan, folder_of_run.records(), names, changes)
    say(f"Run folder: {path}", err=True)
    return costs


def _print_cost(cost: Cost, sentence: str) -> None:
    say(f"\n{visible(sentence)}")
    for reason, tasks in cost.left_out.items():
        say(visible(f"Left out: {tasks} task{'s' if tasks > 1 else ''}: {reason}"))
    if cost.void:
        say(f"Left out: {cost.void} void episodes.")


# -- what is printed -------------------------------------------------------------------------------


def _print(report: DriftReport) -> None:
    if report.elsewhere or report.calls == 0:
        say(f"Warning: {_elsewhere(report)}.", err=True)
    if not report.events:
        say(f"No drift: {report.source} is the same as when {report.lock or 'it'} was locked.")
        return
    for warning in report.warnings:
        say(f"Warning: {warning}")
    rows = [
        (event.severity, event.dimension, event.sentence, _calls(event, report))
        for severity in reversed(SEVERITIES)
        for event in report.events
        if event.severity == severity and event.kind != INSTRUCTIONS
    ]
    title = f"Changes from {report.lock} to {report.source}"
    print_table(
        title, ("severity", "dimension", "what", "calls that break"), rows[:MAX_ROWS], whole=2
    )
    if len(rows) > MAX_ROWS:
        say(f"... and {len(rows) - MAX_ROWS} more; --json has them all.")
    if any(event.kind in OF_REQUESTS for event in report.events):
        say(_SENDERS)
    _print_broken(report)


_SENDERS = (
    "If requests changed, the program that sends them must be changed; an agent calls the tools "
    "as before."
)


def _calls(event: DriftEvent, report: DriftReport) -> str:
    """How many recorded calls of the tool break; a harmless change breaks none by itself."""
    if event.calls is None:
        return "-"
    if event.severity == "harmless" or event.kind in OF_REQUESTS:
        return f"0 of {event.calls}"
    return f"{report.breaks.get(event.tool, 0)} of {event.calls}"


def _print_broken(report: DriftReport) -> None:
    recorded = [call for call in report.broken.values() if call.recorded]
    tried = [call for call in report.broken.values() if not call.recorded]
    if report.calls is not None:
        say(f"\n{sum(report.breaks.values())} of {report.calls} recorded calls break.")
    for call in (*recorded, *([] if report.calls is not None else tried))[:MAX_ROWS]:
        say(visible(f"  {_call(call)}: {call.why}"))
    if report.calls is None and tried:
        say("These calls were made from the old schemas; --calls TRACE checks your agent's calls.")


def _call(broken: BrokenCall) -> str:
    parts: Sequence[str] = [
        f"{name}={as_json(value)}" for name, value in broken.call.arguments.items()
    ]
    text = f"{broken.call.tool}({', '.join(parts)})"
    return text if len(text) <= 160 else f"{text[:157]}..."
