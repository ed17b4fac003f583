"""OpenTelemetry's conventions for generative AI and MCP, in the versions that libraries write.

| since | the messages of a model stand in |
|---|---|
| 2023 | `gen_ai.prompt.N.role`, `gen_ai.completion.N...` of OpenLLMetry |
| 1.27 | events `gen_ai.content.prompt` and `gen_ai.content.completion` inside of the span |
| 1.28 | events `gen_ai.user.message`, `gen_ai.choice` and such, in the span or in logs |
| 1.37 | `gen_ai.input.messages`, `gen_ai.output.messages`, `gen_ai.system_instructions` |
|      | of the span or of an event `gen_ai.client.inference.operation.details` |

A call of a tool is a span of the operation `execute_tool`, or of MCP's method `tools/call`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolshift.data.traces.messages import plain_result, read_messages, read_tools, turn_of
from toolshift.data.traces.otlp import BODY
from toolshift.data.traces.spans import (
    Attributes,
    ModelTurn,
    Raw,
    Said,
    Span,
    ToolRun,
    decoded,
    first_of,
    loose_arguments,
    numbered,
    objects,
    text_at,
)

NAME = "OpenTelemetry gen_ai"
MARKS = ("gen_ai.", "mcp.", "traceloop.", "llm.request.")
_MODEL = ("chat", "generate_content", "text_completion", "completion", "responses")
"""Operations of a model; every other one is of a tool, or of a whole agent."""
DETAILS = "gen_ai.client.inference.operation.details"
_EVENTS = ("system", "user", "assistant", "tool")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "gen_ai.tool.arguments", "tool_arguments",
    "gcp.vertex.agent.tool_call_args")  # fmt: skip
_ADK_REQUEST, _ADK_RESPONSE = "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"
"""Where Google's ADK has a whole request to Gemini, and its answer."""
_RESULTS = ("gen_ai.tool.call.result", "gen_ai.tool.result", "tool_response",
    "gcp.vertex.agent.tool_response")  # fmt: skip


def read(raw: Raw) -> Span | None:
    """What a span of these conventions says; None for a span of another."""
    attributes = _with_details(raw)
    if not any(key.startswith(MARKS) for key in attributes):
        return None
    operation = text_at(attributes, "gen_ai.operation.name")
    run = _run(raw, attributes, operation)
    if run is not None:
        return Span(raw, NAME, run=run)
    turn = _turn(raw, attributes)
    if turn == ModelTurn():
        return Span(raw, NAME)
    agent = bool(operation) and operation.lower() not in _MODEL
    return Span(raw, NAME, turn=turn, agent=agent)


def _with_details(raw: Raw) -> Attributes:
    """The attributes of a span, and of the event in it that has the messages."""
    more = [attributes for name, attributes in raw.events if name == DETAILS]
    return {**more[0], **raw.attributes} if more else raw.attributes


# -- calls of tools --------------------------------------------------------------------------------


def _run(raw: Raw, attributes: Attributes, operation: str) -> ToolRun | None:
    executes = operation == "execute_tool"
    called = executes or attributes.get("mcp.method.name") == "tools/call"
    if not operation and "gen_ai.request.model" not in attributes:  # as Pydantic AI had them
        called = called or bool(text_at(attributes, "gen_ai.tool.name"))
    if text_at(attributes, "traceloop.span.kind") == "tool":
        return _traceloop(raw, attributes)
    if not called:
        return None
    name = text_at(attributes, "gen_ai.tool.name", "mcp.tool.name")
    name = name or raw.name.removeprefix("execute_tool ").removeprefix("tools/call ")
    events = dict(raw.events)
    arguments = loose_arguments(first_of(attributes, *_ARGUMENTS))
    if arguments is None and "gen_ai.tool.message" in events:  # as Strands has them
        arguments = loose_arguments(events["gen_ai.tool.message"].get("content"))
    result = first_of(attributes, *_RESULTS)
    if result is None and "gen_ai.choice" in events:
        result = events["gen_ai.choice"].get("message")
    bad = "error.type" in attributes or attributes.get("gen_ai.tool.status") == "error"
    failed = True if bad else raw.failed
    number = text_at(attributes, "gen_ai.tool.call.id")
    return ToolRun(name, arguments, plain_result(result), failed, number)


def _traceloop(raw: Raw, attributes: Attributes) -> ToolRun:
    """A tool of OpenLLMetry: the arguments of its function, or the input of LangChain."""
    given = decoded(attributes.get("traceloop.entity.input"))
    told = decoded(attributes.get("traceloop.entity.output"))
    if isinstance(given, Mapping):
        inner = first_of(given, "kwargs", "inputs", "input_str")
        given = given if inner is None else inner
    if isinstance(told, Mapping) and "output" in told:
        told = told["output"]
    name = text_at(attributes, "traceloop.entity.name") or raw.name.removesuffix(".tool")
    return ToolRun(name, loose_arguments(given), plain_result(told), raw.failed)


# -- turns of models -------------------------------------------------------------------------------


def _turn(raw: Raw, attributes: Attributes) -> ModelTurn:
    if _ADK_REQUEST in attributes:
        return turn_of(attributes[_ADK_REQUEST], attributes.get(_ADK_RESPONSE))
    tools = read_tools(attributes.get("gen_ai.tool.definitions")) or _older_tools(attributes)
    said = read_messages(attributes.get("gen_ai.input.messages"))
    replied = read_messages(attributes.get("gen_ai.output.messages"))
    if not said and not replied:
        said, replied = _older_messages(raw, attributes)
    system = attributes.get("gen_ai.system_instructions")
    if system is not None and not any(each.role == "system" for each in said):
        told = read_messages([{"role": "system", "parts": decoded(system)}])
        said = (*told, *said)
    listed = attributes.get("gen_ai.response.finish_reasons")
    reasons = [listed] if isinstance(listed, str) else listed if isinstance(listed, list) else []
    reasons = reasons or [
        each["finish_reason"]
        for each in objects(attributes.get("gen_ai.output.messages"))
        if each.get("finish_reason")
    ]
    spoken = tuple(each for each in replied if each.role == "assistant")
    return ModelTurn(tools, said, spoken, tuple(map(str, reasons)))


def _older_tools(attributes: Attributes) -> tuple[dict[str, Any], ...]:
    """The tools of OpenLLMetry, and of Pydantic AI."""
    functions = numbered(attributes, "llm.request.functions")
    parameters = decoded(attributes.get("model_request_parameters"))
    if not functions and isinstance(parameters, Mapping):
        return read_tools(parameters.get("function_tools"))
    return read_tools(functions)


def _older_messages(raw: Raw, attributes: Attributes) -> tuple[tuple[Said, ...], tuple[Said, ...]]:
    """What was said and replied, by the conventions before 1.37."""
    told = [(name, inside) for name, inside in raw.events]
    told += [(text_at(e, "event.name"), e) for e in objects(attributes.get("events"))]
    said, replied = read_events(told)
    if said or replied:
        return said, replied
    for name, inside in raw.events:
        if name == "gen_ai.content.prompt":
            said = read_messages(inside.get("gen_ai.prompt"))
        elif name == "gen_ai.content.completion":
            replied = read_messages(inside.get("gen_ai.completion"))
    said = said or _numbered(attributes, "gen_ai.prompt")
    return said, replied or _numbered(attributes, "gen_ai.completion")


def _numbered(attributes: Attributes, prefix: str) -> tuple[Said, ...]:
    messages = []
    for message in numbered(attributes, prefix):
        calls = numbered(message, "tool_calls")
        messages.append({**message, "tool_calls": calls} if calls else message)
    return read_messages(messages)


def read_events(
    told: Iterable[tuple[str, Attributes]],
) -> tuple[tuple[Said, ...], tuple[Said, ...]]:
    """What was said and what was replied, of events for one message each."""
    said: list[Said] = []
    replied: list[Said] = []
    for name, inside in told:
        role = name.removeprefix("gen_ai.").removesuffix(".message")
        body = inside.get(BODY, decoded(inside.get("gen_ai.event.content")))  # the latter of Azure
        message = dict(body) if isinstance(body, Mapping) else dict(inside)
        if name == "gen_ai.choice":
            inner = decoded(message.get("message"))
            message = dict(inner) if isinstance(inner, Mapping) else {**message, "content": inner}
            replied += read_messages([{"role": "assistant", **message}])
        elif role in _EVENTS and name == f"gen_ai.{role}.message":
            said += read_messages([{"role": role, **message}])
    return tuple(said), tuple(each for each in replied if each.role == "assistant")


def of_records(records: list[Raw]) -> Span:
    """The turn of a model that some records of a log tell, one message each."""
    said, replied = read_events([(each.name, each.attributes) for each in records])
    reasons = [
        str(body["finish_reason"])
        for each in records
        if isinstance(body := each.attributes.get(BODY), Mapping) and body.get("finish_reason")
    ]
    return Span(records[-1], NAME, turn=ModelTurn((), said, replied, tuple(reasons)))
