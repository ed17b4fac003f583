"""OpenInference, as Phoenix, LlamaIndex, CrewAI, Bedrock and many exporters write it.

`openinference.span.kind` says what a span is: `TOOL` a call, `LLM` a turn of a model. Messages and
tools are numbered attributes (`llm.input_messages.0.message.role`), or lists in what Phoenix gives.
"""

from __future__ import annotations

from typing import Any

from toolshift.data.traces.messages import plain_result, read_messages, read_tools, turn_of
from toolshift.data.traces.spans import (
    Attributes,
    ModelTurn,
    Raw,
    Said,
    Span,
    ToolRun,
    decoded,
    loose_arguments,
    numbered,
    text_at,
)

NAME = "OpenInference"
MARKS = ("openinference.", "llm.input_messages", "llm.output_messages", "llm.tools")


def read(raw: Raw) -> Span | None:
    """What a span of OpenInference says; None for a span of another convention."""
    attributes = raw.attributes
    kind = text_at(attributes, "openinference.span.kind").upper()
    if kind == "TOOL":
        return Span(raw, NAME, run=_run(raw, attributes))
    if kind == "LLM" or (not kind and any(key.startswith(MARKS) for key in attributes)):
        return Span(raw, NAME, turn=_turn(attributes))
    return Span(raw, NAME) if kind else None


def _run(raw: Raw, attributes: Attributes) -> ToolRun:
    name = text_at(attributes, "tool.name", "tool_call.function.name") or raw.name
    given = loose_arguments(attributes.get("input.value"))
    for key in ("tool_call.function.arguments", "tool.parameters"):
        given = given if given is not None else loose_arguments(attributes.get(key))
    if given and given.keys() <= {"args", "kwargs"} and not given.get("args"):
        bound = given.get("kwargs")  # of a function of Python's, as LlamaIndex calls it
        given = bound if isinstance(bound, dict) else given
    number = text_at(attributes, "tool.id", "tool_call.id")
    return ToolRun(name, given, plain_result(attributes.get("output.value")), raw.failed, number)


def _turn(attributes: Attributes) -> ModelTurn:
    listed = numbered(attributes, "llm.tools")
    tools = read_tools([decoded(_inner(each, "tool").get("json_schema")) for each in listed])
    said = _messages(attributes, "llm.input_messages")
    replied = _messages(attributes, "llm.output_messages")
    raw = turn_of(attributes.get("input.value"), attributes.get("output.value"))
    reason = text_at(attributes, "llm.finish_reason")
    return ModelTurn(
        tools or raw.tools,
        said or raw.said,
        replied or raw.replied,
        (reason,) if reason else raw.reasons,
    )


def _inner(flat: Attributes, name: str) -> dict[str, Any]:
    """The attributes of a numbered thing without the name that stands before each of them."""
    return {key.removeprefix(f"{name}."): value for key, value in flat.items()}


def _messages(attributes: Attributes, prefix: str) -> tuple[Said, ...]:
    messages = []
    for flat in numbered(attributes, prefix):
        message = _inner(flat, "message")
        parts = [_inner(each, "message_content") for each in numbered(message, "contents")]
        calls = [_call(_inner(each, "tool_call")) for each in numbered(message, "tool_calls")]
        kept = {
            k: v for k, v in message.items() if k in ("role", "content", "name", "tool_call_id")
        }
        if parts and not kept.get("content"):
            kept["content"] = parts
        messages.append({**kept, "tool_calls": calls})
    return read_messages(messages)


def _call(flat: Attributes) -> dict[str, Any]:
    name, arguments = flat.get("function.name"), flat.get("function.arguments")
    return {"id": flat.get("id"), "function": {"name": name, "arguments": arguments}}
