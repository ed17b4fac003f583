"""`toolshift watch`: what drifts in a stream, while it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from toolshift.adapt.lock import read_lock
from toolshift.adapt.sources import read_lines
from toolshift.adapt.stream import Reader
from toolshift.adapt.watch import EVERY, LEARN, Alarm, Watcher
from toolshift.cli.options import PATH, as_json, taking
from toolshift.core.errors import UsageError
from toolshift.core.text import visible
from toolshift.core.tool import JSON
from toolshift.data.conversation import RowFault


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """What `toolshift watch` is asked for.

    Attributes:
        stream: a file of JSON lines, or "-" for standard input.
        lock: the tools as they were; the first list of the stream where None.
        baseline: a stream from when all was well, to learn from; None for none.
        every: at most one false alarm in so many events, on average.
        learn: calls of a tool, or endings, from which a rate is learned.
    """

    stream: str
    lock: Path | None
    baseline: Path | None
    every: int
    learn: int
    as_json: bool


@click.command()
@click.argument("stream", metavar="FILE|-")
@click.option(
    "--lock", type=PATH, help="The tools as they were (default: the stream's first list)."
)
@click.option("--baseline", type=PATH, help="A stream from when all was well, to learn rates from.")
@click.option(
    "--every",
    type=click.IntRange(min=1),
    default=EVERY,
    show_default=True,
    help="At most one false alarm in so many events, on average.",
)
@click.option(
    "--learn",
    type=click.IntRange(min=20),
    default=LEARN,
    show_default=True,
    help="Calls of a tool, or endings, from which a rate is learned.",
)
@as_json
@taking(WatchOptions)
def watch(options: WatchOptions) -> None:
    """Follow a stream of calls and say what drifts: errors, latency, results, refusals, tools.

    FILE is a trace of the proxy, conversations, or OpenTelemetry spans, as JSON lines; - is
    standard input. One line is printed for each alarm, as JSON with --json.

    \b
    tail -f trace.jsonl | toolshift watch - --lock toolshift.lock
    toolshift watch spans.jsonl --every 10000

    Exit codes: 0 no drift, 1 drift, 2 could not watch.
    """
    if options.stream != "-" and not Path(options.stream).is_file():
        raise UsageError(f"{options.stream}: there is no such file; - is standard input")
    lock = read_lock(options.lock) if options.lock else None
    watcher = Watcher(options.every, options.learn, lock)
    if options.baseline:
        for _ in _alarms(watcher, read_lines(options.baseline), [0, 0]):
            pass
    counts = [0, 0]
    found = 0
    lines = sys.stdin.buffer if options.stream == "-" else read_lines(Path(options.stream))
    with suppress(KeyboardInterrupt):
        for alarm in _alarms(watcher, iter(lines), counts):
            found += 1
            _print(alarm, options.as_json)
    read, wrong = counts
    if wrong and wrong == read:
        raise UsageError(
            f"{options.stream}: none of its {read} lines is of a trace, a conversation or a span"
        )
    _say_end(watcher, found, wrong)
    sys.exit(int(found > 0))


def _alarms(watcher: Watcher, lines: Iterator[bytes], counts: list[int]) -> Iterator[Alarm]:
    """What drifts; `counts` are the lines that were read, and those that could not be."""
    reader = Reader()
    for line in lines:
        counts[0] += 1
        try:
            events = reader.read(line)
        except RowFault:
            counts[1] += 1
            continue
        for event in events:
            yield from watcher.observe(event)


def _print(alarm: Alarm, as_json: bool) -> None:
    if as_json:
        click.echo(JSON.encode(alarm).decode())
    else:
        click.echo(visible(f"event {alarm.at}  {alarm.kind}  {alarm.dimension}  {alarm.sentence}"))


def _say_end(watcher: Watcher, found: int, wrong: int) -> None:
    said = (
        f"{watcher.events} events, {watcher.calls} calls of {watcher.tools} tools, "
        f"{watcher.endings} endings: {found} alarm{'s' if found != 1 else ''}."
    )
    click.echo(said, err=True)
    learning = watcher.tools - watcher.watching
    if learning:
        click.echo(f"Of {learning} tools there were too few calls to learn from.", err=True)
    if watcher.unwatched:
        click.echo(f"{watcher.unwatched} calls of further tools were not watched.", err=True)
    if wrong:
        click.echo(f"{wrong} lines could not be read.", err=True)
