"""The spans of the Vercel AI SDK up to version 6; version 7 writes those of OpenTelemetry.

`ai.operationId` says what a span is: `ai.toolCall`, the request to a model (`...doGenerate`,
`...doStream`), or the whole of it (`ai.generateText`, `ai.streamText`), which tells the same again.
"""

from __future__ import annotations

from toolshift.data.traces.messages import plain_result, read_messages, read_tools
from toolshift.data.traces.spans import (
    ModelTurn,
    Raw,
    Span,
    ToolRun,
    arguments_of,
    decoded,
    first_of,
    objects,
    text_at,
)

NAME = "the Vercel AI SDK"
MARKS = ("ai.operationId", "ai.toolCall.", "ai.prompt", "ai.response.", "ai.model.")


def read(raw: Raw) -> Span | None:
    """What a span of the AI SDK says; None for a span of another convention."""
    attributes = raw.attributes
    if not any(key.startswith(MARKS) for key in attributes):
        return None
    operation = text_at(attributes, "ai.operationId", "operation.name").partition(" ")[0]
    name = text_at(attributes, "ai.toolCall.name")
    if name:
        given = arguments_of(first_of(attributes, "ai.toolCall.args", "ai.toolCall.input"))
        told = first_of(attributes, "ai.toolCall.result", "ai.toolCall.output")
        number = text_at(attributes, "ai.toolCall.id")
        return Span(raw, NAME, run=ToolRun(name, given, plain_result(told), raw.failed, number))
    turn = _turn(raw)
    inner = operation.endswith((".doGenerate", ".doStream"))
    return Span(raw, NAME, turn=turn, agent=not inner) if turn != ModelTurn() else Span(raw, NAME)


def _turn(raw: Raw) -> ModelTurn:
    attributes = raw.attributes
    prompt = decoded(attributes.get("ai.prompt"))
    given = attributes.get("ai.prompt.messages")
    if given is None and isinstance(prompt, dict):
        system = [{"role": "system", "content": prompt["system"]}] if prompt.get("system") else []
        asked = prompt.get("messages", prompt.get("prompt"))
        one = [{"role": "user", "content": asked}] if isinstance(asked, str) else objects(asked)
        given = [*system, *one]
    text = first_of(attributes, "ai.response.text", "ai.result.text")
    calls = objects(first_of(attributes, "ai.response.toolCalls", "ai.result.toolCalls"))
    replied = read_messages([{"role": "assistant", "content": text or "", "tool_calls": calls}])
    reason = first_of(attributes, "ai.response.finishReason", "ai.finishReason")
    answered = text is not None or bool(calls)
    return ModelTurn(
        read_tools(attributes.get("ai.prompt.tools")),
        read_messages(given),
        replied if answered else (),
        (str(reason),) if reason else (),
    )
