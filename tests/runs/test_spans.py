"""Episodes as OpenTelemetry spans, and that `lock` and `watch` read what a run has emitted."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolshift import evaluate
from toolshift.core.errors import UsageError
from toolshift.drift.lock import lock_side
from toolshift.drift.sources import calls_of, events_in, read_sources
from toolshift.drift.stream import Called, Ended
from toolshift.runs import spans
from toolshift.runs.cell import build
from toolshift.runs.run_folder import RunFolder

pytest.importorskip("opentelemetry.sdk.trace")
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import (
    ConsoleSpanExporter,
    SimpleSpanProcessor,
    SpanExportResult,
)

from toolshift.runs import otel_export

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@pytest.fixture
def emitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file to which spans go, one a line, while the test runs."""
    path = tmp_path / "spans.jsonl"
    with path.open("w") as file:
        provider = TracerProvider()
        lines = ConsoleSpanExporter(out=file, formatter=lambda s: s.to_json(indent=None) + "\n")
        provider.add_span_processor(SimpleSpanProcessor(lines))
        monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
        yield path


def run(agent: Any, out: Path | None = None, **more: Any) -> Any:
    selected = {"kinds": ["visit"], "tasks": 2, "shifts": ["identity_erasure:2"], **more}
    return evaluate(agent, out=out, **selected)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_episode_is_a_trace_with_its_turns_calls_and_grade(
    emitted: Path, tmp_path: Path
) -> None:
    run("oracle", tmp_path / "run")
    folder, found = RunFolder.read(tmp_path / "run"), read(emitted)
    records = {record.episode: record for record in folder.records()}
    whole = [one for one in found if one["name"] == "invoke_agent oracle"]
    assert {one["attributes"]["gen_ai.conversation.id"] for one in whole} == set(records)
    cells = {cell.id: cell for cell in folder.plan.cells}
    for one in whole:
        said, mine = one["attributes"], one["context"]["trace_id"]
        record = records[said["gen_ai.conversation.id"]]
        cell = cells[record.cell]
        assert said["toolshift.shifts"] == cell.stack
        tools = json.loads(said["gen_ai.tool.definitions"])
        assert [tool["name"] for tool in tools] == [tool.name for tool in build(cell).tools]
        within = [s for s in found if s["context"]["trace_id"] == mine and s["parent_id"]]
        assert {s["parent_id"] for s in within} == {one["context"]["span_id"]}
        calls = [s["attributes"] for s in within if s["name"].startswith("execute_tool ")]
        steps = [step for step in record.steps if step.kind == "call"]
        assert [
            (c["gen_ai.tool.name"], json.loads(c["gen_ai.tool.call.arguments"])) for c in calls
        ] == [(step.name, step.given) for step in steps]
        assert [c["gen_ai.tool.call.result"] for c in calls] == [step.text for step in steps]
        turns = {step.turn for step in record.steps}
        assert sum(s["name"] == "chat oracle" for s in within) == len(turns)
        (event,) = one["events"]
        assert event["name"] == "gen_ai.evaluation.result"
        assert event["attributes"]["gen_ai.evaluation.score.value"] == float(record.grade.passed)


def test_what_a_run_has_emitted_can_be_locked_and_watched(emitted: Path, tmp_path: Path) -> None:
    run("oracle", tmp_path / "run", shifts=["redirect:2"])
    of_spans = lock_side(read_sources([str(emitted)]))
    of_run = lock_side(read_sources([str(tmp_path / "run")]))
    known = {tool.document["name"]: tool for tool in of_spans.tools}
    for tool in of_run.tools:  # the shifted scenes show further ones
        assert known[tool.document["name"]] == tool
    records = list(RunFolder.read(tmp_path / "run").records())
    calls = [step for record in records for step in record.steps if step.kind == "call"]
    events = list(events_in(emitted))
    called = [event for event in events if isinstance(event, Called)]
    assert [(one.tool, one.ok) for one in called] == [(step.name, step.ok) for step in calls]
    assert not all(one.ok for one in called)
    assert sum(isinstance(event, Ended) for event in events) == len(records)
    assert len(calls_of(str(emitted)).made) == len(calls)


def refuses(messages: Any, tools: Any) -> Any:
    call = {"name": "refuse", "arguments": '{"reason": "not_found"}'}
    return {"tool_calls": [{"id": "1", "type": "function", "function": call}]}


def test_a_crash_is_an_error_and_a_refusal_a_refusal(emitted: Path) -> None:
    def broken(messages: Any, tools: Any) -> Any:
        if len(messages) > 2:
            raise ValueError("broken")
        called = {"name": tools[0]["function"]["name"], "arguments": '{"\\ud800": [1e999'}
        call = {"id": "1", "type": "function", "function": called}
        return {"role": "assistant", "content": "hm", "tool_calls": [call]}

    run(broken, tasks=1, shifts=["placebo"])
    whole = [one for one in read(emitted) if one["name"].startswith("invoke_agent")]
    assert {one["attributes"]["error.type"] for one in whole} == {"crashed"}
    assert {one["status"]["status_code"] for one in whole} == {"ERROR"}
    run(refuses, tasks=1, shifts=["placebo"])
    ended = [event for event in events_in(emitted) if isinstance(event, Ended)]
    assert ended
    assert all(event.refused for event in ended)


@pytest.mark.parametrize("said", ["NO_CONTENT", "EVENT_ONLY"])
def test_contents_stay_out_where_the_user_wants_none(
    said: str, emitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAPTURE, said)
    run("oracle", tasks=1)
    names = {name for one in read(emitted) for name in one["attributes"]}
    assert "gen_ai.tool.name" in names
    assert not names & {
        "gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.input.messages",
        "gen_ai.output.messages", "gen_ai.system_instructions",
    }  # fmt: skip


def test_without_a_provider_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    assert spans.emitter([]) is None
    monkeypatch.delitem(sys.modules, spans.SDK)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)  # importing it fails
    assert spans.emitter([]) is None
    spans.flush()


def test_the_switch_sets_up_what_the_variables_say(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(trace, "set_tracer_provider", made.append)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console, none")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    spans.set_up()
    (provider,) = made
    about = provider.resource.attributes
    assert (about["service.name"], about["deployment.environment"]) == ("toolshift", "test")
    (processor,) = provider._active_span_processor._span_processors
    assert isinstance(processor.span_exporter.exporter, ConsoleSpanExporter)
    provider.shutdown()
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    spans.set_up()
    assert made[1].resource.attributes["service.name"] == "mine"
    made[1].shutdown()


def test_an_exporter_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "consol")
    with pytest.raises(UsageError, match=r"consol.*console"):
        spans.set_up()


def test_without_opentelemetry_the_switch_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    with pytest.raises(UsageError, match=r"pip install '.*\[otel\]'"):
        spans.set_up()


class Entry:
    """An exporter as an entry point has it, whose class is given here."""

    def __init__(self, name: str, made: Any) -> None:
        self.name, self.made = name, made

    def load(self) -> Any:
        return self.made


@pytest.fixture
def switched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Sets up spans with an exporter of the test's own, which stands for OTLP over HTTP."""
    made: list[Any] = []
    monkeypatch.setattr(trace, "set_tracer_provider", made.append)
    monkeypatch.setattr(spans, "_SENDERS", [])
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)

    def set_up(exporter: Any) -> None:
        entries = [Entry("otlp_proto_http", exporter)]
        monkeypatch.setattr(spans, "entry_points", lambda group: entries)
        spans.set_up()
        monkeypatch.setattr(trace, "get_tracer_provider", lambda: made[-1])

    yield set_up
    for each in made:
        each.shutdown()
    for name in otel_export._LOGGERS:
        logging.getLogger(name).removeHandler(otel_export._HEARD)
        logging.getLogger(name).propagate = True


class Unreachable(ConsoleSpanExporter):
    """Tells of a connection that is refused as the exporter of OTLP does, and gives up."""

    def export(self, spans: Any) -> SpanExportResult:
        log = logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        try:
            raise ConnectionRefusedError(111, "Connection refused")
        except OSError as fault:
            log.warning("Transient error %s encountered, retrying in %.2fs.", fault, 0.9)
        log.error("Failed to export spans batch due to timeout, max retries or shutdown.")
        return SpanExportResult.FAILURE


class Breaks(ConsoleSpanExporter):
    def export(self, spans: Any) -> SpanExportResult:
        raise ValueError("Invalid URL 'foo': No scheme supplied")


@pytest.mark.parametrize(
    ("exporter", "reason"),
    [(Unreachable, "Connection refused"), (Breaks, "No scheme supplied")],
    ids=["unreachable", "breaks"],
)
def test_spans_that_cannot_be_sent_are_said_once_in_our_words(
    exporter: Any, reason: str, switched: Any, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str], tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:secret@127.0.0.1:9")
    switched(exporter)
    run("oracle", tmp_path / "run")
    err = capfd.readouterr().err
    (line,) = err.splitlines()
    assert "spans could not be sent to http://127.0.0.1:9 (" in line
    assert reason in line
    assert "Nothing of the run is lost" in line


def test_spans_that_arrive_are_not_told_of(
    switched: Any, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    class Arrives(ConsoleSpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    switched(Arrives)
    run("oracle", tmp_path / "run")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "foo", "unknown protocol 'foo'"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "did you mean http/protobuf"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "-4", "OTEL_* variables: max_queue_size"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "foo", "OTEL_* variables: no such compression"),
    ],
)
def test_a_variable_that_cannot_be_read_is_said(
    variable: str, value: str, said: str, switched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exporter() -> Any:
        if os.environ.get("OTEL_EXPORTER_OTLP_COMPRESSION"):
            raise ValueError("no such compression")
        return ConsoleSpanExporter()

    monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError, match=re.escape(said)):
        switched(exporter)
