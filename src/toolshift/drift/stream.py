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
a trace of production                   any dialect of `data.traces`: OTLP or one span a line, or a
                                        row of the export of a platform

From line to line only this is kept: what was read (`Reader.intake`), whether spans of tools and of
clients were seen, the last calls, so that one that two spans tell is counted once, and turns of
models of which a log has told a part.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from toolshift.core.intake import Intake, check_read, no_text
from toolshift.core.message import PROTOCOL_NAMES, REFUSE
from toolshift.core.values import as_json
from toolshift.data.conversation import Call, Conversation, RowFault
from toolshift.data.formats import FORMATS, read_as, recognised
from toolshift.data.traces import NAMES, TraceReader, not_known
from toolshift.data.traces.messages import as_listed
from toolshift.data.traces.spans import ModelTurn, Said, Span, ToolRun, decoded, objects
from toolshift.data.written_calls import CALLS_IN_TEXT, calls_in_text
from toolshift.interop.outcome import has_failed
from toolshift.shifts.release.inputs import Kind

_REFUSED = ("refusal", "content_filter")
_GOES_ON = frozenset(("tool_call", "tool_calls", "tool_use", "function_call"))
"""Finish reasons of a turn that calls a tool, of OpenTelemetry, OpenAI and Anthropic."""
_MAX_CALLS = 4096
"""Calls that are remembered, to know the second span of one."""


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
        when: it began, in seconds since 1970; None where the stream does not say.
    """

    tool: str
    arguments: dict[str, Any] | None = None
    ok: bool | None = None
    ms: float | None = None
    result: Any = None
    when: float | None = None


class Ended(msgspec.Struct, frozen=True):
    """The end of a conversation.

    Attributes:
        refused: whether the agent or its model refused.
        asked: what the user wrote first; "" where the stream does not say.
        when: in seconds since 1970; None where the stream does not say.
    """

    refused: bool
    asked: str = ""
    when: float | None = None


Event = Shown | Called | Ended


WANTED = "a call, a list of tools or the end of a conversation"
"""The forms that a line of a stream may have."""


def understood() -> str:
    """Names the forms that are read, for a message."""
    return (
        "These are read: traces of `toolshift proxy` and of the model proxy; conversations "
        f"({', '.join(FORMATS.names())}); traces of {', '.join(NAMES)}"
    )


class Reader:
    """Reads the lines of a stream, and keeps how much of it was understood.

    Args:
        source: how messages name the stream.
        part: what its parts are counted by.
    """

    def __init__(self, source: str = "the stream", part: str = "line") -> None:
        self.intake = Intake(source, part)
        self._part = part
        self._traces = TraceReader()
        self._calls = _SpanCalls()
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

    @property
    def spans(self) -> tuple[bool, bool]:
        """Whether spans of tools and of clients were met, after which others do not count."""
        return self._calls.tools, self._calls.clients

    @spans.setter
    def spans(self, met: tuple[bool, bool]) -> None:
        self._calls.tools, self._calls.clients = met

    def check(self) -> None:
        """Checks that something was read."""
        check_read(self.intake, WANTED, understood())

    def _missed(self, why: str, raw: bytes | str) -> None:
        self.intake = self.intake.missed(f"{self._part} {self._line}", why, raw)

    def _read(self, row: Mapping[str, Any], line: bytes) -> list[Event]:
        """The events of a row; spans are counted one by one, everything else as a line."""
        spans = None if isinstance(row.get("tool"), str) else self._traces.read(row)
        if spans is not None:
            return self._read_spans(spans)
        if wrong := _says_nothing(row):
            raise RowFault(wrong)
        conversation = _conversation(row)
        events = list(_events(row) if conversation is None else conversed(conversation, row))
        if conversation is not None and calls_in_text(conversation):
            self._missed(CALLS_IN_TEXT, line)
        else:
            told = any(not isinstance(one, Shown) or one.tools for one in events)
            self.intake = self.intake.took() if told else self.intake.passed()
        return events

    def _read_spans(self, spans: list[Span]) -> list[Event]:
        """The events of the spans of a row, each of which is counted."""
        self.intake = msgspec.structs.replace(self.intake, unit="span")
        self._calls.expect(spans)
        events: list[Event] = []
        for span in spans:
            told = [*self._calls.events(span)]
            events += told
            # one without events is such as a turn of a model that goes on to call
            self.intake = self.intake.took() if told else self.intake.passed()
        for raw in self._traces.unknown:
            self._missed(not_known(raw), raw.name)
        return events


def is_json(line: bytes) -> bool:
    """Whether a line is whole."""
    try:
        msgspec.json.decode(line.removeprefix(BOM_UTF8), type=msgspec.Raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


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


def _says_nothing(row: Mapping[str, Any]) -> str:
    """Why a line in the form of our own traces says nothing; "" where it does."""
    if row.get("tool") == "":
        return "a call without the name of its tool"
    if isinstance(row.get("listed"), list) and not isinstance(row.get("tool"), str):
        named = [
            isinstance(one, dict) and isinstance(one.get("name"), str) for one in row["listed"]
        ]
        return "" if all(named) else "a list of tools in which one has no name"
    if isinstance(row.get("carried"), list):
        good = [isinstance(one, list) and one and isinstance(one[0], str) for one in row["carried"]]
        good = good and [
            fine or (isinstance(one, dict) and isinstance(one.get("name"), str))
            for fine, one in zip(good, row["carried"], strict=True)
        ]
        return "" if all(good) else "a request with a call that has no name"
    return ""


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
    answered = "shown" in row or answers != []  # a list without any: the server never answered
    return Called(
        row["tool"],
        arguments if isinstance(arguments, dict) else None,
        ok and answered and not has_failed(result) if isinstance(ok, bool) else None,
        _number(ms),
        result,
        _number(row.get("time")),
    )


def _number(value: Any) -> float | None:
    """A duration or a time; None if it is invalid, such as a negative one."""
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
    return decoded("\n".join(texts)) if texts else [block.get("type") for block in objects(blocks)]


def _spoken(call: Any) -> tuple[str, dict[str, Any] | None]:
    """The name and the arguments of a call, written as a pair or as an object."""
    if isinstance(call, Mapping):
        name, arguments_given = call.get("name"), call.get("arguments")
    else:
        name, arguments_given = [*(call if isinstance(call, list | tuple) else [call]), None, None][
            :2
        ]
    arguments = decoded(arguments_given)
    return str(name), arguments if isinstance(arguments, dict) else None


# -- conversations ---------------------------------------------------------------------------------


def conversed(conversation: Conversation, row: Mapping[str, Any]) -> Iterator[Event]:
    """The events of a whole conversation; one that no agent has answered says nothing of it."""
    answered = any(message.role in ("assistant", "tool") for message in conversation.messages)
    if not answered and not conversation.tools:
        raise RowFault("a conversation in which nobody has answered")
    if conversation.tools:
        yield Shown([as_listed(tool.function) for tool in conversation.tools], "openai")
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
                result = decoded(message.text)
                yield Called(called.tool, called.arguments, not has_failed(result), None, result)
    yield from waiting.values()
    request = next(
        (message.text for message in conversation.messages if message.role == "user"), ""
    )
    if answered:
        yield Ended(refused or _says_refusal(row), request if isinstance(request, str) else "")


def _says_refusal(row: Mapping[str, Any]) -> bool:
    """Whether the last message has the field by which OpenAI's models say that they refuse."""
    messages = row.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    return isinstance(last, Mapping) and bool(last.get("refusal"))


# -- spans -----------------------------------------------------------------------------------------


class _SpanCalls:
    """The events of spans; a call that several spans tell is one event.

    A client and a server tell of the same call, and so do two libraries that instrument one
    program, one span inside of the other, and the next request to the model, which has the result.
    So requests count only in a stream without spans of tools, and servers in one without clients.
    """

    def __init__(self) -> None:
        self.tools = self.clients = False
        self._counted: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._inside: OrderedDict[tuple[str, str], str] = OrderedDict()
        """The spans around those that were counted, with the tool of the latter."""
        self._requested: OrderedDict[tuple[str, str], str] = OrderedDict()
        """Calls that a request has told of: a file may have the newest spans first."""

    def expect(self, spans: Iterable[Span]) -> None:
        """Looks ahead at the spans of a row, whose order says nothing."""
        self.tools = self.tools or any(span.run is not None for span in spans)

    def events(self, span: Span) -> Iterator[Event]:
        """The events of a span."""
        run, turn, raw = span.run, span.turn, span.raw
        if run is not None and not self._is_known(span, run):
            failed = bool(run.failed) or has_failed(run.result)
            yield Called(run.tool, run.arguments, not failed, raw.ms, run.result, raw.start)
        if turn is None:
            return
        if turn.tools:
            yield Shown(list(turn.tools), "openai")
        if span.agent:
            return
        if not self.tools:
            for called in _reported(turn, span.raw.start):
                _keep(self._requested, _mark(span, called.tool, called.arguments), called.tool)
                yield called
        if _is_ending(turn):
            request = next((said.text for said in turn.said if said.role == "user"), "")
            yield Ended(_is_refusal(turn), request, span.raw.start)

    def _is_known(self, span: Span, run: ToolRun) -> bool:
        """Whether another span has told of the call."""
        raw = span.raw
        self.clients = self.clients or not raw.served
        if raw.served and self.clients:
            return True
        if self._requested.pop(_mark(span, run.tool, run.arguments), None) is not None:
            return True
        own, around = (raw.trace, raw.id), (raw.trace, raw.parent)
        if self._inside.get(own) == run.tool or self._counted.get(around) == run.tool:
            return True
        for known, key in ((self._counted, own), (self._inside, around)):
            if key[1]:
                _keep(known, key, run.tool)
        return False


def _keep(known: OrderedDict[tuple[str, str], str], key: tuple[str, str], tool: str) -> None:
    """Remembers the last of many calls."""
    known[key] = tool
    while len(known) > _MAX_CALLS:
        known.popitem(last=False)


def _mark(span: Span, tool: str, arguments: Any) -> tuple[str, str]:
    """What a call of a trace is known by where two spans tell of it."""
    return span.raw.trace, as_json((tool, arguments))


def _reported(turn: ModelTurn, when: float | None) -> Iterator[Called]:
    """The calls whose results this turn is the first to be given: those at the end."""
    calls: list[Call] = []
    results: list[Said] = []
    for said in turn.said:
        if said.role == "tool":
            results.append(said)
        else:
            calls, results = list(said.calls), []
    for result in results:
        call = next(
            (c for c in calls if c.id and c.id == result.call_id), calls[0] if calls else None
        )
        if call is not None:
            calls.remove(call)
            failed = bool(result.failed) or has_failed(result.result)
            yield Called(call.name, call.arguments, not failed, None, result.result, when)


def _is_ending(turn: ModelTurn) -> bool:
    """Whether the model answered, and called no tool but one of our own protocol."""
    calls = any(call.name not in PROTOCOL_NAMES for said in turn.replied for call in said.calls)
    reasons = {reason.lower().replace("-", "_") for reason in turn.reasons}
    return not calls and _GOES_ON.isdisjoint(reasons) and bool(reasons or turn.replied)


def _is_refusal(turn: ModelTurn) -> bool:
    """Whether the model refused, by its reason to stop or by the tool of our own protocol."""
    called = any(call.name == REFUSE for said in turn.replied for call in said.calls)
    return called or any(reason.lower() in _REFUSED for reason in turn.reasons)
