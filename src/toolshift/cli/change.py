"""`toolshift change`: will an agent survive a change of its tools?"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import click
import msgspec

from toolshift.adapt.release_note import release_note
from toolshift.agents.catalog import check_settings, contestants
from toolshift.agents.exchanges import Exchanges
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
from toolshift.cli.shift import ask_all, ask_values, written
from toolshift.core.command_line import command
from toolshift.core.errors import FitsNoTask, UsageError
from toolshift.core.files import write
from toolshift.core.terminal import print_json, print_table, say
from toolshift.core.tool import JSON
from toolshift.drift.release import (
    RELEASE,
    Reading,
    Row,
    Settling,
    check_agents,
    read_release,
    read_tools,
    with_runs,
)
from toolshift.drift.release_text import (
    carriage_in_words,
    ends_in_words,
    question_in_words,
    release_junit,
    release_markdown,
)
from toolshift.drift.sarif import sarif
from toolshift.measure.sequential import task_claims
from toolshift.runs.execute import RunSpec, check_at_once
from toolshift.runs.plan import Plan, make_plan
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import Selection, select
from toolshift.shifts.release.inputs import Side
from toolshift.shifts.release.mapping import Answers, entries_of, read_mapping
from toolshift.shifts.release.resolve import Settled

MAX_ROWS = 60
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
        tuple[str, ...], option("--world", help="Tasks: a file of your own, or a world; repeat.")
    ] = ()
    mapping: Annotated[
        Path,
        option(
            help="File of answers to what cannot be inferred; read where it exists, else written "
            "where something is asked."
        ),
    ] = DEFAULT_MAPPING
    allow_untested: Annotated[
        bool, option(help="Exit code 0 also where something breaking is untested.")
    ] = False
    trials: Annotated[int, option(help="Runs of each task.")] = 1
    tasks: Annotated[int | None, option(help="Tasks of each world.")] = None
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
    """Say what a change of tools does, what it breaks for your agent, and what is untested.

    OLD and NEW: a file (OpenAPI 2 or 3; tools of MCP, OpenAI, Anthropic or Gemini; a lock), a
    server that is started (mcp:COMMAND) or its http address, python:MODULE, or git:REV:PATH.

    \b
    toolshift change openapi.yaml openapi-new.yaml
    toolshift change git:main:openapi.yaml openapi.yaml --agent mymodule:my_agent --world tasks.yaml

    Exit codes: 0 all that could be tested holds, 1 something that passed fails, 2 a usage error,
    3 something breaking is untested, 4 nothing was measured.
    """
    check_agents(options.agents, options.worlds)
    check_at_once(options.workers, options.concurrency)
    check_settings(options.agents, options.model.given())
    given = read_mapping(options.mapping) if options.mapping.exists() else Answers()
    before, after = _side(options.old), _side(options.new)
    say_unread((*before.unread, *after.unread))
    with entries_of(options.mapping):
        settling = read_release(before, after, given)
    settling = _answered(before, after, given, settling, options)
    exchanges = options.reuse.exchanges()
    reading, run = _run(settling, options, exchanges)
    _write(reading, settling, run, options)
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
        became = tuple(one for one in settling.open if one.path[0] != "given")
        answers = ask_all(before, after, given, Settled(settling.draft, became)).answers
        settling = read_release(before, after, answers)
        answers = ask_values(answers, settling.open)
        settling = read_release(before, after, answers)
        _save(options.mapping, written(Settled(settling.draft, settling.open)))
        return settling
    if not options.mapping.exists():
        _save(options.mapping, written(Settled(settling.draft, settling.open)))
    return settling


# -- the run ---------------------------------------------------------------------------------------


def _run(
    settling: Settling, options: ChangeOptions, exchanges: Exchanges
) -> tuple[Reading, Path | None]:
    """The reading with what the agents did, and the folder of their run."""
    reading = settling.reading
    if not options.worlds or not reading.rows:
        return with_runs(reading, None, (), (), ""), None
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{RELEASE}.json"
        write(path, settling.shift.encode())
        plan, why = _planned(str(path), options)
        if not options.agents:
            return with_runs(reading, plan, (), (), why), None
        agents = contestants(list(options.agents), options.concurrency, **options.model.given())
        out = options.out or new_folder("change")
        sequential = options.spending.is_sequential(out, usual=True)
        claims = task_claims(options.spending.budget) if sequential else None
        spec = RunSpec(plan, agents, out, options.workers, exchanges=exchanges, claims=claims)
        run_shown(spec, options.out is not None)
        run = RunFolder.read(out)
        names = [agent.name for agent in agents]
        return with_runs(reading, run.plan, run.records(), names, why), out


def _planned(shift: str, options: ChangeOptions) -> tuple[Plan, str]:
    """The plan; where the change fits none of the tasks the clean one, and why."""
    chosen = Selection(
        worlds=options.worlds,
        shifts=(shift,),
        tasks=options.tasks,
        trials=options.trials,
        placebo=False,
    )
    try:
        return make_plan(select(chosen)), ""
    except FitsNoTask as wrong:
        clean = msgspec.structs.replace(chosen, shifts=("clean",))
        return make_plan(select(clean)), str(wrong)


# -- what is written -------------------------------------------------------------------------------


def _write(reading: Reading, settling: Settling, run: Path | None, options: ChangeOptions) -> None:
    if options.junit:
        _save(options.junit, release_junit(reading, options.allow_untested).encode())
    if options.markdown:
        _save(
            options.markdown,
            release_markdown(reading, str(run or ""), options.allow_untested).encode(),
        )
    if options.shift:
        _save(options.shift, settling.shift.encode())
    if options.note:
        _save(options.note, release_note(settling.shift.release()).encode())
    if options.sarif:
        new = Path(options.new)
        content = new.read_text(encoding="utf-8") if new.is_file() else ""
        document = sarif(settling.report, options.new, content, version("toolshift"))
        _save(options.sarif, msgspec.json.format(JSON.encode(document), indent=1) + b"\n")


def _save(path: Path, content: bytes) -> None:
    try:
        write(path, content)
    except OSError as fault:
        raise UsageError(f"{path}: cannot write there ({fault.strerror})") from None


# -- what is printed -------------------------------------------------------------------------------


def _print(reading: Reading, run: Path | None, options: ChangeOptions) -> None:
    if not reading.rows:
        say(f"No change: {reading.new} asks and gives what {reading.old} does.")
        return
    agents = list(reading.outcomes)
    columns = ("severity", "change", "carried", *(["tasks"] if options.worlds else []), *agents)
    rows = [_cells(row, reading, bool(options.worlds)) for row in reading.rows[:MAX_ROWS]]
    print_table(f"{reading.old} becomes {reading.new}: {_counted(reading)}", columns, rows)
    if len(reading.rows) > MAX_ROWS:
        say(f"... and {len(reading.rows) - MAX_ROWS} more; --json has them all.")
    _print_broken(reading)
    _print_questions(reading, options)
    _print_untested(reading.rows)
    _print_end(reading, run, options)


def _counted(reading: Reading) -> str:
    counts = Counter(row.severity for row in reading.rows)
    several = f"{len(reading.rows)} change{'s' * (len(reading.rows) != 1)}"
    parts = [f"{counts[one]} {one}" for one in ("breaking", "maybe", "harmless") if counts[one]]
    return f"{several} ({', '.join(parts)})"


def _cells(row: Row, reading: Reading, has_world: bool) -> Sequence[str]:
    tasks = [", ".join(row.tasks) or "-"] if has_world else []
    ends = [ends_in_words(row, outcomes) for outcomes in reading.outcomes.values()]
    return [row.severity, row.sentence, carriage_in_words(row), *tasks, *ends]


def _print_broken(reading: Reading) -> None:
    if reading.broken:
        say("\nCalls that are right today and refused then:")
    for one in list(reading.broken.values())[:10]:
        arguments = ", ".join(
            f"{name}={msgspec.json.encode(value).decode()}"
            for name, value in one.call.arguments.items()
        )
        say(f"  {one.call.tool}({arguments[:120]}): {one.why[:160]}")


def _print_questions(reading: Reading, options: ChangeOptions) -> None:
    if reading.questions:
        say(f"\nAsked, in {options.mapping} (until then the likeliest is taken):")
    for one in reading.questions:
        say(f"  {question_in_words(one)}")


def _print_untested(rows: Iterable[Row]) -> None:
    told: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.untested:
            told.setdefault((row.untested, row.cure), []).append(row.sentence.partition(":")[0])
    if told:
        say("\nNot tested:")
    for (why, cure), changes in told.items():
        say(f"  {'; '.join(dict.fromkeys(changes))}: {why}. To test it: {cure}.")


def _print_end(reading: Reading, run: Path | None, options: ChangeOptions) -> None:
    say()
    for agent, task, outcome in reading.losses:
        shown = command("trace", run, outcome.episode) if run else ""
        say(f"{agent} fails {task}, which it passes today ({outcome.shifted}): {shown}")
    for agent, outcomes in reading.outcomes.items():
        kept = sum(one.tested and not one.broke for one in outcomes.values())
        tested = sum(one.tested for one in outcomes.values())
        say(f"{agent}: {kept} of {tested} tasks that it passes today hold, of {len(outcomes)}.")
    code = reading.exit_code(options.allow_untested)
    if code == 4:
        say("Nothing was measured: no episode with the change has a verdict.")
    elif code == 3:
        say(f"Breaking and untested: {len(reading.untested)} (--allow-untested accepts it).")
    if run:
        say(f"Run folder: {run}")
