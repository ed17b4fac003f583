"""Each form in which a dialect says the same: versions of conventions, envelopes, libraries."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.data.traces import TraceReader
from toolshift.data.traces.messages import read_messages, read_tools
from toolshift.data.traces.spans import Span, ToolRun, numbered, seconds

Attributes = dict[str, Any]
ARGUMENTS = {"city": "Oslo"}
WRITTEN = json.dumps(ARGUMENTS)
RESULT = {"sky": "clear"}


def spans(*rows: dict[str, Any]) -> list[Span]:
    reader = TraceReader()
    return [span for row in rows for span in reader.read(row) or ()]


def flat(attributes: Attributes, name: str = "weather", **more: Any) -> dict[str, Any]:
    return {"name": name, "attributes": attributes, "start_time": "2026-01-01T00:00:00Z", **more}


def otlp(attributes: Attributes, name: str = "weather", **more: Any) -> dict[str, Any]:
    kinds = {str: "stringValue", bool: "boolValue", int: "intValue"}

    def value(told: Any) -> dict[str, Any]:
        if isinstance(told, list):
            return {"arrayValue": {"values": [value(each) for each in told]}}
        if isinstance(told, dict):
            pairs = [{"key": key, "value": value(inner)} for key, inner in told.items()]
            return {"kvlistValue": {"values": pairs}}
        return {kinds[type(told)]: str(told) if type(told) is int else told}

    listed = [{"key": key, "value": value(told)} for key, told in attributes.items()]
    span = {"name": name, "attributes": listed, **more}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


GEN_AI = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"}
TOOL_RUNS: dict[str, dict[str, Any]] = {
    "gen_ai": flat({**GEN_AI, "gen_ai.tool.call.arguments": WRITTEN,
                    "gen_ai.tool.call.result": json.dumps(RESULT)}),
    "gen_ai, as objects": flat({**GEN_AI, "gen_ai.tool.call.arguments": ARGUMENTS,
                                "gen_ai.tool.call.result": RESULT}),
    "gen_ai, in OTLP": otlp({**GEN_AI, "gen_ai.tool.call.arguments": ARGUMENTS,
                             "gen_ai.tool.call.result": RESULT}),
    "gen_ai, nested": flat({"gen_ai": {"operation": {"name": "execute_tool"}, "tool": {
        "name": "weather", "call": {"arguments": ARGUMENTS, "result": RESULT}}}}),
    "MCP": flat({"mcp.method.name": "tools/call", "gen_ai.tool.name": "weather",
                 "gen_ai.tool.call.arguments": WRITTEN, "gen_ai.tool.call.result": json.dumps(
                     {"content": [{"type": "text", "text": json.dumps(RESULT)}]})}),
    "Pydantic AI": flat({**GEN_AI, "tool_arguments": WRITTEN, "tool_response": RESULT}),
    "Strands": flat(GEN_AI, events=[
        {"name": "gen_ai.tool.message", "attributes": {"content": WRITTEN}},
        {"name": "gen_ai.choice", "attributes": {"message": json.dumps(RESULT)}}]),
    "Pydantic AI, before the operations": flat({"gen_ai.tool.name": "weather",
        "tool_arguments": WRITTEN, "tool_response": RESULT}, "running tool"),
    "OpenInference of LlamaIndex": flat({"openinference.span.kind": "TOOL", "tool.name": "weather",
        "input.value": json.dumps({"args": [], "kwargs": ARGUMENTS}),
        "output.value": str(RESULT)}),
    "OpenLLMetry": flat({"traceloop.span.kind": "tool", "traceloop.entity.name": "weather",
        "traceloop.entity.input": json.dumps({"args": [], "kwargs": ARGUMENTS}),
        "traceloop.entity.output": json.dumps(RESULT)}, "weather.tool"),
    "OpenInference": flat({"openinference.span.kind": "TOOL", "tool.name": "weather",
                           "input.value": WRITTEN, "output.value": json.dumps(RESULT)}),
    "OpenInference of LangChain": flat({"openinference.span.kind": "TOOL",
        "input.value": str(ARGUMENTS), "output.value": json.dumps(
            {"type": "tool", "content": json.dumps(RESULT), "tool_call_id": "c1"})}),
    "the AI SDK": flat({"ai.operationId": "ai.toolCall", "ai.toolCall.name": "weather",
        "ai.toolCall.args": WRITTEN, "ai.toolCall.result": json.dumps(RESULT)}, "ai.toolCall"),
    "two dialects": flat({"openinference.span.kind": "TOOL", "input.value": WRITTEN, **GEN_AI,
                          "output.value": json.dumps(RESULT)}),
    "Langfuse": {"id": "o", "traceId": "t", "type": "TOOL", "name": "weather", "level": "DEFAULT",
                 "startTime": "2026-01-01T00:00:00Z", "input": ARGUMENTS, "output": RESULT},
    "Langfuse, as texts": {"id": "o", "trace_id": "t", "type": "TOOL", "name": "weather",
                           "input": WRITTEN, "output": json.dumps(RESULT)},
    "Langfuse, in a trace": {"id": "t", "projectId": "p", "observations": [
        {"id": "o", "type": "TOOL", "name": "weather", "input": ARGUMENTS, "output": RESULT}]},
    "LangSmith": {"id": "r", "run_type": "tool", "name": "weather", "inputs": ARGUMENTS,
                  "outputs": RESULT},
    "LangSmith of LangChain": {"id": "r", "run_type": "tool", "name": "weather",
        "inputs": {"input": str(ARGUMENTS)}, "outputs": {"output": {"lc": 1, "type": "constructor",
            "id": ["langchain", "schema", "messages", "ToolMessage"],
            "kwargs": {"content": json.dumps(RESULT), "tool_call_id": "c1"}}}},
    "LangSmith, inside of a run": {"runs": [{"id": "q", "run_type": "chain", "inputs": {},
        "child_runs": [{"id": "r", "run_type": "tool", "name": "weather", "inputs": ARGUMENTS,
                        "outputs": RESULT}]}]},
    "MLflow": {"info": {"trace_id": "t"}, "data": {"spans": [{"name": "weather", "span_id": "s",
        "attributes": {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": WRITTEN,
                       "mlflow.spanOutputs": json.dumps(RESULT)}}]}},
    "Phoenix, a table": {"context.span_id": "s", "name": "weather", "span_kind": "TOOL",
        "attributes.input.value": WRITTEN, "attributes.output.value": json.dumps(RESULT)},
}  # fmt: skip


@pytest.mark.parametrize("form", TOOL_RUNS)
def test_a_call_is_read_from_every_form(form: str) -> None:
    runs = [span.run for span in spans(TOOL_RUNS[form]) if span.run is not None]
    assert [msg_of(run) for run in runs] == [("weather", ARGUMENTS, RESULT)]


def msg_of(run: ToolRun) -> tuple[str, Any, Any]:
    return run.tool, run.arguments, run.result


def test_a_status_of_the_tool_says_that_it_failed() -> None:
    (span,) = spans(flat({**GEN_AI, "gen_ai.tool.status": "error"}))
    assert span.run is not None
    assert span.run.failed is True


SAID = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Oslo?"},
    {"role": "assistant", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": WRITTEN}}]},
    {"role": "tool", "tool_call_id": "c1", "content": json.dumps(RESULT)},
]  # fmt: skip
REPLY = {"role": "assistant", "content": "Clear."}


def events(place: str) -> list[dict[str, Any]]:
    told = [(f"gen_ai.{message['role']}.message", {**message, "id": message.get("tool_call_id")})
            for message in SAID]  # fmt: skip
    told.append(("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": REPLY}))
    if place == "log":
        return [
            {"body": body, "attributes": {}, "event_name": name, "trace_id": "t", "span_id": "s"}
            for name, body in told
        ]
    flat_ = [(name, {k: v if isinstance(v, str) else json.dumps(v) for k, v in body.items()})
             for name, body in told]  # fmt: skip
    return [{"name": name, "attributes": body} for name, body in flat_]


PARTS = [
    {"role": "user", "parts": [{"type": "text", "content": "Oslo?"}]},
    {"role": "assistant", "parts": [
        {"type": "tool_call", "id": "c1", "name": "weather", "arguments": ARGUMENTS}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": RESULT}]},
]  # fmt: skip
ANSWERED = [{"role": "assistant", "parts": [{"type": "text", "content": "Clear."}],
             "finish_reason": "stop"}]  # fmt: skip
BRIEF = [{"type": "text", "content": "Be brief."}]
CURRENT = {"gen_ai.operation.name": "chat", "gen_ai.system_instructions": json.dumps(BRIEF),
           "gen_ai.input.messages": json.dumps(PARTS),
           "gen_ai.output.messages": json.dumps(ANSWERED)}  # fmt: skip
OLD: Attributes = {}
for place, message in enumerate(SAID):
    OLD |= {f"gen_ai.prompt.{place}.{k}": v for k, v in message.items() if k != "tool_calls"}
OLD |= {"gen_ai.prompt.2.tool_calls.0.id": "c1", "gen_ai.prompt.2.tool_calls.0.name": "weather",
        "gen_ai.prompt.2.tool_calls.0.arguments": WRITTEN,
        "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "Clear.",
        "gen_ai.completion.0.finish_reason": "stop"}  # fmt: skip
TURNS: dict[str, list[dict[str, Any]]] = {
    "gen_ai 1.37": [flat(CURRENT)],
    "gen_ai 1.37, in OTLP": [otlp(CURRENT)],
    "gen_ai 1.37, an event": [flat({"gen_ai.operation.name": "chat"}, events=[
        {"name": "gen_ai.client.inference.operation.details", "attributes": CURRENT}])],
    "gen_ai 1.37, a log": [{"attributes": CURRENT, "body": None, "trace_id": "t", "span_id": "s",
                            "event_name": "gen_ai.client.inference.operation.details"}],
    "gen_ai 1.28, events": [flat({"gen_ai.operation.name": "chat"}, events=events("span"))],
    "gen_ai 1.28, logs": events("log"),
    "gen_ai 1.27": [flat({"gen_ai.system": "openai"}, events=[
        {"name": "gen_ai.content.prompt", "attributes": {"gen_ai.prompt": json.dumps(SAID)}},
        {"name": "gen_ai.content.completion",
         "attributes": {"gen_ai.completion": json.dumps([REPLY])}}])],
    "Azure AI, events": [flat({"gen_ai.system": "az.ai.inference", "gen_ai.operation.name": "chat"},
        events=[{"name": each["name"], "attributes": {"gen_ai.event.content": json.dumps(
            {k: json.loads(v) if k == "tool_calls" or (each["name"] == "gen_ai.choice" and k != (
                "finish_reason")) else v for k, v in each["attributes"].items()})}}
            for each in events("span")])],
    "ADK": [flat({"gen_ai.system": "gcp.vertex.agent",
        "gcp.vertex.agent.llm_request": json.dumps({
            "config": {"system_instruction": "Be brief."},
            "contents": [{"role": "user", "parts": [{"text": "Oslo?"}]},
            {"role": "model", "parts": [
                {"function_call": {"id": "c1", "name": "weather", "args": ARGUMENTS}}]},
            {"role": "user", "parts": [
                {"function_response": {"id": "c1", "name": "weather", "response": RESULT}}]}]}),
        "gcp.vertex.agent.llm_response": json.dumps(
            {"content": {"role": "model", "parts": [{"text": "Clear."}]}})}, "call_llm")],
    "OpenLLMetry": [flat(OLD)],
    "the AI SDK 4": [flat({"ai.operationId": "ai.streamText.doStream", "ai.response.text": "Clear.",
        "ai.response.finishReason": "stop", "ai.prompt.messages": json.dumps([
            SAID[0], {"role": "user", "content": [{"type": "text", "text": "Oslo?"}]},
            {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c1",
                                              "toolName": "weather", "args": ARGUMENTS}]},
            {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1",
                                         "toolName": "weather", "result": RESULT}]}])})],
    "LangSmith of LangChain": [{"id": "r", "run_type": "llm", "inputs": {"messages": [[
        {"lc": 1, "id": ["x", "SystemMessage"], "kwargs": {"content": "Be brief."}},
        {"lc": 1, "id": ["x", "HumanMessage"], "kwargs": {"content": "Oslo?", "type": "human"}},
        {"lc": 1, "id": ["x", "AIMessage"], "kwargs": {"content": "", "tool_calls": [
            {"name": "weather", "args": ARGUMENTS, "id": "c1", "type": "tool_call"}]}},
        {"lc": 1, "id": ["x", "ToolMessage"],
         "kwargs": {"content": json.dumps(RESULT), "tool_call_id": "c1"}}]]},
        "outputs": {"generations": [[{"text": "Clear.", "message": {
            "lc": 1, "id": ["x", "AIMessage"], "kwargs": {"content": "Clear."}}}]]}}],
    "Langfuse of Anthropic": [{"id": "o", "traceId": "t", "type": "GENERATION", "input": {
        "system": "Be brief.", "messages": [SAID[1],
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c1", "name": "weather", "input": ARGUMENTS}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": json.dumps(RESULT)}]}]},
        "output": {"role": "assistant", "content": [{"type": "text", "text": "Clear."}],
                   "stop_reason": "end_turn"}}],
    "MLflow of Gemini": [{"info": {}, "data": {"spans": [{"name": "m", "attributes": {
        "mlflow.spanType": '"LLM"', "mlflow.spanInputs": json.dumps({"system": "Be brief.",
            "contents": [{"role": "user", "parts": [{"text": "Oslo?"}]},
            {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "weather",
                                                         "args": ARGUMENTS}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "weather",
                                                            "response": RESULT}}]}]}),
        "mlflow.spanOutputs": json.dumps({"candidates": [
            {"content": {"role": "model", "parts": [{"text": "Clear."}]},
             "finishReason": "STOP"}]})}}]}}],
    "Langfuse of OpenAI Responses": [{"id": "o", "traceId": "t", "type": "GENERATION", "input": {
        "instructions": "Be brief.", "input": [SAID[1],
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": WRITTEN},
            {"type": "function_call_output", "call_id": "c1", "output": json.dumps(RESULT)}]},
        "output": {"output": [{"type": "message", "role": "assistant", "content": [
            {"type": "output_text", "text": "Clear."}]}]}}],
}  # fmt: skip


@pytest.mark.parametrize("form", TURNS)
def test_a_turn_of_a_model_is_read_from_every_form(form: str) -> None:
    (turn,) = [span.turn for span in spans(*TURNS[form]) if span.turn is not None]
    said = [(each.role, each.text, [(c.name, c.arguments, c.id) for c in each.calls],
             each.call_id, each.result) for each in turn.said]  # fmt: skip
    assert said == [
        ("system", "Be brief.", [], "", None),
        ("user", "Oslo?", [], "", None),
        ("assistant", "", [("weather", ARGUMENTS, "c1")], "", None),
        ("tool", "", [], "c1", RESULT),
    ]
    assert [(each.role, each.text) for each in turn.replied] == [("assistant", "Clear.")]


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest.mark.parametrize(
    "key", ["parameters", "inputSchema", "input_schema", "parametersJsonSchema"]
)
@given(wrapped=st.booleans(), text=st.booleans())
def test_tools_are_read_from_every_provider(key: str, wrapped: bool, text: bool) -> None:
    tool: dict[str, Any] = {"name": "weather", key: SCHEMA}
    tool = {"type": "function", "function": tool} if wrapped else tool
    (read,) = read_tools([json.dumps(tool) if text else tool])
    assert (read["name"], read["inputSchema"]) == ("weather", SCHEMA)


KEYS = ("role", "content", "parts", "type", "tool_calls", "function", "name", "text", "arguments",
        "message", "kwargs", "lc", "id", "result")  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(JSON)
def test_no_message_of_any_form_ends_the_reading(value: Any) -> None:
    read_messages(value)
    read_tools(value)
    for key in ("gen_ai.input.messages", "llm.input_messages", "ai.prompt.messages"):
        spans(flat({key: value, "gen_ai.system": "x"}))
    spans({"id": "r", "run_type": "llm", "inputs": value, "outputs": value})


@given(st.dictionaries(st.integers(0, 30), st.text(max_size=4), max_size=12))
def test_numbered_attributes_come_in_the_order_of_their_numbers(told: dict[int, str]) -> None:
    attributes = {f"llm.tools.{number}.x": text for number, text in told.items()}
    assert [each["x"] for each in numbered(attributes, "llm.tools")] == [
        told[number] for number in sorted(told)
    ]


def test_what_no_dialect_knows_is_kept_apart_from_what_says_nothing_of_tools() -> None:
    reader = TraceReader()
    assert reader.read(flat({"http.method": "GET"})) == []
    assert [raw.name for raw in reader.unknown] == ["weather"]
    (span,) = reader.read(flat({"openinference.span.kind": "CHAIN"})) or ()
    assert (span.run, span.turn, reader.unknown) == (None, None, [])
    assert reader.read({"messages": []}) is None


@pytest.mark.parametrize(
    "value", ["1" * 400, 1e300, float("nan"), float("inf"), -1e15, "0001x", []]
)
@pytest.mark.parametrize("nano", [True, False])
def test_what_is_no_moment_is_no_time(value: Any, nano: bool) -> None:
    assert seconds(value, nano) is None or abs(seconds(value, nano) or 0.0) < 1e12


def test_a_time_beyond_all_years_is_none() -> None:
    assert [seconds("9" * 400, nano) for nano in (True, False)] == [None, None]
    assert seconds("2026-03-04T05:06:07Z") == seconds(1772600767000)
