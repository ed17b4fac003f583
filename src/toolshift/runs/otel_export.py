"""Exports spans, and counts whether they arrive.

OpenTelemetry logs a record for each batch that it cannot send. Here these records are collected,
not printed, and the user is told once, when the run is over.
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
"""The loggers that report failed exports."""
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
        """Reports how many spans did not arrive, and why; nothing if all did."""
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
        outcome = self.exporter.export(spans)
        if outcome is SpanExportResult.SUCCESS:
            self.sent += len(spans)
        return outcome

    def shutdown(self) -> None:
        """Ends the exporter."""
        self.exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Flushes the exporter."""
        return bool(self.exporter.force_flush(timeout_millis))


class _Heard(logging.Handler):
    """Keeps the last reason that was logged; one with an exception is preferred."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.reason = ""
        self._of_fault = False

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps what is told."""
        fault = next(_faults(record), None)
        if fault is None and self._of_fault:
            return
        message = record.getMessage() if fault is None else _words(_innermost(fault))
        self.reason, self._of_fault = " ".join(message.split())[:MAX_REASON], fault is not None


_HEARD = _Heard()


def _faults(record: logging.LogRecord) -> Iterator[BaseException]:
    """The exceptions that a record is of."""
    if isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
        yield record.exc_info[1]
    if isinstance(record.args, tuple):
        yield from (argument for argument in record.args if isinstance(argument, BaseException))


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
    """Follows the causes of an exception to the first, up to a limit, for they may be circular."""
    for _ in range(9):
        inner = fault.__cause__ or fault.__context__
        if inner is None:
            break
        fault = inner
    return fault
