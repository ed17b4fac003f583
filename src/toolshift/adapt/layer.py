"""A layer around any agent that undoes drift: it sees messages, tools and results, and the lock.

    lock = read_lock(Path("toolshift.lock.json"))
    agent = toolshift.adapt(my_agent, lock=lock)        # all parts
    agent = toolshift.adapt(my_agent, lock=lock, without=["retries"])
    interventions(messages)                             # what it did in a conversation, and why

Its parts, each of which can be switched off:

names        a tool that has another name today is called by that name, where that is certain
parameters   arguments go under the names that parameters have today, where that is certain
results      what comes back is shown to the agent in the form that the lock declares
redirects    a failed call is made of the tool that the failure names
retries      a call that failed or lacks values is made again, if it only reads or is idempotent
loops        an agent that repeats a failing call is told what was learned, and asked once more

The layer keeps nothing between turns. What it did to a call stands, as JSON behind `[adapted]`, in
the text of the message that makes the call; the agent itself is shown the conversation as if the
call had been made as it spoke it. So every intervention is in the trace, with its evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from toolshift.adapt.calls import RecordedCall
from toolshift.adapt.errors_said import (
    failure_of,
    incomplete_of,
    may_have_happened,
    named_tool,
    says_again,
)
from toolshift.adapt.lock import Lock
from toolshift.adapt.repair import Intervention, Repairer
from toolshift.adapt.results import restored
from toolshift.adapt.successors import only_reads, opposed
from toolshift.agents.catalog import contestants
from toolshift.agents.kind import AgentLike
from toolshift.core.calls import ToolCall
from toolshift.core.errors import UsageError
from toolshift.core.message import PROTOCOL_NAMES, Reply, Turn
from toolshift.core.names import unknown
from toolshift.episode.contract import Agent, Releases, finished
from toolshift.interop.tools import Source

PARTS: Mapping[str, str] = {
    "names": "a tool that has another name today is called by that name",
    "parameters": "arguments go under the names that parameters have today",
    "results": "results are shown in the form that the lock declares",
    "redirects": "a failed call is made of the tool that the failure names",
    "retries": "a call that only reads or is idempotent is made again where that is said to help",
    "loops": "an agent that repeats a failing call is told what was learned",
}
MARK = "[adapted] "
MAX_RETRIES = 3
FAILED_ALIKE, FAILED_PASSING = 2, 5
"""How often the same call may fail before a loop is seen: where no tool takes it, and elsewhere."""


class _Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """What stands behind the mark: the interventions, and the agent's own words."""

    done: tuple[Intervention, ...]
    said: str = ""


def interventions(messages: Iterable[Mapping[str, Any]]) -> list[Intervention]:
    """What a layer did in a conversation.

    Args:
        messages: in the OpenAI format.

    Returns:
        The interventions on calls, in their order.
    """
    notes = (_note_of(message) for message in messages)
    return [each for note in notes if note is not None for each in note.done]


def _note_of(message: Mapping[str, Any]) -> _Note | None:
    content = message.get("content")
    if message.get("role") != "assistant" or not isinstance(content, str):
        return None
    if not content.startswith(MARK):
        return None
    return _read_note(content)


@lru_cache(maxsize=1024)
def _read_note(content: str) -> _Note | None:
    try:
        return msgspec.json.decode(content.removeprefix(MARK), type=_Note)
    except msgspec.MsgspecError:
        return None


@dataclass(frozen=True)
class _Made:
    """A call of the last turn: its id, as it was asked and made, and what came back."""

    id: str
    asked: RecordedCall
    made: RecordedCall
    text: str


@dataclass
class _Talk:
    """A conversation, as the agent is shown it and as it was."""

    shown: list[dict[str, Any]]
    last: list[_Made]
    failed: list[tuple[RecordedCall, str]]
    retries: int


def adapt(
    agent: AgentLike,
    lock: Lock,
    only: Iterable[str] | None = None,
    without: Iterable[str] = (),
    record: Callable[[Intervention], None] = lambda done: None,
) -> AdaptedAgent:
    """Puts a layer around an agent that undoes drift where that is certain.

    Args:
        agent: anything that answers turns: a function of (messages, tools), an object with `name`
            and `reply(turn)`, or a spec such as "chat:gpt-4.1-mini".
        lock: the tools as the agent knows them. Results are restored where it has `outputSchema`;
            calls are repeated where it says `readOnlyHint` or `idempotentHint`.
        only: the parts that act (`PARTS`); all where None.
        without: parts that do not act.
        record: told of each intervention when it is made.

    Returns:
        An agent of the same name with "+adapt" behind it.

    Raises:
        UsageError: for an unknown part, and for an agent that drives its episode itself.
    """
    parts = _chosen(PARTS if only is None else only) - _chosen(without)
    (contestant,) = contestants([agent])
    if not isinstance(contestant.agent, Agent):
        raise UsageError(
            f"agent {contestant.name} drives its episode itself: adapt takes agents that "
            "answer turns (a function of messages and tools, or an object with reply(turn))"
        )
    return AdaptedAgent(contestant.agent, lock, frozenset(parts), record)


def _chosen(names: Iterable[str]) -> set[str]:
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        if name not in PARTS:
            raise UsageError(unknown("part", name, PARTS))
    return set(names)


class AdaptedAgent:
    """An agent in its layer; see `adapt`.

    Args:
        inner: the agent.
        lock: the tools as it knows them.
        parts: what the layer does.
        record: told of each intervention.
    """

    def __init__(
        self,
        inner: Agent,
        lock: Lock,
        parts: frozenset[str],
        record: Callable[[Intervention], None],
    ) -> None:
        self.inner, self.lock, self.parts, self.record = inner, lock, parts, record
        self.name = f"{inner.name}+adapt"
        self.concurrency = int(getattr(inner, "concurrency", 1))
        self.settings = {"lock": lock.hash, "parts": sorted(parts)}
        self._repairer = Repairer(lock, parts)
        self._before = self._repairer.before
        self._forms: dict[tuple[str, str], str] = {}

    def release(self) -> None:
        """Lets the agent give back what it keeps."""
        if isinstance(self.inner, Releases):
            self.inner.release()

    def reply(self, turn: Turn) -> Reply:
        """Answers a turn: with a call of the layer's own, or as the agent does.

        Args:
            turn: the messages so far and the tools on offer now.

        Returns:
            The reply, with a note where the layer has changed it.
        """
        tools = {t["function"]["name"]: t["function"] for t in turn.tools}
        talk = self._read(turn.messages)
        own = self._own_call(talk, tools) if talk.last else None
        if own is not None:
            self.record(own)
            return _noted(Reply(calls=(ToolCall(own.made.tool, own.made.arguments),)), (own,))
        reply = self._asked(talk.shown, turn)
        if "loops" in self.parts and talk.failed:
            reply = self._without_loop(reply, talk, turn, tools)
        return self._repaired(reply, tools)

    def _asked(self, messages: Sequence[dict[str, Any]], turn: Turn) -> Reply:
        return Reply.of(finished(self.inner.reply(Turn(messages, turn.tools))))

    # -- what has been said ------------------------------------------------------------------------

    def _read(self, messages: Sequence[dict[str, Any]]) -> _Talk:
        talk = _Talk([], [], [], 0)
        made: dict[str, _Made] = {}
        hidden: dict[str, str] = {}  # the id of a call of ours to that of the call it stands for
        for message in messages:
            role = message.get("role")
            if role == "assistant" and message.get("tool_calls"):
                self._spoken(message, talk, made, hidden)
            elif role == "tool" and message.get("tool_call_id") in made:
                self._answered(message, talk, made, hidden)
            else:
                talk.shown.append(message)
                talk.last = []
        return talk

    def _spoken(
        self,
        message: dict[str, Any],
        talk: _Talk,
        made: dict[str, _Made],
        hidden: dict[str, str],
    ) -> None:
        """Takes up a message of the agent, with the calls as it spoke them."""
        note = _note_of(message)
        done = {each.place: each for each in note.done} if note else {}
        talk.last, shown = [], []
        for place, raw in enumerate(message["tool_calls"]):
            function = raw["function"]
            call = RecordedCall(function["name"], _arguments(function.get("arguments")))
            each = done.get(place)
            asked = each.asked if each else call
            made[raw["id"]] = _Made(raw["id"], asked, call, "")
            if each is not None and each.answers:
                hidden[raw["id"]] = hidden.get(each.answers, each.answers)
                talk.retries = talk.retries + 1 if each.part == "retries" else talk.retries
                continue
            talk.retries = 0
            shown.append(_as_asked(raw, asked) if each else raw)
        if shown:
            said = {"content": note.said} if note else {}
            talk.shown.append({**message, **said, "tool_calls": shown} if note else message)

    def _answered(
        self,
        message: dict[str, Any],
        talk: _Talk,
        made: dict[str, _Made],
        hidden: Mapping[str, str],
    ) -> None:
        """Takes up a result, in the form of the lock, in the place of the call that it is for."""
        call_id, text = message["tool_call_id"], str(message.get("content") or "")
        call = made[call_id]
        talk.last.append(_Made(call_id, call.asked, call.made, text))
        if failure := failure_of(text):
            talk.failed.append((call.asked, failure))
        else:
            talk.failed.clear()
            text = self._in_form(text, call)
        if call_id not in hidden:
            talk.shown.append(
                message if text is message.get("content") else {**message, "content": text}
            )
            return
        for place in range(len(talk.shown) - 1, -1, -1):
            if talk.shown[place].get("tool_call_id") == hidden[call_id]:
                talk.shown[place] = {**talk.shown[place], "content": text}
                return

    def _in_form(self, text: str, call: _Made) -> str:
        if "results" not in self.parts:
            return text
        source = self._before.sources.get(call.asked.tool)
        if source is None or not source.outputs:
            return text
        key = (source.tool.name, text)
        if key not in self._forms:
            if len(self._forms) >= 1024:
                self._forms.clear()
            self._forms[key] = restored(text, source.outputs)
        return self._forms[key]

    # -- calls of the layer's own ------------------------------------------------------------------

    def _own_call(self, talk: _Talk, tools: Mapping[str, Mapping[str, Any]]) -> Intervention | None:
        """The call that a failed result of the last turn asks for, where that is safe."""
        for call in talk.last:
            if call.made.tool in PROTOCOL_NAMES:
                continue
            failure = failure_of(call.text)
            found = self._redirect(call, failure, tools) if failure else None
            why = failure or incomplete_of(call.text)
            found = found or (self._retry(call, why, tools, talk) if why else None)
            if found is not None:
                return found
        return None

    def _redirect(
        self, call: _Made, failure: str, tools: Mapping[str, Mapping[str, Any]]
    ) -> Intervention | None:
        if "redirects" not in self.parts or call.asked != call.made:
            return None
        others = (name for name in tools if name != call.made.tool and name not in PROTOCOL_NAMES)
        target = named_tool(failure, others)
        was = self._before.sources.get(call.asked.tool)
        world = self._repairer.today(tools) if target and was is not None else None
        if was is None or world is None:
            return None
        today, checker = world
        now = today.after.sources[target]
        made = RecordedCall(target, call.made.arguments)
        if opposed(was, now) or checker.fault(made)[1]:
            return None
        told, said = was.tool.description, now.tool.description
        if only_reads(was):
            safe = only_reads(now) or (bool(told) and said.startswith(told.rstrip(".")))
        else:
            safe = (
                bool(told) and said.startswith(told.rstrip(".")) and not may_have_happened(failure)
            )
        if not safe:
            return None
        why = f'the failure names {target}: "{failure[:200]}"'
        return Intervention("redirects", why, call.asked, made, call.id)

    def _retry(
        self,
        call: _Made,
        failure: str,
        tools: Mapping[str, Mapping[str, Any]],
        talk: _Talk,
    ) -> Intervention | None:
        if "retries" not in self.parts or talk.retries >= MAX_RETRIES or not says_again(failure):
            return None
        world = self._repairer.today(tools) if call.made.tool in tools else None
        source = world[0].origin(call.made.tool) if world else None
        if source is None or not (only_reads(source) or _is_idempotent(source)):
            return None
        kind = "only reads" if only_reads(source) else "is idempotent"
        why = f'the call {kind}, and the server says: "{failure[:200]}"'
        return Intervention("retries", why, call.asked, call.made, call.id)

    # -- calls of the agent ------------------------------------------------------------------------

    def _repaired(self, reply: Reply, tools: Mapping[str, Mapping[str, Any]]) -> Reply:
        done = []
        calls = list(reply.calls)
        for place, call in enumerate(calls):
            if not isinstance(call, ToolCall) or call.name in PROTOCOL_NAMES:
                continue
            found = self._repairer.repair(RecordedCall(call.name, call.arguments), tools)
            if found is not None:
                done.append(msgspec.structs.replace(found, place=place))
                calls[place] = ToolCall(found.made.tool, found.made.arguments, call.id)
                self.record(done[-1])
        if not done or calls[0].name in PROTOCOL_NAMES:
            return reply
        return _noted(msgspec.structs.replace(reply, calls=tuple(calls)), tuple(done))

    def _without_loop(
        self, reply: Reply, talk: _Talk, turn: Turn, tools: Mapping[str, Mapping[str, Any]]
    ) -> Reply:
        """The reply, or the next one where it is a call that has failed again and again."""
        first = reply.calls[0] if len(reply.calls) == 1 else None
        if not isinstance(first, ToolCall):
            return reply
        call = RecordedCall(first.name, first.arguments)
        failures = [failure for asked, failure in talk.failed if asked == call]
        if len(failures) < FAILED_ALIKE:
            return reply
        world = self._repairer.today(tools)
        hopeless = world is None or bool(world[1].fault(call)[1])
        if not hopeless and len(failures) < FAILED_PASSING:
            return reply
        there = "" if call.tool in tools else " There is no tool of this name today."
        text = (
            f"The same call of {call.tool} has failed {len(failures)} times, last with: "
            f'"{failures[-1][:300]}".{there} Do not repeat it: use another tool, other '
            "arguments, or say that the request cannot be fulfilled."
        )
        self.record(Intervention("loops", text, call, call))
        return self._asked([*talk.shown, {"role": "user", "content": text}], turn)


def _noted(reply: Reply, done: tuple[Intervention, ...]) -> Reply:
    note = msgspec.json.encode(_Note(done, reply.text)).decode()
    return msgspec.structs.replace(reply, text=f"{MARK}{note}")


def _as_asked(raw: Mapping[str, Any], asked: RecordedCall) -> dict[str, Any]:
    spoken = {"name": asked.tool, "arguments": msgspec.json.encode(asked.arguments).decode()}
    return {**raw, "function": spoken}


def _arguments(given: Any) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(given) if isinstance(given, str) else given
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_idempotent(source: Source) -> bool:
    hints = source.raw.get("annotations")
    return isinstance(hints, Mapping) and hints.get("idempotentHint") is True
