"""Writes trace files with the real libraries, against the scripted model of `shop.py`.

    python -m venv v && v/bin/pip install openai opentelemetry-sdk \
        opentelemetry-instrumentation-openai-v2 openinference-instrumentation-openai langfuse \
        langsmith mlflow-skinny
    v/bin/python make.py WHAT OUT       # WHAT: a function below
    p/bin/python make.py phoenix OUT    # with arize-phoenix: starts its server and asks it

The SDK of OpenTelemetry writes messages of gen_ai into logs here (`gen_ai_events`); spans with
messages in their attributes are those of the AI SDK 7 (`ai_sdk.mjs`).

Nothing is sent to anybody else: the libraries are pointed to this process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from shop import REQUESTS, call_tool, converse, serve_model


def _client() -> Any:
    from openai import OpenAI

    return OpenAI(base_url=serve_model(), api_key="none")


def _provider() -> tuple[Any, Any]:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    return provider, memory


def _lines(rows: Iterable[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _dumped(memory: Any) -> list[Any]:
    return [json.loads(span.to_json()) for span in memory.get_finished_spans()]


def gen_ai(events: bool = False) -> str:
    """Spans of OpenTelemetry, with messages as attributes, or as events in logs."""
    if not events:
        os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    capture = "true" if events else "SPAN_ONLY"
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = capture
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

    provider, memory = _provider()
    logs = InMemoryLogRecordExporter()
    logger = LoggerProvider()
    logger.add_log_record_processor(SimpleLogRecordProcessor(logs))
    OpenAIInstrumentor().instrument(tracer_provider=provider, logger_provider=logger)
    client, tracer = _client(), provider.get_tracer("shop")

    for request in REQUESTS:
        with tracer.start_as_current_span("invoke_agent shop"):
            converse(client, request)
    if events:
        return _lines(json.loads(each.to_json(indent=None)) for each in logs.get_finished_logs())
    return _lines(_dumped(memory))


def _traced_by_openinference(provider: Any) -> None:
    from openinference.instrumentation import OITracer, TraceConfig
    from openinference.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)
    client = _client()
    tracer = OITracer(provider.get_tracer("shop"), config=TraceConfig())
    for request in REQUESTS:
        with tracer.start_as_current_span("shop", openinference_span_kind="agent") as agent:
            agent.set_input(request)

            def run_tool(name: str, arguments: dict[str, Any]) -> Any:
                with tracer.start_as_current_span(name, openinference_span_kind="tool") as span:
                    span.set_tool(name=name, parameters={})
                    span.set_input(arguments)
                    result = call_tool(name, arguments)
                    span.set_output(result)
                    return result

            agent.set_output(converse(client, request, run_tool))


def openinference() -> str:
    """Spans of OpenInference as its SDK prints them."""
    provider, memory = _provider()
    _traced_by_openinference(provider)
    return _lines(_dumped(memory))


def phoenix() -> str:
    """What Phoenix gives back of such spans."""
    port = "16006"
    environment = {
        **os.environ,
        "PHOENIX_PORT": port,
        "PHOENIX_GRPC_PORT": "14317",
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_DISABLE_AGENT_ASSISTANT": "true",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
        "PHOENIX_WORKING_DIR": "/tmp/phoenix",
    }
    server = subprocess.Popen(
        [sys.executable, "-m", "phoenix.server.main", "serve"], env=environment
    )
    try:
        import httpx

        for _ in range(120):
            try:
                httpx.get(f"http://127.0.0.1:{port}/healthz")
                break
            except httpx.HTTPError:
                time.sleep(1)
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from phoenix.client import Client

        provider = TracerProvider()
        exporter = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{port}/v1/traces")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        _traced_by_openinference(provider)
        time.sleep(5)
        client = Client(base_url=f"http://127.0.0.1:{port}")
        spans = client.spans.get_spans(project_identifier="default", limit=1000)
        frame = client.spans.get_spans_dataframe(project_identifier="default", limit=1000)
        Path(sys.argv[2] + ".frame").write_text(
            frame.reset_index(drop=True).to_json(orient="records", lines=True, date_format="iso")
        )
        return _lines(spans)
    finally:
        server.terminate()


def langfuse() -> str:
    """The spans that the SDK of Langfuse exports by OpenTelemetry."""
    provider, memory = _provider()
    from langfuse import Langfuse
    from langfuse.openai import OpenAI

    host, _ = _collect()
    tracing = Langfuse(public_key="pk", secret_key="sk", host=host, tracer_provider=provider)
    client = OpenAI(base_url=serve_model(), api_key="none")
    for request in REQUESTS:
        with tracing.start_as_current_observation(
            as_type="agent", name="shop", input=request
        ) as agent:

            def run_tool(name: str, arguments: dict[str, Any]) -> Any:
                with tracing.start_as_current_observation(
                    as_type="tool", name=name, input=arguments
                ) as span:
                    result = call_tool(name, arguments)
                    span.update(output=result)
                    return result

            agent.update(output=converse(client, request, run_tool))
    return _lines(_dumped(memory))


def _collect() -> tuple[str, list[tuple[str, str, Any]]]:
    """A server that takes everything; its address, and what it was sent."""
    sent: list[tuple[str, str, Any]] = []

    class Server(BaseHTTPRequestHandler):
        def _take(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                sent.append((self.command, self.path, json.loads(raw)))
            except ValueError:
                sent.append((self.command, self.path, None))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_POST = do_PATCH = _take

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}", sent


def langsmith() -> str:
    """The runs that the SDK of LangSmith sends, each with what it is sent at its end."""
    os.environ["LANGSMITH_TRACING"] = "true"
    from langsmith import Client, traceable, tracing_context
    from langsmith.wrappers import wrap_openai

    host, sent = _collect()
    tracing = Client(api_url=host, api_key="none", auto_batch_tracing=False)
    client = wrap_openai(_client())

    def run_tool(name: str, arguments: dict[str, Any]) -> Any:
        return traceable(run_type="tool", name=name)(lambda **given: call_tool(name, given))(
            **arguments
        )

    @traceable(name="shop")
    def agent(request: str) -> str:
        return converse(client, request, run_tool)

    with tracing_context(enabled=True, client=tracing):
        for request in REQUESTS:
            agent(request)
    tracing.flush()
    time.sleep(2)
    runs: dict[str, dict[str, Any]] = {}
    for method, path, body in sent:
        if method == "POST" and body and "id" in body:
            runs.setdefault(body["id"], {}).update(body)
        elif method == "PATCH" and body:
            runs.setdefault(path.rpartition("/")[2], {}).update(body)
    return _lines(runs.values())


def mlflow() -> str:
    """The traces of MLflow as it writes them."""
    import mlflow as library

    library.set_tracking_uri("sqlite:////tmp/mlflow-traces.db")
    library.openai.autolog()
    client = _client()

    def run_tool(name: str, arguments: dict[str, Any]) -> Any:
        with library.start_span(name=name, span_type="TOOL") as span:
            span.set_inputs(arguments)
            result = call_tool(name, arguments)
            span.set_outputs(result)
            return result

    rows = []
    for request in REQUESTS:
        with library.start_span(name="shop", span_type="AGENT") as span:
            span.set_inputs({"request": request})
            span.set_outputs(converse(client, request, run_tool))
        library.flush_trace_async_logging()
        rows.append(json.loads(library.get_trace(span.trace_id).to_json()))
    return _lines(rows)


if __name__ == "__main__":
    makers = {
        "gen_ai": gen_ai,
        "gen_ai_events": lambda: gen_ai(events=True),
        "openinference": openinference,
        "phoenix": phoenix,
        "langfuse": langfuse,
        "langsmith": langsmith,
        "mlflow": mlflow,
    }
    Path(sys.argv[2]).write_text(makers[sys.argv[1]]())
