"""What is watched as Prometheus metrics, through `prometheus_client`.

toolshift_events_total                        events of the stream
toolshift_calls_total{tool}                   calls
toolshift_call_errors_total{tool}             calls that failed
toolshift_call_duration_seconds{tool}         a histogram of how long calls took
toolshift_conversations_total                 endings
toolshift_refusals_total                      endings that were a refusal
toolshift_alarms_total{kind,tool,dimension}   alarms
toolshift_unread_total                        lines or spans that were not understood

Labels are bounded: of more than `MAX_LABELS` tools the further ones are counted as "(other)".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolshift.core.errors import UsageError
from toolshift.core.installation import extra
from toolshift.drift.stream import Called, Ended, Event
from toolshift.watch.watch import Alarm

MAX_LABELS = 200
OTHER = "(other)"


class Metrics:
    """Counts events and alarms for Prometheus.

    Raises:
        UsageError: where `prometheus_client` is not installed.
    """

    def __init__(self) -> None:
        try:
            import prometheus_client as client  # noqa: PLC0415 - an extra
        except ImportError:
            raise UsageError(f"--metrics needs an extra: {extra('metrics')}") from None
        self.registry: Any = client.CollectorRegistry()
        self._serve = client.start_http_server

        def made(kind: Any, name: str, says: str, *labels: str) -> Any:
            return kind(f"toolshift_{name}", says, labels, registry=self.registry)

        counter = client.Counter
        self._events = made(counter, "events", "Events of the stream")
        self._calls = made(counter, "calls", "Calls", "tool")
        self._errors = made(counter, "call_errors", "Calls that failed", "tool")
        self._times = made(client.Histogram, "call_duration_seconds", "Time of calls", "tool")
        self._endings = made(counter, "conversations", "Conversations that ended")
        self._refusals = made(counter, "refusals", "Conversations that ended in a refusal")
        self._alarms = made(counter, "alarms", "Alarms", "kind", "tool", "dimension")
        self._unread = made(counter, "unread", "Lines or spans that were not understood")
        self._tools: set[str] = set()

    def observe(self, event: Event) -> None:
        """Counts an event."""
        self._events.inc()
        if isinstance(event, Called):
            tool = self._label(event.tool)
            self._calls.labels(tool).inc()
            if event.ok is False:
                self._errors.labels(tool).inc()
            if event.ms is not None:
                self._times.labels(tool).observe(event.ms / 1000)
        elif isinstance(event, Ended):
            self._endings.inc()
            if event.refused:
                self._refusals.inc()

    def missed(self, count: int) -> None:
        """Counts lines or spans that were not understood."""
        self._unread.inc(count)

    def alarm(self, alarm: Alarm) -> None:
        """Counts an alarm."""
        tool = self._label(alarm.tool) if alarm.tool else ""
        self._alarms.labels(alarm.kind, tool, alarm.dimension).inc()

    def serve(self, port: int) -> Callable[[], None]:
        """Answers /metrics on the loopback interface."""
        try:
            server, thread = self._serve(port, addr="127.0.0.1", registry=self.registry)
        except OSError as fault:
            raise UsageError(f"--metrics {port}: cannot listen ({fault.strerror})") from None
        self.port: int = server.server_port

        def end() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return end

    def _label(self, tool: str) -> str:
        if tool in self._tools:
            return tool
        if len(self._tools) >= MAX_LABELS:
            return OTHER
        self._tools.add(tool)
        return tool
