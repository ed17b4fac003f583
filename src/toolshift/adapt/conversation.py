"""Reads a conversation: the calls, their results, and what the layer did.

What the layer did to a call stands, as JSON behind `[adapted]`, in the text of the message that
makes the call. So nothing has to be kept between turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec

from toolshift.adapt.errors_said import failure_of
from toolshift.adapt.repair import Intervention
from toolshift.core.message import Reply
from toolshift.core.values import as_json
from toolshift.drift.calls import RecordedCall

MARK = "[adapted] "
PROMPT = -1
"""The place of an intervention on no call: the agent was told something."""


class _Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content behind the mark: the interventions, and the agent's own words."""

    done: tuple[Intervention, ...]
    said: str = ""


def interventions(messages: Iterable[Mapping[str, Any]]) -> list[Intervention]:
    """What the layer of `adapt` did in a conversation.

    Args:
        messages: of the conversation as its trace has them, in the OpenAI format.

    Returns:
        What it did and what it told the agent, in the order of the messages; notes on changed tools
        are no part of a trace.
    """
    notes = (_note_of(message) for message in messages)
    return [intervention for note in notes if note is not None for intervention in note.done]


def noted(reply: Reply, done: tuple[Intervention, ...]) -> Reply:
    """The reply with a note of what was done in its text."""
    note = as_json(_Note(done, reply.text))
    return msgspec.structs.replace(reply, text=f"{MARK}{note}")


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
    except (ValueError, RecursionError):
        return None


class MadeCall(msgspec.Struct, frozen=True):
    """A call of the conversation.

    Attributes:
        id: of the call.
        asked: the call as the agent made it.
        made: the call as it was made.
        part: of the layer that made it by itself; "" for a call of the agent.
        text: what came back.
        failure: the words of the error; "" where it did not fail.
    """

    id: str
    asked: RecordedCall
    made: RecordedCall
    part: str = ""
    text: str = ""
    failure: str = ""


@dataclass
class Conversation:
    """A conversation, as the agent is shown it and as it was.

    Attributes:
        shown: the messages that the agent is shown.
        made: every call that was answered.
        last: how many of these belong to the last turn.
        failed: calls as they were asked, with the failures since something last worked.
        own: how many calls each part of the layer has made since the agent spoke.
        request: where in `made` the last request of the user begins.
        prompted: the parts that have told the agent something since then.
        begun: whether the agent has spoken.
    """

    shown: list[dict[str, Any]] = field(default_factory=list)
    made: list[MadeCall] = field(default_factory=list)
    last: int = 0
    failed: list[tuple[RecordedCall, str]] = field(default_factory=list)
    own: dict[str, int] = field(default_factory=dict)
    request: int = 0
    prompted: set[str] = field(default_factory=set)
    begun: bool = False

    @property
    def last_made(self) -> Sequence[MadeCall]:
        """The calls of the last turn."""
        return self.made[len(self.made) - self.last :] if self.last else ()


def read_conversation(
    messages: Sequence[dict[str, Any]], beside: Callable[[MadeCall, Sequence[MadeCall]], str]
) -> Conversation:
    """Reads a conversation, takes out of it what the layer did, and adds what stands beside errors.

    `beside` gives the text that stands beside the error of a call, of which it is told with all
    calls until then; "" for none.
    """
    return _Reader(beside).read(messages)


def failures_in_a_row(made: Sequence[MadeCall], call: RecordedCall) -> int:
    """How often a call has failed since it last worked."""
    count = 0
    for earlier in reversed(made):
        if earlier.made == call:
            if not earlier.failure:
                break
            count += 1
    return count


class _Reader:
    def __init__(self, beside: Callable[[MadeCall, Sequence[MadeCall]], str]) -> None:
        self.talk, self.beside = Conversation(), beside
        self.open: dict[str, MadeCall] = {}
        self.hidden: dict[str, str] = {}  # the id of a call of ours to that of what it stands for

    def read(self, messages: Sequence[dict[str, Any]]) -> Conversation:
        talk = self.talk
        for message in messages:
            role = message.get("role")
            if role == "assistant":
                talk.begun = True
            if role == "assistant" and message.get("tool_calls"):
                self._spoken(message)
            elif role == "tool" and message.get("tool_call_id") in self.open:
                self._answered(message)
            else:
                talk.shown.append(message)
                talk.last = 0
                if role == "user":
                    talk.request = len(talk.made)
                    talk.prompted = set()
        return talk

    def _spoken(self, message: dict[str, Any]) -> None:
        """Reads a message of the agent, with its calls as the agent made them."""
        talk, note = self.talk, _note_of(message)
        done = {intervention.place: intervention for intervention in note.done} if note else {}
        if note:
            talk.prompted |= {
                intervention.part for intervention in note.done if intervention.place == PROMPT
            }
        talk.last, shown = 0, []
        for place, raw in enumerate(message["tool_calls"]):
            function = raw["function"]
            call = RecordedCall(function["name"], _arguments(function.get("arguments")))
            intervention = done.get(place)
            own = intervention is not None and bool(intervention.answers)
            call_asked = intervention.asked if intervention else call
            part = intervention.part if intervention is not None and own else ""
            self.open[raw["id"]] = MadeCall(raw["id"], call_asked, call, part)
            if intervention is not None and own:
                self.hidden[raw["id"]] = self.hidden.get(intervention.answers, intervention.answers)
                talk.own[intervention.part] = talk.own.get(intervention.part, 0) + 1
                continue
            talk.own.clear()
            shown.append(_as_asked(raw, call_asked) if intervention else raw)
        if shown:
            content = {"content": note.said} if note else {}
            talk.shown.append({**message, **content, "tool_calls": shown} if note else message)

    def _answered(self, message: dict[str, Any]) -> None:
        """Reads a result, at the place of its call."""
        talk, call_id, text = self.talk, message["tool_call_id"], str(message.get("content") or "")
        call, failure = self.open[call_id], failure_of(text)
        made = MadeCall(call_id, call.asked, call.made, call.part, text, failure)
        talk.made.append(made)
        talk.last += 1
        shown = message
        if failure:
            talk.failed.append((call.asked, failure))
            shown = _with(message, self.beside(made, talk.made))
        else:
            talk.failed.clear()
        if call_id not in self.hidden:
            talk.shown.append(shown)
            return
        for place in range(len(talk.shown) - 1, -1, -1):
            before = talk.shown[place]
            if before.get("tool_call_id") == self.hidden[call_id]:
                talk.shown[place] = {**before, "content": shown.get("content")}
                return


def _with(message: dict[str, Any], text: str) -> dict[str, Any]:
    """A result with a text behind it; the result itself stays as it came."""
    if not text:
        return message
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [*content, {"type": "text", "text": text}]}
    return {**message, "content": f"{content}\n\n{text}"}


def _as_asked(raw: Mapping[str, Any], wanted: RecordedCall) -> dict[str, Any]:
    spoken = {"name": wanted.tool, "arguments": as_json(wanted.arguments)}
    return {**raw, "function": spoken}


def _arguments(given: Any) -> dict[str, Any]:
    try:
        arguments = msgspec.json.decode(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}
