"""`toolshift shift from-diff`: a shift of a change that is coming; and what a shift changes."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click
import msgspec

from toolshift.cli.group import Group
from toolshift.cli.options import AsJson, say_unread
from toolshift.cli.parameters import argument, option, options_struct
from toolshift.core.errors import UsageError
from toolshift.core.files import save
from toolshift.core.terminal import print_json, print_table, say
from toolshift.drift.questions import MOST_QUESTIONS, Calls, is_of_value
from toolshift.drift.release import Settling, read_release
from toolshift.shifts.real_drift import real_drift
from toolshift.shifts.registry import find_shift
from toolshift.shifts.release.describe import counts_of, rows_of
from toolshift.shifts.release.file import (
    ShiftFile,
    as_shift,
    check_name,
    decode_shift_file,
)
from toolshift.shifts.release.inputs import Side, read_side
from toolshift.shifts.release.mapping import (
    EVERY,
    UNDECIDED,
    Answers,
    entries_of,
    read_mapping,
    write_mapping,
)
from toolshift.shifts.release.resolve import Question, answered

MAX_ROWS = 60


@click.group(cls=Group)
def shift() -> None:
    """Make a shift from a coming change of tools; `toolshift show` shows what it changes."""


@dataclass(frozen=True, kw_only=True)
class FromDiffOptions:
    """What `toolshift shift from-diff` is asked for.

    Attributes:
        old: the tools as they are; see `toolshift.shifts.release.inputs`.
        new: the tools as they will be.
        out: the file of the shift.
        mapping: the file of answers, read where it exists; beside `out` where None.
        name: of the shift; "" for the name of the file.
        yes: go on with what is open: it is not carried.
        dry_run: print what changes, and write nothing.
    """

    old: Annotated[str, argument()]
    new: Annotated[str, argument()]
    out: Annotated[Path, option(help="File of the shift.")] = Path("change.json")
    mapping: Annotated[
        Path | None,
        option(
            help="File of answers to questions about the change; read if it exists, else written. "
            "Default: next to --out, with the ending .mapping.toml."
        ),
    ] = None
    name: Annotated[str, option(help="Name of the shift (default: that of the file).")] = ""
    yes: Annotated[
        bool, option(help="Accept likely matches; changes with open questions are not carried.")
    ] = False
    dry_run: Annotated[bool, option(help="Print the changes, and write nothing.")] = False
    as_json: AsJson = False


@shift.command("from-diff")
@options_struct(FromDiffOptions)
def from_diff(options: FromDiffOptions) -> None:
    """Make a shift from the difference between two versions of a tool list.

    OLD and NEW: a file (MCP tools, OpenAI tools or OpenAPI 3; JSON or YAML), a server to start
    (mcp:COMMAND), or the http address of a running server.

    \b
    toolshift shift from-diff tools-v1.json tools-v2.json --out monday.json
    toolshift shift from-diff 'mcp:npx -y my-server@1' 'mcp:npx -y my-server@2' --out monday.json
    toolshift run --agent mymodule:my_agent --world tasks.yaml --shift monday.json
    """
    out = options.out
    if out.suffix != ".json":
        raise UsageError(f"--out {out}: the file of a shift must end in .json")
    name = check_name(options.name or out.stem)
    answers_file = options.mapping or out.with_suffix(".mapping.toml")
    given = read_mapping(answers_file) if answers_file.exists() else Answers()
    before, after = _read(options.old), _read(options.new)
    with entries_of(answers_file):
        settling = read_release(before, after, given)
    asks = not options.dry_run and not options.yes
    if settling.open and asks and not options.as_json and sys.stdin.isatty():
        settling = ask_all(before, after, given, settling)
        save(answers_file, written(settling))
    readings = [one for one in settling.open if not is_of_value(one)]
    if settling.open and asks:
        save(answers_file, written(settling))
    if readings and asks:
        raise UsageError(_open(readings, answers_file, options.mapping is None))
    file = msgspec.structs.replace(settling.shift, name=name)
    _print(file, settling.open, options.as_json)
    if not options.dry_run:
        save(out, file.encode())
        if not options.as_json:
            say(f"Written to {out}: use it with {shlex.join(['--shift', str(out)])}")


def show_shift(name: str, as_json: bool) -> None:
    """Shows what a shift changes: a file of from-diff, tool by tool, or a registered one."""
    shift = find_shift(name)
    if shift.file:
        file = decode_shift_file(shift.file, name)
        _print(file, (), as_json)
        return
    facts: dict[str, Any] = {
        "shift": shift.name,
        "tier": shift.tier,
        "dimension": shift.dimension,
        "level": shift.level,
        "preserves": shift.preserves,
        "imitates": shift.imitates,
        "what": shift.summary,
    }
    drift = real_drift(shift.name)
    if drift:
        facts["real drift"] = drift if as_json else "\n".join(drift.sentences)
    if as_json:
        print_json(facts)
        return
    print_table("", ("", ""), [fact for fact in facts.items() if fact[1]])


def _read(side: str) -> Side:
    if side.startswith(("mcp:", "http")):
        say(f"Asking {side.partition('?')[0].split(' ')[0]} for its tools ...", err=True)
    tools = read_side(side)
    say_unread(tools.unread)
    return tools


# -- questions -----------------------------------------------------------------------------------


def written(settling: Settling) -> bytes:
    """A mapping file with what is still asked."""
    notes = {".".join(question.path): question.note for question in settling.open}
    return write_mapping(settling.draft, notes, settling.given).encode()


def ask_all(
    before: Side,
    after: Side,
    given: Answers,
    settling: Settling,
    calls: Callable[[], Calls] = tuple,
) -> Settling:
    """Asks on the terminal what is open; an answer may open further questions.

    At most ten are asked, and what is left open is not asked again.
    """
    met: set[tuple[str, ...]] = set()
    while len(met) < MOST_QUESTIONS:
        question = next((one for one in settling.open if one.path not in met), None)
        if question is None:
            break
        met.add(question.path)
        say(f"\n{_asked(question)}")
        answer = _value_of(question) if is_of_value(question) else _name_of(question)
        if answer is None:
            continue
        more = answered(given, question, answer)
        try:
            settling = read_release(before, after, more, calls)
        except UsageError as wrong:  # it says what to do in the file
            say(f"Left open. {wrong}")
        else:
            given = more
    return settling


_WHAT = {
    "renamed": "The tool {} is gone.",
    "params": "The parameter {}{} is gone.",
    "values": "The value {}{} is gone.",
    "fields": "The result {}{} is gone, or has moved.",
    "result_values": "The value {} in results{} is gone.",
    "param_units": "The parameter {}{} seems to be in another unit or format.",
    "units": "The result {}{} seems to be in another unit or format.",
    "given": "The parameter {}{} is required now, and no task gives a value for it.",
    "returned": "The result {}{} is always returned now, and no current tool returns it.",
    "pages": "A list comes in pages now{1}, and the size of a page is not given.",
    "defaults": "The parameter {}{} may be left out now, but the current tool requires it.",
}


def _asked(question: Question) -> str:
    of = ".".join(question.path[1:-1])
    of = ", ".join(question.tools) if of == EVERY else of
    of = f" of {of}" if len(question.path) > 2 else ""
    return _WHAT[question.path[0]].format(question.path[-1], of)


def _name_of(question: Question) -> str | None:
    """What something has become, as the user says; "" for nothing, None where it is left open."""
    say(f"Candidates: {', '.join(question.choices[:20])}.")
    text = "(- for nothing, ? to leave it open)"
    given = question.guess if question.guess in question.choices else None
    if question.guess and given is None:
        say(
            f"It may be one of several that were merged into {question.guess}: see [merged] in "
            "the mapping."
        )
    answer = click.prompt(f"What has it become? {text}", default=given)
    while answer not in (*question.choices, "-", UNDECIDED):
        answer = click.prompt(f"Choose one of these {text}", default=given)
    return None if answer == UNDECIDED else "" if answer == "-" else str(answer)


def _value_of(question: Question) -> Any:
    """A value, as the user says it; None where it is left open."""
    text = question.note.capitalize()
    answer = click.prompt(f"{text} (- to leave it open)", default="-")
    if answer == "-":
        return None
    try:
        return msgspec.json.decode(answer)
    except msgspec.DecodeError:
        return answer


def _open(readings: Sequence[Question], file: Path, implied: bool) -> str:
    count, first = len(readings), readings[0]
    how = "" if implied else f" with {shlex.join(['--mapping', str(file)])}"
    return (
        f"{count} question{'s are' if count > 1 else ' is'} open, such as what became of "
        f'{first.path[-1]} ({first.note}). Fill in every "?" in {file} and run the command '
        f"again{how}, or continue with --yes: then tasks that need an answer are left out"
    )


# -- what is printed -------------------------------------------------------------------------------


def _print(file: ShiftFile, questions: Sequence[Question], as_json: bool) -> None:
    rows, shift = rows_of(file.release()), as_shift(file)
    if as_json:
        print_json(
            {
                "shift": shift.name,
                "tier": shift.tier,
                "dimension": shift.dimension,
                "level": shift.level,
                "old": _side(file.old),
                "new": _side(file.new),
                "counts": counts_of(rows),
                "tools": rows,
                "questions": [
                    {"of": ".".join(q.path), "guess": q.guess, "likeness": q.likeness}
                    for q in questions
                ],
            }
        )
        return
    changed = [row for row in rows if row.what != "same"]
    table = [
        (
            "\n".join(row.old.split(", ")) or "-",
            row.new or "-",
            row.what,
            ", ".join(row.changes),
            "; ".join(row.partly),
        )
        for row in changed[:MAX_ROWS]
    ]
    columns = ("old tool", "new tool", "what", "changes", "not carried")
    print_table(
        f"{shift.name}: {file.old.origin} becomes {file.new.origin}", columns, table, whole=3
    )
    if len(changed) > MAX_ROWS:
        say(f"... and {len(changed) - MAX_ROWS} more; --json has them all.")
    counts = ", ".join(f"{number} {what}" for what, number in counts_of(rows).items())
    say(f"{counts}. Tier {shift.tier}, dimension {shift.dimension}.")
    for question in questions:
        say(f"Open: {'.'.join(question.path)}: {question.note}")


def _side(side: Side) -> dict[str, Any]:
    return {"kind": side.kind, "origin": side.origin, "hash": side.hash, "tools": len(side.tools)}
