"""Finished episodes as OpenTelemetry spans, in the words of its conventions for generative AI.

    invoke_agent NAME                 an episode: its tools, its request, its grade as an event
      chat NAME                       a turn of the agent
      execute_tool TOOL               a call

Nothing is made unless the program has a tracer provider: the user's own, or that of `set_up`. Only
whole episodes are timed, so the spans within stand in their order and have no length.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from itertools import groupby
from typing import Any

from toolshift.core.errors import UsageError
from toolshift.core.importing import load
from toolshift.core.installation import extra
from toolshift.core.message import ASK_USER, FINAL_ANSWER, REFUSE
from toolshift.core.names import unknown
from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.core.tool import as_openai
from toolshift.core.values import as_json, as_text
from toolshift.runs.cell import Cell, build
from toolshift.runs.run_folder import EpisodeListener, Record

SDK = "opentelemetry.sdk.trace"
MISSING = "--otel needs OpenTelemetry"
OURS = "toolshift"
"""The prefix of attributes that are not in the conventions."""
EXPORTERS = "opentelemetry_traces_exporter"
PROTOCOLS = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}
"""The protocols of OTLP, and the exporter of each."""
BROKEN = ("crashed", "infrastructure", "budget")
"""Ends of an episode that are errors of its span."""


def set_up() -> None:
    """Makes a tracer provider from the `OTEL_*` variables, if the program has none.

    `OTEL_TRACES_EXPORTER` names the exporter ("otlp" where it is not set, or "console", "none"),
    `OTEL_EXPORTER_OTLP_PROTOCOL` its protocol; the rest is read by OpenTelemetry itself.
    """
    try:
        from opentelemetry import trace  # noqa: PLC0415  an extra
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415  an extra
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  an extra

        sender = load("toolshift.runs.otel_export:Sender")
    except ImportError:
        raise UsageError(f"{MISSING}: {extra('otel')}") from None
    if isinstance(trace.get_tracer_provider(), TracerProvider):
        return
    named = Resource.create()
    if str(named.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        named = named.merge(Resource({SERVICE_NAME: "toolshift"}))
    try:
        provider = TracerProvider(resource=named)
        _SENDERS[:] = [sender(exporter, place) for exporter, place in _exporters()]
    except (ValueError, TypeError, OSError) as fault:
        raise UsageError(
            f"--otel: OpenTelemetry cannot read its OTEL_* variables: {fault}"
        ) from None
    for running in _SENDERS:
        provider.add_span_processor(running)
    trace.set_tracer_provider(provider)


_SENDERS: list[Any] = []
"""The span processors of the provider that was made here."""


def _exporters() -> Iterator[tuple[Any, str]]:
    """Each exporter, and where it sends to."""
    names = [n.strip() for n in (os.environ.get("OTEL_TRACES_EXPORTER") or "otlp").split(",")]
    known = {entry.name: entry for entry in entry_points(group=EXPORTERS)}
    for name in names:
        if name not in ("none", ""):
            named = _protocol() if name == "otlp" else name
            yield _exporter(named, known), _place(named)


def _said(*variables: str) -> tuple[str, str]:
    """The first of some variables that is set, and its value; ("", "") where none is."""
    settings = ((variable, os.environ.get(variable, "").strip()) for variable in variables)
    return next((pair for pair in settings if pair[1]), ("", ""))


def _protocol() -> str:
    """The exporter for the chosen OTLP protocol."""
    variable, protocol = _said("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    if not protocol:
        return PROTOCOLS["http/protobuf"]
    if protocol not in PROTOCOLS:
        raise UsageError(f"{variable}: {unknown('protocol', protocol, PROTOCOLS)}")
    return PROTOCOLS[protocol]


def _place(name: str) -> str:
    """The endpoint of an exporter, from OpenTelemetry's variables."""
    if name not in PROTOCOLS.values():
        return f"the exporter {name}"
    _, endpoint = _said("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    return endpoint or f"http://localhost:{4317 if name == PROTOCOLS['grpc'] else 4318}"


def _exporter(name: str, known: Mapping[str, Any]) -> Any:
    if name in known:
        return known[name].load()()
    if name.startswith("otlp_"):
        package = f"opentelemetry-exporter-{name.replace('_', '-')}"
        raise UsageError(f"{MISSING}: {extra('otel')}; this protocol is in {package}")
    message = unknown("exporter", name, [*known, "otlp", "none"])
    raise UsageError(f"OTEL_TRACES_EXPORTER: {message}")


def emitter(cells: Sequence[Cell]) -> EpisodeListener | None:
    """The function that makes spans of finished episodes; None without a tracer provider."""
    if SDK not in sys.modules:  # whoever has set up a provider has imported it
        return None
    from opentelemetry import trace  # noqa: PLC0415  an extra

    if not isinstance(trace.get_tracer_provider(), sys.modules[SDK].TracerProvider):
        return None
    by_id = {cell.id: cell for cell in cells}
    tracer = trace.get_tracer("toolshift")

    def told(records: Sequence[Record], seconds: Sequence[float]) -> None:
        for record, took in zip(records, seconds, strict=True):
            if record.cell in by_id:
                _Emitted(tracer, record, by_id[record.cell], took).emit()

    return told


def flush() -> None:
    """Sends what is still waiting, if there is a tracer provider; reports what was lost."""
    if SDK in sys.modules:
        from opentelemetry import trace  # noqa: PLC0415  an extra

        # One that is no SDK's has no such method.
        getattr(trace.get_tracer_provider(), "force_flush", bool)()
    for sender in _SENDERS:
        sender.tell()


class _Emitted:
    """Emits the spans of one episode."""

    def __init__(self, tracer: Any, record: Record, cell: Cell, took: float) -> None:
        self._tracer, self._record, self._cell = tracer, record, cell
        self._scene: Scene = build(cell)
        self._end = time.time_ns()
        self._start = self._end - int(took * 1e9)
        self._length = max(1, (self._end - self._start) // (2 * len(record.steps) + 2))
        self._at = self._start

    def emit(self) -> None:
        """Makes the spans of the episode."""
        from opentelemetry import trace  # noqa: PLC0415  an extra

        record = self._record
        whole = self._tracer.start_span(
            f"invoke_agent {record.agent}",
            attributes={**self._about(), **self._contents(self._asked())},
            start_time=self._start,
        )
        within = trace.set_span_in_context(whole)
        numbered = [
            (f"call_{number}", step)
            for number, step in enumerate(record.steps)
            if step.kind not in ("failure", "budget")
        ]
        for _, turn in groupby(numbered, key=lambda numbered_step: numbered_step[1].turn):
            self._turn(within, list(turn))
        if record.end in BROKEN:
            whole.set_attribute("error.type", record.end)
            whole.set_status(trace.StatusCode.ERROR, record.end)
        whole.add_event("gen_ai.evaluation.result", self._graded(), timestamp=self._end)
        whole.end(self._end)

    def _about(self) -> dict[str, Any]:
        record, cell = self._record, self._cell
        return {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": "toolshift",
            "gen_ai.agent.name": record.agent,
            "gen_ai.conversation.id": record.episode,
            "gen_ai.usage.input_tokens": record.usage.input_tokens,
            "gen_ai.usage.output_tokens": record.usage.output_tokens,
            "gen_ai.tool.definitions": as_json([_definition(t) for t in self._scene.tools]),
            f"{OURS}.cell": record.cell,
            f"{OURS}.task": cell.lineage,
            f"{OURS}.trial": cell.trial,
            f"{OURS}.shifts": cell.stack,
        }

    def _asked(self) -> dict[str, Any]:
        scene = self._scene
        return {
            "gen_ai.system_instructions": [_text(scene.system)],
            "gen_ai.input.messages": [{"role": "user", "parts": [_text(scene.asks[0].text)]}],
        }

    def _graded(self) -> dict[str, Any]:
        grade = self._record.grade
        label = "void" if grade.void else "passed" if grade.passed else "failed"
        attributes: dict[str, Any] = {"gen_ai.evaluation.name": "toolshift"}
        if not grade.void:  # says nothing of the agent
            attributes["gen_ai.evaluation.score.value"] = float(grade.passed)
        attributes["gen_ai.evaluation.score.label"] = label
        if grade.cause:
            attributes["gen_ai.evaluation.explanation"] = grade.cause
        return attributes

    def _turn(self, within: Any, turn: list[tuple[str, Step]]) -> None:
        """A turn of the agent, and its calls."""
        record, last = self._record, turn[-1][1]
        reason = {"answer": "stop", "refuse": "refusal"}.get(last.kind, "tool_calls")
        if last.kind == "ask" and last.prose:
            reason = "stop"
        parts = [part for name, step in turn for part in _parts(name, step)]
        message = {"role": "assistant", "parts": parts, "finish_reason": reason}
        contents = {"gen_ai.output.messages": [message]}
        if reason != "tool_calls":
            contents["gen_ai.input.messages"] = self._asked()["gen_ai.input.messages"]
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "toolshift",
            "gen_ai.request.model": record.agent,
            "gen_ai.conversation.id": record.episode,
            "gen_ai.response.finish_reasons": [reason],
        }
        self._span(within, f"chat {record.agent}", {**attributes, **self._contents(contents)})
        for name, step in turn:
            if step.kind == "call":
                self._call(within, name, step)

    def _call(self, within: Any, name: str, step: Step) -> None:
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.type": "function",
            "gen_ai.tool.name": step.name,
            "gen_ai.tool.call.id": name,
        }
        contents = {
            "gen_ai.tool.call.arguments": step.arguments,
            "gen_ai.tool.call.result": step.text,
        }
        error = "" if step.ok else step.error or "error"
        if error:
            attributes["error.type"] = error
        self._span(
            within, f"execute_tool {step.name}", {**attributes, **self._contents(contents)}, error
        )

    def _span(self, within: Any, name: str, attributes: dict[str, Any], error: str = "") -> None:
        from opentelemetry import trace  # noqa: PLC0415  an extra

        self._at += self._length
        span = self._tracer.start_span(
            name, context=within, attributes=attributes, start_time=self._at
        )
        if error:
            span.set_status(trace.StatusCode.ERROR, error)
        span.end(self._at)

    @staticmethod
    def _contents(contents: Mapping[str, Any]) -> dict[str, str]:
        """Texts and data as attributes; none if the user wants no contents in spans."""
        wanted = os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
        if wanted.lower() in ("false", "no_content", "event_only"):
            return {}
        return {name: as_text(one) for name, one in contents.items()}


def _parts(name: str, step: Step) -> list[dict[str, Any]]:
    """A step as the parts of a message."""
    if step.prose:
        return [_text(step.said)]
    if step.kind == "call":
        called = {"type": "tool_call", "id": name, "name": step.name, "arguments": step.arguments}
        return [*([_text(step.said)] if step.said else []), called]
    tool, key = {"ask": (ASK_USER, "question"), "refuse": (REFUSE, "reason")}.get(
        step.kind, (FINAL_ANSWER, "answer")
    )
    given = {key: step.name if step.kind == "refuse" else step.said}
    return [{"type": "tool_call", "id": name, "name": tool, "arguments": given}]


def _text(content: str) -> dict[str, str]:
    return {"type": "text", "content": content}


def _definition(tool: Any) -> dict[str, Any]:
    return {"type": "function", **as_openai(tool)["function"]}
