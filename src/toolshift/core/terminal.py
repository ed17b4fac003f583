"""Printing, for all commands: tables to stdout, progress to stderr."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

import click
import msgspec
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from toolshift.core.files import writing
from toolshift.core.text import escaped, is_count, visible
from toolshift.core.tool import JSON

STDOUT = 1
"""The number of stdout for programs that are started."""
PATIENCE = 2.0
"""Seconds before a progress bar appears."""


class _Stdout:
    """Where this module prints; None is where everybody does."""

    ours: TextIO | None = None


@contextmanager
def stdout_is_ours() -> Iterator[None]:
    """While it is open, only this module prints to stdout; what others print goes to stderr.

    A `print` in an agent or a tool, or in a program that one starts, would spoil JSON. The main
    thread alone may enter it.
    """
    before = ours = sys.stdout
    others = sys.stderr or io.StringIO()
    if before is None:  # it is closed: there is nothing to keep
        yield
        return
    with ExitStack() as stack:
        if _number(before) == STDOUT:
            before.flush()
            kept = os.dup(STDOUT)
            ours = stack.enter_context(
                open(kept, "w", encoding=before.encoding, errors=before.errors)
            )
            nowhere = stack.enter_context(open(os.devnull, "w"))
            number = _number(others)
            os.dup2(nowhere.fileno() if number < 0 else number, STDOUT)
            stack.callback(os.dup2, kept, STDOUT)
        sys.stdout, _Stdout.ours = others, ours
        try:
            yield
        finally:
            sys.stdout, _Stdout.ours = before, None


def _number(stream: TextIO) -> int:
    """The number of a stream for programs that are started; -1 for one in memory."""
    try:
        return stream.fileno()
    except (AttributeError, OSError, ValueError):
        return -1


def console(record: bool = False) -> Console:
    """A console on stdout.

    Where it is no terminal, or is recorded, it is as wide as `COLUMNS` says; else 100 columns.
    """
    made = Console(highlight=False, soft_wrap=False, file=_Stdout.ours)
    if made.is_terminal and not record:
        return made
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if is_count(columns) else 100
    return Console(highlight=False, width=width, record=record, file=_Stdout.ours)


def save_svg(console: Console, file: Path) -> None:
    """Draws what a recorded console has printed."""
    with writing(file):
        console.save_svg(str(file), title="toolshift report")


def say(text: str = "", err: bool = False, fg: str | None = None, bold: bool = False) -> None:
    """Prints a line, on a terminal in a colour or bold; hidden characters in it are named."""
    click.secho(visible(text), file=None if err else _Stdout.ours, err=err, fg=fg, bold=bold)


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of whole words, by the columns that they take; further lines are set in.

    A word that is longer than a line stays whole, and so does a command of ours, to be copied.
    """
    lines = [""]
    for word in _pieces(text):
        joined = f"{lines[-1]} {word}" if lines[-1].strip() else f"{lines[-1]}{word}"
        if cell_len(joined) > width and lines[-1].strip():
            lines.append(f"{indent}{word}")
        else:
            lines[-1] = joined
    return lines


def _pieces(text: str) -> Iterator[str]:
    """The words of a text; a command, up to the sign behind it or the end, counts as one."""
    command: list[str] = []
    for word in text.split():
        if command or word.lstrip("(`") == "toolshift":
            command.append(word)
            if word[-1] not in ").,;:`":
                continue
            yield " ".join(command)
            command = []
        else:
            yield word
    if command:
        yield " ".join(command)


def padded(text: str, width: int) -> str:
    """A text with spaces behind it up to a number of columns."""
    return text + " " * (width - cell_len(text))


def say_wrapped(text: str, lead: str = "  ") -> None:
    """Prints a sentence behind a lead, in lines as wide as the console."""
    width = console().width - len(lead)
    for line in wrapped(visible(text), width, "  "):
        say(f"{lead}{line}")


def print_json(value: object) -> None:
    """Prints a value as JSON; hidden characters are written as JSON escapes."""
    text = escaped(msgspec.json.format(JSON.encode(value), indent=2).decode())
    click.echo(text, file=_Stdout.ours)


def marked(text: str) -> str:
    """Escapes foreign text for rich's markup: hidden characters are named, markup is disabled."""
    return escape(visible(text))


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], whole: int = 1
) -> None:
    """Prints a plain table; the first `whole` columns are never broken into lines."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=place < whole)
    for row in rows:
        table.add_row(*(marked(str(value)) for value in row))
    console().print(table)


@contextmanager
def progress(what: str) -> Iterator[Progress]:
    """A progress bar on stderr for whatever takes longer than `PATIENCE`."""
    start = time.monotonic()
    error = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    bar = Bar(*columns, console=error, transient=True, disable=not error.is_terminal)
    task = bar.add_task(what, total=None)
    begun = False
    last = start

    def watch(done: int, total: int) -> None:
        nonlocal begun, last
        now = time.monotonic()
        if not begun and now - start > PATIENCE:
            begun = True
            bar.start()
        if begun:
            bar.update(task, completed=done, total=total or None)
        if not error.is_terminal and now - last > 30:
            last = now
            print(f"{what}: {done} of {total or '?'}", file=sys.stderr, flush=True)

    try:
        yield watch
    finally:
        bar.stop()


Progress = Callable[[int, int], None]
