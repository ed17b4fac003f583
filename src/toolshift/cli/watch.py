"""`toolshift watch`: what drifts in a stream, while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import click
import msgspec

from toolshift.cli.options import AsJson, header_of, say_unread, with_variables
from toolshift.cli.parameters import argument, option, options_struct
from toolshift.cli.stopping import Stopping
from toolshift.core.errors import UsageError
from toolshift.core.files import PACKED, check_writable
from toolshift.core.intake import Intake, NotRead
from toolshift.core.redaction import Redactor
from toolshift.core.terminal import say
from toolshift.core.text import escaped, visible
from toolshift.core.tool import JSON
from toolshift.data.conversation import RowFault
from toolshift.data.tables import is_table
from toolshift.data.trace_files import part_of
from toolshift.drift.lock import check_holds_tools, read_lock
from toolshift.drift.sources import read_lines
from toolshift.drift.stream import Event, Reader, is_json
from toolshift.watch.metrics import Metrics
from toolshift.watch.state import FORMAT, State, read_state, write_state
from toolshift.watch.watch import EVERY, LEARN, Alarm, Watcher
from toolshift.watch.webhook import Webhook

KEPT_LINES, KEPT_SECONDS = 1_000, 30.0
"""The state is kept after so many lines, or so many seconds, and at each alarm."""
BLIND = 20
"""If none of this many first lines or spans is understood, the command says so at once."""


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """What `toolshift watch` is asked for.

    Attributes:
        stream: a file of JSON lines, or a table, or "-" for standard input.
        lock: the tools as they were; the first list of the stream where None.
        baseline: a stream from before the problem, to learn from; None learns from no file.
        state: the file that keeps what was learned over restarts; None keeps nothing.
        every: at most one false alarm in so many events, on average.
        learn: calls of a tool, or endings, from which a rate is learned.
        webhook: the address to which alarms are posted; "" posts no alarm.
        headers: "Name: value" for it.
        metrics_port: the port that Prometheus reads from; None opens no port.
    """

    stream: Annotated[str, argument(metavar="FILE|-")]
    lock: Annotated[
        Path | None, option(help="Lock of the known tools (default: the stream's first list).")
    ] = None
    baseline: Annotated[
        Path | None, option(help="A stream from a normal period, to learn rates from.")
    ] = None
    state: Annotated[
        Path | None,
        option(help="Store what was learned and reported in this file, and continue from it."),
    ] = None
    every: Annotated[
        int,
        option(
            type=click.IntRange(min=1),
            help="At most one false alarm in this number of events, on average.",
        ),
    ] = EVERY
    learn: Annotated[
        int,
        option(
            type=click.IntRange(min=20),
            help="Number of calls of a tool, or of endings, from which a rate is learned.",
        ),
    ] = LEARN
    webhook: Annotated[
        str,
        option(
            metavar="URL",
            help="Post each alarm to this address as JSON; $VAR is read from the environment.",
        ),
    ] = ""
    headers: Annotated[
        tuple[str, ...],
        option("--webhook-header", help="'Name: value' for --webhook; $VAR is read."),
    ] = ()
    metrics_port: Annotated[
        int | None,
        option(
            type=click.IntRange(0, 65535),
            metavar="PORT",
            help="Serve Prometheus metrics on 127.0.0.1:PORT (0: a free port) while the watch "
            "runs.",
        ),
    ] = None
    as_json: AsJson = False


@click.command()
@options_struct(WatchOptions)
def watch(options: WatchOptions) -> None:
    """Follow a stream of calls and report drift: tools, errors, times, results, queries.

    FILE is a trace of the proxy, conversations, or spans, as JSON lines, CSV or Parquet; - is
    standard input, as JSON lines. One line is printed for each alarm, as JSON with --json. The end
    of the output says how much could not be read.

    \b
    tail -f trace.jsonl | toolshift watch - --lock toolshift.lock
    toolshift watch spans.jsonl --every 10000 --metrics-port 9464 --webhook '$HOOK_URL'

    Exit codes: 0 no drift, 1 drift, 2 could not watch, also if nothing could be read.
    SIGTERM and Ctrl-C end the watch like the end of the stream, with the same codes.
    """
    _check_stream(options.stream)
    if options.headers and not options.webhook:
        raise UsageError("--webhook-header needs --webhook")
    lock = read_lock(options.lock) if options.lock else None
    if lock is not None and options.lock is not None:
        check_holds_tools(lock, options.lock)
    kept = _Kept(options, lock)
    watcher = kept.watcher
    with ExitStack() as open_:
        stopping = open_.enter_context(Stopping())
        if options.baseline and kept.begun is None:
            _learn(watcher, options.baseline, lock is not None)
        metrics = _serve_metrics(options, open_)
        hook = _webhook(options, open_)
        alarms, reader = _follow(kept, options, metrics, hook, stopping)
    if not alarms:
        kept.check(reader)
    _say_end(watcher, alarms, reader, options.as_json)
    if hook is not None and hook.lost:
        lost = f"{hook.lost} of {hook.sent + hook.lost} messages did not reach {hook.name}"
        say(f"{lost} ({hook.fault or 'too many at once'}).", err=True)
    sys.exit(int(alarms > 0 or bool(watcher.out)))


def _check_stream(stream: str) -> None:
    """Checks that there is something to follow; a pipe is as good as a file."""
    if stream == "-":
        return
    path = Path(stream)
    if path.is_dir():
        raise UsageError(f"{stream} is a folder: name a file of JSON lines in it")
    if not path.exists():
        raise UsageError(f"{stream}: there is no such file; - is standard input")


class _Kept:
    """The watch with what is kept of it in a file, where one was asked for.

    Args:
        options: of the command.
        lock: the tools as they were.
    """

    def __init__(self, options: WatchOptions, lock: Any) -> None:
        self._path, self._stream = options.state, options.stream
        self._options = {
            "every": options.every,
            "learn": options.learn,
            "lock": getattr(lock, "hash", ""),
        }
        self.begun: State | None = None
        if self._path is not None:
            check_writable(self._path, "--state")
            self.begun = read_state(self._path, self._options)
        self.watcher: Watcher = (
            self.begun.watcher
            if self.begun is not None
            else Watcher(options.every, options.learn, lock)
        )
        self._place = 0
        self._head = ""
        self._lines, self._last = 0, time.monotonic()

    def unread_lines(
        self, lines: Iterator[bytes], stop: Callable[[bytes], bool]
    ) -> Iterator[bytes]:
        """The lines of the file that were not read before; `stop` says which is left for later."""
        met = self._head_of_stream()
        known = self.begun.place if self.begun is not None else None
        skipped = 0
        if known is not None and met and known[1] == met and self._size() >= known[0]:
            skipped = known[0]
        self._head = met
        for line in lines:
            if self._place + len(line) > skipped:
                if stop(line):
                    return
                yield line
            self._place += len(line)

    def _size(self) -> int:
        return Path(self._stream).stat().st_size

    def _head_of_stream(self) -> str:
        """What the file begins with, as a hash; "" for what is not read line by line as it is."""
        path = Path(self._stream)
        if (
            self._stream == "-"
            or not path.is_file()
            or path.suffix in (*PACKED, ".json")
            or is_table(path)
        ):
            return ""
        with path.open("rb") as file:
            return sha256(file.readline(1 << 20)).hexdigest()

    def keep(self, reader: Reader, now: bool = False) -> None:
        """Writes the file, now or where it is time to."""
        if self._path is None:
            return
        self._lines += 1
        due = self._lines >= KEPT_LINES or time.monotonic() - self._last >= KEPT_SECONDS
        if now or due:
            place = (self._place, self._head) if self._head else None
            state = State(FORMAT, self._options, place, reader.spans, self.watcher)
            write_state(self._path, state)
            self._lines, self._last = 0, time.monotonic()

    def check(self, reader: Reader) -> None:
        """Checks that something was read, new lines where a file is gone on with."""
        if self.begun is not None and not reader.intake.total:
            raise NotRead(
                f"{reader.intake.source}: nothing was read, because nothing was added since "
                f"{self._path} was saved",
                reader.intake,
            )
        reader.check()


def _learn(watcher: Watcher, baseline: Path, has_lock: bool) -> None:
    """Learns from a stream of when all was well."""
    reader = Reader(f"--baseline {baseline}", part_of(baseline))
    watcher.well = True
    for _ in _alarms(watcher, read_lines(baseline), reader, None):
        pass
    watcher.well = False
    reader.check()
    say_unread([reader.intake])
    if has_lock:  # that a baseline has drifted from the lock too makes it no less drift
        watcher.tell_again()


def _follow(
    kept: _Kept,
    options: WatchOptions,
    metrics: Metrics | None,
    hook: Webhook | None,
    stopping: Stopping,
) -> tuple[int, Reader]:
    """Follows the stream to its end, or to a signal."""
    standard = options.stream == "-"
    piped = standard or not Path(options.stream).is_file()
    source = ("standard input",) if standard else (options.stream, part_of(Path(options.stream)))
    reader, alarms = Reader(*source), 0
    if kept.begun is not None:
        reader.spans = kept.begun.spans
    redactor = Redactor(tuple(dict(_headers(options)).values()))
    lines = sys.stdin.buffer if standard else read_lines(Path(options.stream))

    def unfinished(line: bytes) -> bool:
        """Whether a line of a file is still being written: it is left for the next time."""
        return options.state is not None and not line.endswith(b"\n") and not is_json(line)

    new = kept.unread_lines(stopping.lines(lines), unfinished)
    for alarm in _alarms(kept.watcher, new, reader, metrics, piped, lambda: kept.keep(reader)):
        alarms += 1
        _print(alarm, options.as_json)
        if metrics is not None:
            metrics.alarm(alarm)
        if hook is not None:
            hook.send(redactor.clean(_message(alarm, options)))
    kept.keep(reader, now=True)
    return alarms, reader


def _headers(options: WatchOptions) -> list[tuple[str, str]]:
    return [header_of(header, "--webhook-header") for header in options.headers]


def _webhook(options: WatchOptions, open_: ExitStack) -> Webhook | None:
    if not options.webhook:
        return None
    url = with_variables(options.webhook, "--webhook")
    return open_.enter_context(Webhook(url, dict(_headers(options))))


def _message(alarm: Alarm, options: WatchOptions) -> dict[str, Any]:
    """What is posted: `text` as chat services show it, and the alarm as data."""
    stream = Path(options.stream).name
    text = f"toolshift watch, {stream}: {alarm.kind}: {alarm.sentence}"
    return {"text": text, "stream": stream, "alarm": msgspec.to_builtins(alarm)}


def _serve_metrics(options: WatchOptions, open_: ExitStack) -> Metrics | None:
    if options.metrics_port is None:
        return None
    metrics = Metrics()
    open_.callback(metrics.serve(options.metrics_port))
    say(f"Metrics: http://127.0.0.1:{metrics.port}/metrics", err=True)
    return metrics


def _alarms(
    watcher: Watcher,
    lines: Iterator[bytes],
    reader: Reader,
    metrics: Metrics | None,
    piped: bool = False,
    after: Callable[[], None] = lambda: None,
) -> Iterator[Alarm]:
    """What drifts; where the stream is piped and nothing of it is read, that is said early."""
    for line in lines:
        before = reader.intake.unread
        events: list[Event] = []
        with suppress(RowFault):  # the reader counts it
            events = reader.read(line)
        missed = reader.intake.unread - before
        if missed and metrics is not None:
            metrics.missed(missed)
        if missed and piped:
            _say_blind(reader.intake, missed)
        for event in events:
            if metrics is not None:
                metrics.observe(event)
            yield from watcher.observe(event)
        after()


def _print(alarm: Alarm, as_json: bool) -> None:
    if as_json:
        say(escaped(JSON.encode(alarm).decode()))
    else:
        say(visible(f"event {alarm.at}  {alarm.kind}  {alarm.dimension}  {alarm.sentence}"))


def _say_blind(intake: Intake, missed: int) -> None:
    """Says once that none of the first lines or spans was understood."""
    if not intake.read and intake.unread - missed < BLIND <= intake.unread:
        say(f"Warning: nothing was read so far: {intake.missing()}", err=True)


def _say_end(watcher: Watcher, alarms: int, reader: Reader, as_json: bool) -> None:
    intake = reader.intake
    text = (
        f"{watcher.events} events, {watcher.calls} calls of {watcher.tools} tools, "
        f"{watcher.endings} endings: {alarms} alarm{'s' if alarms != 1 else ''}."
    )
    say(text, err=True)
    learning = watcher.tools - watcher.watching
    if learning:
        say(f"{learning} tools had too few calls to learn from.", err=True)
    if watcher.unwatched:
        say(f"{watcher.unwatched} calls of other tools were not watched.", err=True)
    if watcher.out:
        say(
            f"At the end, every call of these tools fails: {', '.join(watcher.out)}.",
            err=True,
        )
    if watcher.never_worked:
        told = ", ".join(f"{name} ({count})" for name, count in watcher.never_worked.items())
        say(f"Every call of these tools failed, but there were only few: {told}.", err=True)
    if watcher.untold:
        some = f"{watcher.untold} of {watcher.calls} calls have no result"
        which = "No call has a result" if watcher.untold == watcher.calls else some
        unseen = "failures that are visible only in results cannot be detected"
        say(f"{which} in this input: {unseen}.", err=True)
    say_unread([intake])
    if not as_json:
        return
    if watcher.out:
        say(escaped(JSON.encode({"out": watcher.out}).decode()))
    if intake.unread:
        say(escaped(JSON.encode({"unread": [intake]}).decode()))
