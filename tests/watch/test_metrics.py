"""What Prometheus is told, read over HTTP."""

from __future__ import annotations

import sys
import urllib.request

import pytest

from toolshift.core.errors import UsageError
from toolshift.drift.stream import Called, Ended, Event, Shown
from toolshift.watch.metrics import MAX_LABELS, OTHER, Metrics
from toolshift.watch.watch import Alarm


def scraped(metrics: Metrics) -> dict[str, float]:
    """The samples, by name and labels, as a scrape gets them."""
    end = metrics.serve(0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
    finally:
        end()
    samples = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in samples}


def test_a_scrape_has_counts_times_and_alarms() -> None:
    pytest.importorskip("prometheus_client")
    metrics = Metrics()
    events: list[Event] = [Shown([]), Called("get", {}, True, 20.0), Called("get", {}, False, 40.0)]
    for event in (*events, Called("put"), Ended(True), Ended(False)):
        metrics.observe(event)
    metrics.alarm(Alarm("errors_up", "get", "observation", "get: ...", 3))
    found = scraped(metrics)
    assert found["toolshift_events_total"] == 6
    assert found['toolshift_calls_total{tool="get"}'] == 2
    assert found['toolshift_call_errors_total{tool="get"}'] == 1
    assert found['toolshift_call_duration_seconds_sum{tool="get"}'] == pytest.approx(0.06)
    assert found["toolshift_conversations_total"] == 2
    assert found["toolshift_refusals_total"] == 1
    labels = 'dimension="observation",kind="errors_up",tool="get"'
    assert found[f"toolshift_alarms_total{{{labels}}}"] == 1


def test_labels_are_bounded_and_a_taken_port_is_said() -> None:
    pytest.importorskip("prometheus_client")
    metrics = Metrics()
    for number in range(MAX_LABELS + 50):
        metrics.observe(Called(f"tool_{number}"))
    assert scraped(metrics)[f'toolshift_calls_total{{tool="{OTHER}"}}'] == 50
    end = metrics.serve(0)
    try:
        with pytest.raises(UsageError, match="cannot listen"):
            Metrics().serve(metrics.port)
    finally:
        end()


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(UsageError, match=r"pip install .*\[metrics\]"):
        Metrics()
