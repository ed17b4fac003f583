"""Whole conversations out of spans: what was asked, which calls were made, and what came back.

Each request to a model repeats what was said before, so of all the turns of a trace those count
that no later one goes on from. What such a turn does not tell, the spans of tools do: the results
of the last calls, or all calls where messages are not recorded.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from toolshift.core.tool import JSON
from toolshift.core.values import as_text
from toolshift.data.conversation import Conversation, Message, read_tools, without_marks
from toolshift.data.traces.messages import plain_result
from toolshift.data.traces.spans import ModelTurn, Said, Span, ToolRun, decoded
from toolshift.interop.outcome import has_failed


class Made(msgspec.Struct, frozen=True):
    """A call of a conversation.

    Attributes:
        tool: its name.
        arguments: None where they are not recorded.
        turn: the request of the user after which it was made, from 0.
        result: what came back.
        answered: whether a result is recorded.
        failed: whether the result says that the call failed.
    """

    tool: str
    arguments: dict[str, Any] | None
    turn: int = 0
    result: Any = None
    answered: bool = False
    failed: bool = False


class Recorded(msgspec.Struct, frozen=True):
    """A conversation that took place.

    Attributes:
        id: of its trace, or where it stands.
        tools: on offer, as an MCP server lists them; of each name the last.
        said: every message.
        asks: what the user said, in turn.
        calls: in their order.
        answer: what the agent said last.
    """

    id: str
    tools: tuple[dict[str, Any], ...]
    said: tuple[Said, ...]
    asks: tuple[str, ...]
    calls: tuple[Made, ...]
    answer: str = ""

    @property
    def system(self) -> str:
        """The system message."""
        return "\n".join(said.text for said in self.said if said.role == "system")


def recorded_in(spans: Iterable[Span]) -> list[Recorded]:
    """The conversations that spans tell, in the order in which their traces begin."""
    traces: dict[str, list[Span]] = {}
    for number, span in enumerate(spans):
        traces.setdefault(span.raw.trace or f"#{number}", []).append(span)
    begun = sorted(traces.items(), key=lambda trace: min(map(_start, trace[1])))
    longest = [each for name, group in begun for each in _of_trace(name, group)]
    continued = {mark for each in longest for mark in _marks(each.said)[:-1]}
    return [each for each in longest if not each.said or _marks(each.said)[-1] not in continued]


def _start(span: Span) -> float:
    return math.inf if span.raw.start is None else span.raw.start


def _of_trace(name: str, spans: list[Span]) -> list[Recorded]:
    """The conversations of a trace; several agents may have had one each."""
    ordered = sorted(spans, key=_start)
    runs = _once([(s, s.run) for s in ordered if s.run is not None])
    turns = [s.turn for s in ordered if s.turn is not None and not s.agent and s.turn.said]
    turns = turns or [s.turn for s in ordered if s.turn is not None and s.turn.said]
    tools = {str(t["name"]): t for s in ordered if s.turn is not None for t in s.turn.tools}
    groups: dict[str, ModelTurn] = {}
    for turn in turns:
        request = next((said.text for said in turn.said if said.role == "user"), "")
        best = groups.get(request)
        if best is None or len(turn.said) >= len(best.said):
            groups[request] = turn
    if not groups and runs:
        return [_recorded(name, tools, (), runs, None)]
    many = len(groups) > 1
    found = []
    for number, turn in enumerate(groups.values(), 1):
        said = (*turn.said, *turn.replied)
        shown = {str(tool["name"]): tool for tool in turn.tools} or tools
        called = any(each.calls for each in said)
        given = runs if not many or called else []
        found.append(_recorded(f"{name}/{number}" if many else name, shown, said, given, turn))
    return found


def _once(pairs: list[tuple[Span, ToolRun]]) -> list[ToolRun]:
    """The calls of spans; of two spans for one call, one inside of the other, the inner one."""
    around = {(span.raw.parent, run.tool) for span, run in pairs if span.raw.parent}
    return [run for span, run in pairs if (span.raw.id, run.tool) not in around]


def _recorded(
    name: str,
    tools: dict[str, dict[str, Any]],
    said: Sequence[Said],
    runs: list[ToolRun],
    turn: ModelTurn | None,
) -> Recorded:
    asks = tuple(each.text for each in said if each.role == "user")
    calls = _calls_of(said, runs)
    if not calls and runs:
        last = max(len(asks) - 1, 0)
        calls = [_made(run, last) for run in runs]
    replied = turn.replied if turn is not None else ()
    answer = next((each.text for each in reversed(replied) if each.text and not each.calls), "")
    return Recorded(name, tuple(tools.values()), tuple(said), asks, tuple(calls), answer)


def _made(run: ToolRun, turn: int) -> Made:
    failed = bool(run.failed) or has_failed(run.result)
    answered = run.result is not None or failed
    return Made(run.tool, run.arguments, turn, run.result, answered, failed)


def _calls_of(said: Sequence[Said], runs: list[ToolRun]) -> list[Made]:
    """The calls of messages, each with its result: by its id, else by its tool, else in order."""
    found: list[Made] = []
    waiting: list[tuple[int, str]] = []
    turn = -1
    for each in said:
        turn += each.role == "user"
        for call in each.calls:
            waiting.append((len(found), call.id))
            found.append(Made(call.name, call.arguments, max(turn, 0)))
        if each.role == "tool" and waiting:
            place = _place_of(each, waiting, found)
            waiting.remove(place)
            failed = bool(each.failed) or has_failed(each.result)
            found[place[0]] = msgspec.structs.replace(
                found[place[0]], result=each.result, answered=True, failed=failed
            )
    left = deque(runs)
    for number, made in enumerate(found):  # spans tell what messages do not
        run = next((r for r in left if (r.tool, r.arguments) == (made.tool, made.arguments)), None)
        if run is None:
            continue
        left.remove(run)
        told = _made(run, made.turn)
        if not made.answered:
            found[number] = told
        elif told.failed and not made.failed:
            found[number] = msgspec.structs.replace(made, failed=True)
    return found


def _place_of(said: Said, waiting: list[tuple[int, str]], found: list[Made]) -> tuple[int, str]:
    by_id = (w for w in waiting if said.call_id and w[1] == said.call_id)
    by_name = (w for w in waiting if said.name and found[w[0]].tool == said.name)
    return next(by_id, None) or next(by_name, None) or waiting[0]


def _marks(said: Iterable[Said]) -> list[bytes]:
    """A digest of each beginning of some messages, by what they say."""
    digest = blake2b(digest_size=16)
    marks = []
    for each in said:
        calls = [(call.name, call.arguments) for call in each.calls]
        if not each.text.strip() and not calls and each.role != "tool":
            continue
        digest.update(JSON.encode((each.role, each.text.strip(), calls, each.result)))
        marks.append(digest.digest())
    return marks or [digest.digest()]


# -- as conversations of data ----------------------------------------------------------------------


def as_conversation(recorded: Recorded) -> Conversation:
    """A recorded conversation as one of data."""
    functions = [
        {**{k: v for k, v in tool.items() if k in ("name", "description", "strict")},
         "parameters": tool.get("inputSchema")}
        for tool in recorded.tools
    ]  # fmt: skip
    messages = [
        Message("tool", as_text(said.result), name=said.name, call_id=said.call_id)
        if said.role == "tool"
        else Message(said.role, said.text, said.calls)  # type: ignore[arg-type]
        for said in recorded.said
    ]
    return Conversation(read_tools(functions), tuple(messages))


def of_conversation(conversation: Conversation, name: str) -> Recorded:
    """A conversation of data as a recorded one."""
    tools = {}
    for tool in conversation.tools:
        function = dict(tool.function)
        schema = function.pop("parameters", None) or {"type": "object"}
        tools[str(function["name"])] = {**function, "inputSchema": schema}
    said = [
        Said("tool", "", (), each.call_id, each.name, plain_result(decoded(each.text)))
        if each.role == "tool"
        else Said(each.role, without_marks(each.text), each.calls)
        for each in conversation.messages
    ]
    last = said[-1:] if said and said[-1].role == "assistant" else []
    turn = ModelTurn((), (), tuple(last))
    return _recorded(name, tools, said, [], turn)
