"""Reads calls, tools and endings from existing traces.

    reader = Reader()
    for line in file:
        for event in reader.read(line):
            ...

A line is one of these; each is known by what is in it:

a call in a trace of the MCP proxy      {"tool": ..., "arguments": ..., "ok": ..., "ms": ...}
a list of tools in such a trace         {"listed": [...]}
a request in one of the model proxy     {"carried": [...], "spoken": [...]}
a conversation                          {"messages": [...], "tools": [...]}, or any format that
                                        `toolshift augment` reads
OpenTelemetry spans                     {"resourceSpans": [...]}, or one span with `attributes`

Of spans these are read: `gen_ai.tool.definitions`, `gen_ai.tool.name`, `mcp.method.name`,
`gen_ai.tool.call.arguments`, `gen_ai.tool.call.result`, `gen_ai.response.finish_reasons`,
`gen_ai.input.messages`, `error.type`, the status and the times. From line to line only this is
kept: whether client spans were seen, and what was read (`Reader.intake`).
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from toolshift.core.intake import Intake, check_read, no_text
from toolshift.data.conversation import Conversation, RowFault
from toolshift.data.formats import FORMATS, read_as, recognised
from toolshift.data.written_calls import CALLS_IN_TEXT, calls_in_text
from toolshift.interop.outcome import has_failed
from toolshift.shifts.release.inputs import Kind

REFUSE = "refuse"
"""The tool by which an agent refuses in our own protocol."""
_TOOL_METHODS = ("tools/call",)
_REFUSED = ("refusal", "content_filter")
_GOES_ON = frozenset(("tool_call", "tool_calls", "tool_use", "function_call"))
"""Finish reasons of a turn that calls a tool, of OpenTelemetry, OpenAI and Anthropic."""
_SERVER = (2, "SPAN_KIND_SERVER", "SpanKind.SERVER")
_SCHEMAS = ("parameters", "inputSchema", "input_schema")
"""Where OpenAI, MCP and Anthropic have the schema of a tool's arguments."""
_FAILED = (2, "STATUS_CODE_ERROR", "ERROR")


class Shown(msgspec.Struct, frozen=True):
    """The tools on offer, as an MCP server lists them."""

    tools: list[dict[str, Any]]
    kind: Kind = "mcp"


class Called(msgspec.Struct, frozen=True):
    """A call of a tool.

    Attributes:
        tool: its name.
        arguments: as they were given; None where the stream does not say.
        ok: whether it succeeded; None where the stream does not say.
        ms: how long it took, in milliseconds; None where the stream does not say.
        result: what came back; None where nothing is known of it.
    """

    tool: str
    arguments: dict[str, Any] | None = None
    ok: bool | None = None
    ms: float | None = None
    result: Any = None


class Ended(msgspec.Struct, frozen=True):
    """The end of a conversation.

    Attributes:
        refused: whether the agent or its model refused.
        asked: what the user wrote first; "" where the stream does not say.
    """

    refused: bool
    asked: str = ""


Event = Shown | Called | Ended


WANTED = "a call, a list of tools or the end of a conversation"
"""The forms that a line of a stream may have."""


def understood() -> str:
    """Names the forms that are read, for a message."""
    return (
        "These are read: traces of `toolshift proxy` and of the model proxy; conversations "
        f"({', '.join(FORMATS.names())}); OpenTelemetry spans with attributes gen_ai.* or mcp.*"
    )


class Reader:
    """Reads the lines of a stream, and keeps how much of it was understood.

    Args:
        source: how messages name the stream.
    """

    def __init__(self, source: str = "the stream") -> None:
        self.intake = Intake(source, "line")
        self._clients = False
        self._line = 0

    def read(self, line: bytes) -> list[Event]:
        """The events of a line."""
        self._line += 1
        line = line.removeprefix(BOM_UTF8)
        if not line.strip():
            return []
        try:
            return self._read(_object(line), line)
        except RowFault as fault:
            self._missed(str(fault), line)
            raise

    def check(self) -> None:
        """Checks that something was read."""
        check_read(self.intake, WANTED, understood())

    def _missed(self, why: str, raw: bytes | str) -> None:
        self.intake = self.intake.missed(f"line {self._line}", why, raw)

    def _read(self, row: Mapping[str, Any], line: bytes) -> list[Event]:
        """The events of a row; spans are counted one by one, everything else as a line."""
        spans = _spans_of(row)
        if spans is not None:
            self.intake = msgspec.structs.replace(self.intake, unit="span")
            return [event for span in spans for event in self._counted_span(span)]
        conversation = _conversation(row)
        events = list(_events(row) if conversation is None else conversed(conversation, row))
        if conversation is not None and calls_in_text(conversation):
            self._missed(CALLS_IN_TEXT, line)
        else:
            self.intake = self.intake.took() if events else self.intake.passed()
        return events

    def _counted_span(self, span: Mapping[str, Any]) -> list[Event]:
        """The events of a span, which is also counted."""
        events = list(self._span(span))
        attributes = _attributes(span.get("attributes"))
        if events:
            self.intake = self.intake.took()
        elif any(key.startswith(_READ_OF_SPANS) for key in attributes):
            self.intake = self.intake.passed()  # such as a turn of a model that goes on to call
        else:
            self._missed(_foreign(attributes), str(span.get("name", "")))
        return events

    def _span(self, span: Mapping[str, Any]) -> Iterator[Event]:
        attributes = _attributes(span.get("attributes"))
        definitions = _decoded(attributes.get("gen_ai.tool.definitions"))
        if isinstance(definitions, list):
            listed = [_as_listed(item) for item in _objects(definitions)]
            # a tool of the provider's own, such as web search, has a type and no name
            yield Shown([item for item in listed if isinstance(item.get("name"), str)], "openai")
        name = attributes.get("gen_ai.tool.name")
        calls = attributes.get("gen_ai.operation.name") == "execute_tool"
        if isinstance(name, str) and (calls or attributes.get("mcp.method.name") in _TOOL_METHODS):
            served = span.get("kind") in _SERVER
            self._clients = self._clients or not served
            if not (served and self._clients):  # the client's span tells of the same call
                yield _traced(span, attributes, name)
        reasons = attributes.get("gen_ai.response.finish_reasons")
        if isinstance(reasons, list) and _GOES_ON.isdisjoint(map(str, reasons)):
            request = _asked(_decoded(attributes.get("gen_ai.input.messages")))
            yield Ended(any(item in _REFUSED for item in reasons), request)


def _object(line: bytes) -> Mapping[str, Any]:
    """The JSON object of a line."""
    try:
        row = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise RowFault(no_text(line) or f"not JSON ({fault})") from None
    if not isinstance(row, dict):
        raise RowFault("no JSON object")
    return row


def _conversation(row: Mapping[str, Any]) -> Conversation | None:
    """The conversation that a row is; None for a line of our own traces."""
    ours = isinstance(row.get("tool"), str)
    ours = ours or any(isinstance(row.get(key), list) for key in ("listed", "carried"))
    if ours or row.get("end") is True or "lost" in row:
        return None
    return read_as(recognised(row), dict(row))


# -- our own traces --------------------------------------------------------------------------------


def _events(row: Mapping[str, Any]) -> Iterator[Event]:
    """The events of a line of our own traces."""
    if isinstance(row.get("tool"), str):
        yield _proxied(row)
    elif isinstance(row.get("listed"), list):
        yield Shown([item for item in row["listed"] if isinstance(item, dict)])
    elif isinstance(row.get("carried"), list):
        yield from (Called(*_spoken(item)) for item in row["carried"])


def _proxied(row: Mapping[str, Any]) -> Called:
    arguments, ok, ms = row.get("arguments"), row.get("ok"), row.get("ms")
    answers = row.get("answers")
    result = row["shown"] if "shown" in row else _answer(_last(answers))
    return Called(
        row["tool"],
        arguments if isinstance(arguments, dict) else None,
        ok and not has_failed(result) if isinstance(ok, bool) else None,
        _milliseconds(ms),
        result,
    )


def _milliseconds(value: Any) -> float | None:
    """A duration; None if it is invalid, such as a negative one."""
    try:
        return float(value) if isinstance(value, int | float) and value >= 0 else None
    except OverflowError:  # an integer of hundreds of digits
        return None


def _last(answers: Any) -> Any:
    return answers[-1] if isinstance(answers, list) and answers else None


def _answer(raw: Any) -> Any:
    """What an MCP server answered: its structured content, else its text."""
    if not isinstance(raw, Mapping):
        return None
    if "structuredContent" in raw:
        return raw["structuredContent"]
    blocks = raw.get("content")
    if not isinstance(blocks, list):
        return raw
    texts = [
        str(block["text"]) for block in blocks if isinstance(block, Mapping) and "text" in block
    ]
    return (
        _decoded("\n".join(texts)) if texts else [block.get("type") for block in _objects(blocks)]
    )


def _spoken(call: Any) -> tuple[str, dict[str, Any] | None]:
    """The name and the arguments of a call, written as a pair or as an object."""
    if isinstance(call, Mapping):
        name, arguments_given = call.get("name"), call.get("arguments")
    else:
        name, arguments_given = [*(call if isinstance(call, list | tuple) else [call]), None, None][
            :2
        ]
    arguments = _decoded(arguments_given)
    return str(name), arguments if isinstance(arguments, dict) else None


# -- conversations ---------------------------------------------------------------------------------


def conversed(conversation: Conversation, row: Mapping[str, Any]) -> Iterator[Event]:
    """The events of a whole conversation."""
    if conversation.tools:
        yield Shown([_as_listed(tool.function) for tool in conversation.tools], "openai")
    waiting: dict[str, Called] = {}
    order: list[str] = []
    refused = False
    for message in conversation.messages:
        for call in message.calls:
            key = call.id or f"#{len(order)}"
            waiting[key] = Called(call.name, call.arguments)
            order.append(key)
            refused = refused or call.name == REFUSE
        if message.role == "tool":
            key = message.call_id or next((number for number in order if number in waiting), "")
            called = waiting.pop(key, None)
            if called is not None:
                result = _decoded(message.text)
                yield Called(called.tool, called.arguments, not has_failed(result), None, result)
    yield from waiting.values()
    request = next(
        (message.text for message in conversation.messages if message.role == "user"), ""
    )
    yield Ended(refused or _says_refusal(row), request if isinstance(request, str) else "")


def _says_refusal(row: Mapping[str, Any]) -> bool:
    """Whether the last message has the field by which OpenAI's models say that they refuse."""
    messages = row.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    return isinstance(last, Mapping) and bool(last.get("refusal"))


def _as_listed(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as OpenAI has it, as an MCP server lists it."""
    inner = raw.get("function")
    function = inner if isinstance(inner, Mapping) else raw
    schema = next((function[key] for key in _SCHEMAS if key in function), None)
    kept = {k: v for k, v in function.items() if k not in (*_SCHEMAS, "type")}
    return {**kept, "inputSchema": schema if isinstance(schema, Mapping) else {"type": "object"}}


# -- spans -----------------------------------------------------------------------------------------


_READ_OF_SPANS = ("gen_ai.", "mcp.")
"""The prefix of attributes that are read."""
_DIALECTS = {"openinference.": "OpenInference", "ai.": "the Vercel AI SDK"}
"""Other span conventions, by the prefix of their attributes."""
_MAX_NAMED = 4


def _foreign(attributes: Mapping[str, Any]) -> str:
    """Names the convention of a span that has no known attributes."""
    whose = next(
        (n for key in attributes for sign, n in _DIALECTS.items() if key.startswith(sign)), ""
    )
    spaces = list(dict.fromkeys(f"{key.partition('.')[0]}.*" for key in attributes))[:_MAX_NAMED]
    has = f"its attributes are {', '.join(spaces)}" if spaces else "it has no attributes"
    return f"a span {f'of {whose}' if whose else 'of another convention'}; {has}"


def _spans_of(row: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """The spans of a row; None where it is of something else."""
    if isinstance(row.get("tool"), str):
        return None
    if "resourceSpans" in row:
        return list(_spans(row))
    return [row] if isinstance(row.get("attributes"), Mapping | list) else None


def _spans(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for resource in _objects(row.get("resourceSpans")):
        for scope in _objects(resource.get("scopeSpans")):
            yield from _objects(scope.get("spans"))


def _objects(value: Any) -> Iterable[Mapping[str, Any]]:
    return [item for item in _listed(value) if isinstance(item, Mapping)]


def _attributes(raw: Any) -> Mapping[str, Any]:
    if isinstance(raw, Mapping):
        return raw
    return {
        str(attribute.get("key")): _value(attribute.get("value")) for attribute in _objects(raw)
    }


def _value(raw: Any) -> Any:
    """A value of OTLP, as JSON writes it."""
    if not isinstance(raw, Mapping) or len(raw) != 1:
        return raw
    ((kind, value),) = raw.items()
    if kind == "arrayValue" and isinstance(value, Mapping):
        return [_value(item) for item in _listed(value.get("values"))]
    if kind == "kvlistValue" and isinstance(value, Mapping):
        return {str(o.get("key")): _value(o.get("value")) for o in _objects(value.get("values"))}
    if kind == "intValue" and isinstance(value, str):
        return int(value) if re.fullmatch(r"-?\d{1,19}", value, re.ASCII) else value
    return value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _traced(span: Mapping[str, Any], attributes: Mapping[str, Any], name: str) -> Called:
    arguments = _decoded(attributes.get("gen_ai.tool.call.arguments"))
    status = span.get("status")
    said_status = status if isinstance(status, Mapping) else {}
    code = said_status.get("code", said_status.get("status_code"))
    failed = "error.type" in attributes or code in _FAILED
    return Called(
        name,
        arguments if isinstance(arguments, dict) else None,
        not failed,
        _took(span),
        _decoded(attributes.get("gen_ai.tool.call.result")),
    )


def _asked(messages: Any) -> str:
    """The texts of the first message of the user, as `gen_ai.input.messages` has it."""
    first = next((message for message in _objects(messages) if message.get("role") == "user"), {})
    return " ".join(str(part.get("content", "")) for part in _objects(first.get("parts")))


def _took(span: Mapping[str, Any]) -> float | None:
    """Milliseconds, from the times in nanoseconds or as texts."""
    begun, ended = (span.get(f"{side}TimeUnixNano") for side in ("start", "end"))
    try:
        if begun is not None and ended is not None:
            return _milliseconds((int(ended) - int(begun)) / 1e6)
        first, last = (
            datetime.fromisoformat(str(span.get(key)).replace("Z", "+00:00"))
            for key in ("start_time", "end_time")
        )
        return _milliseconds((last - first).total_seconds() * 1000)
    except (TypeError, ValueError, OverflowError):
        return None


def _decoded(value: Any) -> Any:
    """Decodes a text that holds JSON; returns any other value unchanged."""
    if not isinstance(value, str) or value[:1] not in ("{", "[", '"'):
        return value
    try:
        return msgspec.json.decode(value)
    except (ValueError, RecursionError):  # msgspec's own errors, and half a character
        return value
