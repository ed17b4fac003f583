"""`toolshift change`: will an agent survive a change of its tools?"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import click
import msgspec

from toolshift.adapt.release_note import release_note
from toolshift.agents.answer_cache import Exchanges
from toolshift.agents.catalog import check_settings, contestants
from toolshift.cli.options import (
    AgentWorkers,
    AsJson,
    Concurrency,
    ModelOptions,
    Reuse,
    Spending,
    say_unread,
)
from toolshift.cli.parameters import argument, option, options_struct
from toolshift.cli.running import new_folder, run_shown, say_requests, with_requests
from toolshift.cli.sectioned import Sectioned
from toolshift.cli.shift import ask_all, written
from toolshift.core.command_line import command
from toolshift.core.errors import FitsNoTask
from toolshift.core.files import save, write
from toolshift.core.terminal import console, print_json, say, say_wrapped, wrapped
from toolshift.core.text import visible
from toolshift.core.tool import JSON
from toolshift.core.values import as_json
from toolshift.drift.questions import Calls
from toolshift.drift.release import (
    RELEASE,
    Outcome,
    Reading,
    Row,
    Settling,
    check_agents,
    expected_calls,
    read_release,
    read_tools,
    with_runs,
)
from toolshift.drift.release_text import (
    UNSEEN,
    agent_in_words,
    ends_in_words,
    in_one,
    question_in_words,
    release_junit,
    release_markdown,
    said_in_words,
    unmeasured_in_words,
    untested_in_words,
)
from toolshift.drift.sarif import sarif
from toolshift.drift.task_claims import task_claims
from toolshift.runs.execute import RunSpec, check_at_once
from toolshift.runs.plan import Plan, make_plan
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import Selection, given_tasks, select
from toolshift.shifts.release.inputs import Side
from toolshift.shifts.release.mapping import Answers, decided, entries_of, read_mapping
from toolshift.shifts.release.release import Release

MAX_ROWS = 40
MAX_LINES = 12
SEVERITY, CARRIED = 10, 9
"""Widths of the columns before a change."""
DEFAULT_MAPPING = Path("change.mapping.toml")


@dataclass(frozen=True, kw_only=True)
class ChangeOptions:
    """What `toolshift change` is asked for.

    Attributes:
        old: the tools as they are.
        new: the tools as they will be.
        agents: specs of agents to run with and without the change.
        worlds: their tasks.
        mapping: the file of answers, read where it exists, else written where something is open.
        shift: a file for the change as a shift; None writes none.
        note: a file for what an agent is to be told of it.
        out: the folder of the run; a new one where None.
    """

    old: Annotated[str, argument()]
    new: Annotated[str, argument()]
    agents: Annotated[
        tuple[str, ...],
        option("--agent", help="Run this agent with and without the change; repeat."),
    ] = ()
    worlds: Annotated[
        tuple[str, ...], option("--world", help="Tasks: your own file, or a world; repeat.")
    ] = ()
    mapping: Annotated[
        Path,
        option(
            help="File of answers to questions about the change; read if it exists, else written "
            "if there are questions."
        ),
    ] = DEFAULT_MAPPING
    allow_untested: Annotated[
        bool, option(help="Exit code 0 even if a breaking change or an affected task is untested.")
    ] = False
    trials: Annotated[int, option(help="Runs of each task.")] = 1
    tasks: Annotated[
        int | None, option(help="Tasks of each world (default for your own file: all).")
    ] = None
    shift: Annotated[
        Path | None, option(help="Write the change as a shift, for `toolshift run --shift`.")
    ] = None
    note: Annotated[
        Path | None,
        option(help="Write what has changed as a short text for your agent's prompt."),
    ] = None
    junit: Annotated[Path | None, option(help="Write JUnit XML to this file.")] = None
    markdown: Annotated[Path | None, option(help="Write a summary to this file.")] = None
    sarif: Annotated[Path | None, option(help="Write SARIF 2.1.0 to this file.")] = None
    model: ModelOptions
    reuse: Reuse
    spending: Spending
    out: Annotated[Path | None, option(help="Run folder for --agent; resumes it.")] = None
    workers: AgentWorkers = 1
    concurrency: Concurrency = None
    as_json: AsJson = False


@click.command(
    cls=Sectioned,
    first=(
        "agents",
        "worlds",
        "mapping",
        "allow_untested",
        "junit",
        "markdown",
        "sarif",
        "as_json",
    ),
)
@options_struct(ChangeOptions)
def change(options: ChangeOptions) -> None:
    """Show what a change of tools does, what it breaks for your agent, and what is untested.

    OLD and NEW: a file (OpenAPI 2 or 3; tools of MCP, OpenAI, Anthropic or Gemini; a lock), a
    server that is started (mcp:COMMAND) or its http address, python:MODULE, or git:REV:PATH.

    \b
    toolshift change openapi.yaml openapi-new.yaml
    toolshift change git:main:openapi.yaml openapi.yaml --agent mymodule:my_agent --world tasks.yaml

    Exit codes: 0 everything that could be tested still works, 1 a task that passed now fails,
    2 a usage error, 3 a breaking change or an affected task is untested, 4 nothing was measured.
    """
    check_agents(options.agents, options.worlds)
    check_at_once(options.workers, options.concurrency)
    check_settings(options.agents, options.model.given())
    given = read_mapping(options.mapping) if options.mapping.exists() else Answers()
    before, after = _side(options.old), _side(options.new)
    say_unread((*before.unread, *after.unread))
    with entries_of(options.mapping):
        settling = read_release(before, after, given, lambda: _expected(options))
    settling = _answered(before, after, given, settling, options)
    exchanges = options.reuse.exchanges()
    reading, run = _run(settling, options, exchanges)
    _write(reading, settling, run, options)
    for warning in settling.report.warnings:
        say(f"Warning: {warning}", err=True)
    if options.as_json:
        code = reading.exit_code(options.allow_untested)
        said = {"exit_code": code, **msgspec.structs.asdict(reading)}
        print_json(with_requests(said, exchanges))
    else:
        _print(reading, run, options)
        say_requests(exchanges)
    sys.exit(reading.exit_code(options.allow_untested))


def _side(text: str) -> Side:
    if text.startswith(("mcp:", "http")):
        say(f"Asking {text.partition('?')[0].split(' ')[0]} for its tools ...", err=True)
    return read_tools(text)


def _answered(
    before: Side, after: Side, given: Answers, settling: Settling, options: ChangeOptions
) -> Settling:
    """Asks what is open: on a terminal, else in a file."""
    if not settling.open:
        return settling
    if sys.stdin.isatty() and not options.as_json:
        settling = ask_all(before, after, given, settling, lambda: _expected(options))
        save(options.mapping, written(settling))
    elif not options.mapping.exists():
        save(options.mapping, written(settling))
    return settling


# -- the run ---------------------------------------------------------------------------------------


def _run(
    settling: Settling, options: ChangeOptions, exchanges: Exchanges
) -> tuple[Reading, Path | None]:
    """The reading with what the agents did, and the folder of their run."""
    reading = settling.reading
    if not options.worlds or not reading.rows:
        return with_runs(reading, None, (), (), {}), None
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{RELEASE}.json"
        write(path, settling.shift.encode())
        plan, why = _planned(str(path), options)
        if not options.agents:
            return with_runs(reading, plan, (), (), why), None
        agents = contestants(list(options.agents), options.concurrency, **options.model.given())
        out = options.out or new_folder("change")
        # An agent that is made for the new tools fails without the change, and is asked with it.
        sequential = options.spending.is_sequential(out)
        claims = task_claims(options.spending.budget) if sequential else None
        spec = RunSpec(plan, agents, out, options.workers, exchanges=exchanges, claims=claims)
        run_shown(spec, options.out is not None)
        run = RunFolder.read(out)
        names = [agent.name for agent in agents]
        return with_runs(reading, run.plan, run.records(), names, why), out


def _expected(options: ChangeOptions) -> Calls:
    """The expected calls of the tasks, by which questions are ranked where they are many."""
    if not options.worlds:
        return ()
    chosen = Selection(worlds=options.worlds, shifts=("clean",), tasks=options.tasks, placebo=False)
    return expected_calls(make_plan(select(chosen)))


def _planned(shift: str, options: ChangeOptions) -> tuple[Plan, Mapping[str, str]]:
    """The plan; where the change fits none of the tasks the clean one, and why, by lineage."""
    given = {name: given_tasks(name) for name in options.worlds}
    chosen = Selection(
        worlds=options.worlds,
        shifts=(shift,),
        tasks=options.tasks or (max(given.values()) if all(given.values()) else None),
        trials=options.trials,
        placebo=False,
    )
    try:
        return make_plan(select(chosen)), {}
    except FitsNoTask as wrong:
        clean = msgspec.structs.replace(chosen, shifts=("clean",))
        return make_plan(select(clean)), wrong.reasons


# -- what is written -------------------------------------------------------------------------------


def _write(reading: Reading, settling: Settling, run: Path | None, options: ChangeOptions) -> None:
    if options.junit:
        save(options.junit, release_junit(reading, options.allow_untested).encode())
    if options.markdown:
        save(
            options.markdown,
            release_markdown(reading, str(run or ""), options.allow_untested).encode(),
        )
    if options.shift:
        save(options.shift, settling.shift.encode())
    if options.note:
        shift = settling.shift  # of what is asked, nothing is known until it is answered
        release = Release(shift.old, shift.new, decided(settling.draft))
        save(options.note, release_note(release).encode())
    if options.sarif:
        new = Path(options.new)
        content = new.read_text(encoding="utf-8") if new.is_file() else ""
        document = sarif(settling.report, options.new, content, version("toolshift"))
        save(options.sarif, msgspec.json.format(JSON.encode(document), indent=1) + b"\n")


# -- what is printed -------------------------------------------------------------------------------


def _print(reading: Reading, run: Path | None, options: ChangeOptions) -> None:
    """The verdict first, then what it rests on."""
    if not reading.rows:
        say(f"No change: {reading.new} takes and returns the same as {reading.old}.")
        return
    say_wrapped(f"{reading.old} becomes {reading.new}: {_counted(reading)}", "")
    _print_end(reading, run, options)
    _print_table(reading, options)
    _print_list("Not tested:", untested_in_words(reading))
    _print_list("Not carried, or removed:", said_in_words(reading))
    _print_broken(reading)
    _print_questions(reading, options)


def _print_table(reading: Reading, options: ChangeOptions) -> None:
    """A row for each change that may break calls; the harmless ones where there are no others."""
    lost = {task for _, task, _ in reading.losses}
    whole = in_one(reading.rows)
    rows = [row for row in whole if row.severity != "harmless" or _may_explain(row, lost)]
    rows = rows or whole
    say()
    said = ", and the tasks that it affects" if options.worlds else ""
    say(f"{'severity':{SEVERITY}}{'carried':{CARRIED}}change{said}")
    for row in rows[:MAX_ROWS]:
        _print_row(row, reading, bool(options.worlds))
    parts = []
    if len(rows) > MAX_ROWS:
        parts.append(f"{len(rows) - MAX_ROWS} more")
    if len(rows) < len(whole):
        parts.append(f"{len(whole) - len(rows)} harmless")
    if parts:
        say(f"... and {' and '.join(parts)}; --json and --markdown FILE have them all.")
    met = Counter(task for row in rows for task in row.tasks)
    if any(met[task] > 1 for task in lost):
        say_wrapped(
            "If several changes affect a failing task, its trace shows which one broke it.", ""
        )


def _may_explain(row: Row, lost: Collection[str]) -> bool:
    """Whether results that are declared for the first time may be why a task fails."""
    of_results = row.change is not None and row.change.kind.startswith("output_schema")
    return of_results and bool(set(row.tasks) & set(lost))


def _print_list(title: str, lines: Iterable[str]) -> None:
    told = list(lines)
    if told:
        say(f"\n{title}")
    for line in told[:MAX_LINES]:
        say_wrapped(line)
    if len(told) > MAX_LINES:
        say(f"  ... and {len(told) - MAX_LINES} more")


def _counted(reading: Reading) -> str:
    rows = in_one(reading.rows)
    counts = Counter(row.severity for row in rows)
    several = f"{len(rows)} change{'s' * (len(rows) != 1)}"
    parts = [f"{counts[one]} {one}" for one in ("breaking", "maybe", "harmless") if counts[one]]
    return f"{several} ({', '.join(parts)})"


def _print_row(row: Row, reading: Reading, has_world: bool) -> None:
    """A change, and below it its tasks with what each agent did there."""
    beside = " " * (SEVERITY + CARRIED)
    lines = [row.sentence]
    if has_world:
        ends = [f"{agent} {_end(row, each)}" for agent, each in reading.outcomes.items()]
        said = f": {'; '.join(ends)}" if ends and row.tasks else ""
        lines.append(f"in {', '.join(row.tasks)}{said}" if row.tasks else "in no task")
    first = f"{row.severity:{SEVERITY}}{row.carriage:{CARRIED}}"
    for lead, line in zip((first, beside), lines, strict=False):
        head, *rest = wrapped(visible(line), console().width - len(beside))
        say(f"{lead}{head}")
        for each in rest:
            say(f"{beside}{each}")


def _end(row: Row, outcomes: Mapping[str, Outcome]) -> str:
    """What an agent did, without the causes of what it lost: they stand above."""
    said = ends_in_words(row, dict(outcomes))
    for cause in {one.shifted for one in outcomes.values() if one.broke}:
        said = said.replace(cause, "fails")
    return said


def _print_broken(reading: Reading) -> None:
    if reading.broken:
        say("\nCalls that are valid today and refused after the change:")
    for one in list(reading.broken.values())[:10]:
        arguments = ", ".join(
            f"{name}={as_json(value)}" for name, value in one.call.arguments.items()
        )
        say_wrapped(f"{one.call.tool}({arguments[:120]}): {one.why[:160]}")


def _print_questions(reading: Reading, options: ChangeOptions) -> None:
    if reading.questions:
        say(
            f"\nQuestions, in {options.mapping} (tasks that need an open tool or parameter are "
            "left out):"
        )
    for one in reading.questions:
        say_wrapped(question_in_words(one))


def _print_end(reading: Reading, run: Path | None, options: ChangeOptions) -> None:
    for agent, outcomes in reading.outcomes.items():
        say_wrapped(agent_in_words(agent, outcomes))
    losses = reading.losses
    for agent, task, outcome in losses:
        say_wrapped(f"{agent} fails {task}: {outcome.why}  {outcome.episode}")
    if run and losses:
        say(f"  {command('trace', run, losses[0][2].episode)}")
    code = reading.exit_code(options.allow_untested)
    if reading.is_unseen:
        say_wrapped(f"{UNSEEN}.", "")
    if reading.rows:
        for agent in reading.unmeasured:
            told = unmeasured_in_words(agent, reading.outcomes[agent])
            say_wrapped(f"Nothing was measured for {told}.", "")
    if code == 4 or reading.is_unseen:
        return
    if reading.untested or reading.untested_tasks:
        rows, tasks = len(in_one(reading.untested)), len(reading.untested_tasks)
        what = [f"{rows} breaking change{'s' * (rows != 1)}"] if rows else []
        what += [f"{tasks} affected task{'s' * (tasks != 1)}"] if tasks else []
        say_wrapped(f"Not tested: {' and '.join(what)}, below (--allow-untested accepts it).", "")
    elif reading.outcomes and code == 0:
        say("Everything that could be tested still works.")
