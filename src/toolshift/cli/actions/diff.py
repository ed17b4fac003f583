"""`toolshift shift from-diff` and `toolshift shift show`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolshift.core.errors import UsageError
from toolshift.core.terminal import print_json, print_table

if TYPE_CHECKING:
    from toolshift.shifts.release.file import ShiftFile
    from toolshift.shifts.release.inputs import Side
    from toolshift.shifts.release.mapping import Answers
    from toolshift.shifts.release.resolve import Settled

MAX_ROWS = 60


def from_diff_command(
    old: str,
    new: str,
    out: Path,
    mapping: Path | None,
    name: str,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Makes a shift of the difference between two tool lists.

    Args:
        old: the tools as they are; see `connect.diff.sides`.
        new: the tools as they will be.
        out: the file of the shift.
        mapping: the file of answers, read where it exists; beside `out` where it is not named.
        name: of the shift; the name of the file where it is not said.
        yes: take the likeliest of what is doubtful.
        dry_run: print what changes, and write nothing.
        as_json: print JSON.

    Raises:
        UsageError: where a side or the mapping cannot be read, and where questions are open.
    """
    from toolshift.shifts.release.file import FORMAT, ShiftFile, check_name
    from toolshift.shifts.release.mapping import Answers, read_mapping
    from toolshift.shifts.release.resolve import settle

    if out.suffix != ".json":
        raise UsageError(f"--out {out}: a shift is known by its ending .json")
    name = check_name(name or out.stem)
    answers_file = mapping or out.with_suffix(".mapping.toml")
    given = read_mapping(answers_file) if answers_file.exists() else Answers()
    before, after = _read(old), _read(new)
    settled = settle(before, after, given, accept=yes)
    if settled.questions and not dry_run and not as_json and sys.stdin.isatty():
        settled = _ask(before, after, given, settled)
        _write(answers_file, _written(settled))
    if settled.questions and not dry_run:
        _write(answers_file, _written(settled))
        raise UsageError(_open(settled, answers_file, mapping is None))
    file = ShiftFile(FORMAT, name, before, after, settled.answers)
    _print(file, settled, as_json)
    if not dry_run:
        _write(out, file.encode())
        if not as_json:
            click.echo(f"Written to {out}: give it as --shift {out}")


def show_command(shift: str, as_json: bool) -> None:
    """Prints what a shift changes.

    Raises:
        UsageError: where there is none of this name.
    """
    from toolshift.shifts.registry import find_shift
    from toolshift.shifts.release.file import decode_shift_file
    from toolshift.shifts.release.resolve import Settled

    found = find_shift(shift)
    if found.file:
        file = decode_shift_file(found.file, shift)
        _print(file, Settled(file.mapping, ()), as_json)
        return
    told = {
        "shift": found.name,
        "tier": found.tier,
        "dimension": found.dimension,
        "level": found.level,
        "preserves": found.preserves,
        "imitates": found.imitates,
        "what": found.summary,
    }
    if as_json:
        print_json(told)
        return
    print_table("", ("", ""), list(told.items()))


def _read(side: str) -> Side:
    from toolshift.shifts.release.inputs import read_side

    if side.startswith(("mcp:", "http")):
        click.echo(f"Asking {side.partition('?')[0].split(' ')[0]} for its tools ...", err=True)
    return read_side(side)


def _write(path: Path, content: bytes) -> None:
    from toolshift.core.files import write

    try:
        write(path, content)
    except OSError as fault:
        raise UsageError(f"{path}: cannot write there ({fault.strerror})") from None


# -- questions -----------------------------------------------------------------------------------


def _written(settled: Settled) -> bytes:
    from toolshift.shifts.release.mapping import write_mapping

    notes = {".".join(question.path): question.note for question in settled.questions}
    return write_mapping(settled.answers, notes).encode()


def _ask(before: Side, after: Side, given: Answers, settled: Settled) -> Settled:
    """Asks on the terminal until nothing is open; an answer may open further questions."""
    from toolshift.shifts.release.resolve import answered, settle

    while settled.questions:
        question = settled.questions[0]
        what = {"renamed": "tool", "params": "parameter", "values": "value", "fields": "result"}
        of = f" of {'.'.join(question.path[1:-1])}" if len(question.path) > 2 else ""
        click.echo(f"\nThe {what[question.path[0]]} {question.path[-1]}{of} is gone.")
        click.echo(f"There is {', '.join(question.choices[:20])}.")
        said = click.prompt("What has it become? (- for nothing)", default=question.guess)
        while said not in (*question.choices, "-"):
            said = click.prompt("One of those, or - for nothing", default=question.guess)
        given = answered(given, question, "" if said == "-" else said)
        settled = settle(before, after, given)
    return settled


def _open(settled: Settled, file: Path, implied: bool) -> str:
    count = len(settled.questions)
    first = settled.questions[0]
    how = "" if implied else f" with --mapping {file}"
    return (
        f"{count} question{'s are' if count > 1 else ' is'} open, such as what became of "
        f'{first.path[-1]} ({first.note}). Fill in every "?" in {file} and run the command '
        f"again{how}, or take the likeliest with --yes"
    )


# -- what is printed -------------------------------------------------------------------------------


def _print(file: ShiftFile, settled: Settled, as_json: bool) -> None:
    from toolshift.shifts.release.describe import counts_of, rows_of
    from toolshift.shifts.release.file import as_shift

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
                    for q in settled.questions
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
        click.echo(f"... and {len(changed) - MAX_ROWS} more; --json has them all.")
    said = ", ".join(f"{number} {what}" for what, number in counts_of(rows).items())
    click.echo(f"{said}. Tier {shift.tier}, dimension {shift.dimension}.")
    for question in settled.questions:
        click.echo(f"Open: {'.'.join(question.path)}: {question.note}")


def _side(side: Side) -> dict[str, Any]:
    return {"kind": side.kind, "origin": side.origin, "hash": side.hash, "tools": len(side.tools)}
