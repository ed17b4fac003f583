"""Spans on their way to where they are sent, and whether they arrive.

OpenTelemetry tells of what it cannot send in log records, batch by batch and try by try. Here they
are heard and not printed, and what did not arrive is said once, when the run is over.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from toolshift.core.terminal import say

_Batches: Any = BatchSpanProcessor
_Exports: Any = SpanExporter
_LOGGERS = (
    "opentelemetry.exporter",
    "opentelemetry.sdk._shared_internal",
    "opentelemetry.sdk.trace.export",
)
"""Those that tell of what cannot be sent."""
MAX_REASON = 300


class Sender(_Batches):  # type: ignore[misc]
    """Sends spans in batches, and counts them.

    Args:
        exporter: that sends them.
        place: where to, as the user knows it.
    """

    def __init__(self, exporter: Any, place: str) -> None:
        self.place, self.ended = _without_password(place), 0
        self._counting = _Counting(exporter)
        super().__init__(self._counting)
        for name in _LOGGERS:
            logger = logging.getLogger(name)
            logger.addHandler(_HEARD)
            logger.propagate = False

    def on_end(self, span: Any) -> None:
        """Takes a span to be sent."""
        if span.context.trace_flags.sampled:
            self.ended += 1
        super().on_end(span)

    def tell(self) -> None:
        """Says how many spans did not arrive, and why; nothing where all did."""
        lost = self.ended - self._counting.sent
        self.ended = self._counting.sent = 0
        if lost:
            reason = _HEARD.reason or "no reason was given"
            say(
                f"OpenTelemetry: {lost} spans could not be sent to {self.place} ({reason}). "
                "Nothing of the run is lost: its folder has all episodes.",
                err=True,
            )


class _Counting(_Exports):  # type: ignore[misc]
    """An exporter that counts what has arrived."""

    def __init__(self, exporter: Any) -> None:
        self.exporter, self.sent = exporter, 0

    def export(self, spans: Sequence[Any]) -> Any:
        """Sends a batch."""
        found = self.exporter.export(spans)
        if found is SpanExportResult.SUCCESS:
            self.sent += len(spans)
        return found

    def shutdown(self) -> None:
        """Ends the exporter."""
        self.exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Has the exporter send what it holds."""
        return bool(self.exporter.force_flush(timeout_millis))


class _Heard(logging.Handler):
    """The last reason that was told; one with an exception says more than one without."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.reason = ""
        self._of_fault = False

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps what is told."""
        fault = next(_faults(record), None)
        if fault is None and self._of_fault:
            return
        said = record.getMessage() if fault is None else _words(_innermost(fault))
        self.reason, self._of_fault = " ".join(said.split())[:MAX_REASON], fault is not None


_HEARD = _Heard()


def _faults(record: logging.LogRecord) -> Iterator[BaseException]:
    """The exceptions that a record is of."""
    if isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
        yield record.exc_info[1]
    if isinstance(record.args, tuple):
        yield from (each for each in record.args if isinstance(each, BaseException))


def _words(fault: BaseException) -> str:
    return str(fault) or type(fault).__name__


def _without_password(place: str) -> str:
    """An address without the name and the password that may stand in it."""
    try:
        given = urlsplit(place).netloc
    except ValueError:
        return place
    return place.replace(given, given.rpartition("@")[2]) if "@" in given else place


def _innermost(fault: BaseException) -> BaseException:
    """What brought an exception about, by its causes; at most so many, for they may be a circle."""
    for _ in range(9):
        inner = fault.__cause__ or fault.__context__
        if inner is None:
            break
        fault = inner
    return fault
