"""Rows that are requests in a dialect of models: Anthropic's blocks, and others of their kind.

The dialect's codec reads a row in the form of chat completions, and the format of OpenAI does the
rest. Texts and thoughts are read part by part, so that each goes back into the part that it came
in. What stands beside them (seals, pictures, marks of a cache) goes back as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import islice
from typing import Any, Protocol

from toolshift.data.conversation import (
    PART_HERE,
    Conversation,
    Row,
    RowFault,
    parts_in,
    portable,
    with_ids,
)
from toolshift.data.formats.openai import OPENAI, THOUGHTS
from toolshift.dialects import DIALECTS, anthropic, gemini
from toolshift.dialects.form import AGAIN, LIKE, WIRE, Dialect, Message, Request


class Parts(Protocol):
    """What a dialect tells of the parts of a message of the assistant."""

    def texts_of(self, message: Message) -> list[str]:
        """What is said, part by part."""
        ...

    def thoughts_of(self, message: Message) -> list[str]:
        """What was thought in words, part by part."""
        ...

    def with_thoughts(self, message: Message, thoughts: Sequence[str]) -> Message:
        """A message with other thoughts; a `ValueError` where one is signed."""
        ...


class DialectRows:
    """The format of rows that are requests in a dialect.

    Args:
        name: of the dialect, and of the format.
        turns: the column of its messages.
        holds: whether a row is of it, by what is in it.
        parts: what the dialect tells of the parts of a message.
    """

    def __init__(
        self, name: str, turns: str, holds: Callable[[Mapping[str, Any]], bool], parts: Parts
    ) -> None:
        self.name, self._turns, self._holds, self._parts = name, turns, holds, parts

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Whether a row is of this format, by what is in it."""
        return self._holds(row)

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """The conversation of a row."""
        return OPENAI.read(self._as_chat(self._request(row)))

    def write(self, conversation: Conversation, row: Mapping[str, Any] | None) -> Row:
        """A row of a conversation; in one that is given, all else stays as it was."""
        if row is None:
            written = OPENAI.write(portable(conversation), None)
            asked = Request(written["messages"], written["tools"])
            out = deepcopy(self._dialect.write({}, asked))  # nothing is shared with other rows
            return self._weighed(out, written["messages"])
        asked = self._request(row)
        linked = Conversation(conversation.tools, with_ids(conversation.messages))
        written = OPENAI.write(linked, self._as_chat(asked))
        choice = written.get("tool_choice")
        said = list(_in_one_form(self._each_once(written["messages"])))
        request = Request(said, written["tools"], choice, asked.stream)
        return self._weighed(deepcopy(self._dialect.write(dict(row), request)), request.messages)

    def _as_chat(self, asked: Request) -> Row:
        choice = {} if asked.choice is None else {"tool_choice": asked.choice}
        messages = [
            self._spoken(message) if message.get("role") == "assistant" else message
            for message in asked.messages
        ]
        return {"messages": messages, "tools": asked.tools, **choice}

    def _spoken(self, message: Message) -> Message:
        """A message of the assistant with its texts and thoughts apart, as they are renamed."""
        out = dict(message)
        texts, thoughts = self._parts.texts_of(message), self._parts.thoughts_of(message)
        if len(texts) > 1:
            out["content"] = [{"type": "text", "text": text} for text in texts]
        if thoughts:
            out[_THOUGHT] = PART_HERE.join(thoughts)
        return out if all(map(_learned, _came_in(message))) else {**out, _WEIGHT: 0}

    def _each_once(self, messages: list[Message]) -> Iterator[Message]:
        """Messages with their thoughts as they are now; of one that became two, the first has all.

        What stands beside the calls of a message is said once.
        """
        met = set[int]()
        for message in messages:
            wire = message.get(WIRE)
            if wire is None or message.get("role") != "assistant":
                yield message
            elif id(wire) in met:
                yield {**message, WIRE: {**wire, AGAIN: True}}
            else:
                met.add(id(wire))
                yield self._as_thought(message)

    def _as_thought(self, message: Message) -> Message:
        before, now = self._parts.thoughts_of(message), parts_in(message.get(_THOUGHT) or "")
        if before == now or len(before) != len(now):
            return message
        try:
            return self._parts.with_thoughts(message, now)
        except ValueError as signed:
            raise RowFault(str(signed)) from None

    def _weighed(self, row: Row, said: list[Any]) -> Row:
        """A row whose turns say which of them are not learned; dialects have no place for that."""
        turns = (turn for turn in row[self._turns] if turn.get("role") in _MODEL)
        for message in said:
            if message.get("role") != "assistant":
                continue
            alone = self._dialect.write({}, Request([message], []))[self._turns]
            for turn in islice(turns, len(alone)):
                if message.get(_WEIGHT) == 0:
                    turn[_WEIGHT] = 0
                elif turn.get(_WEIGHT) == 0:
                    del turn[_WEIGHT]
        return row

    @property
    def _dialect(self) -> Dialect:
        return DIALECTS.find(self.name)

    def _request(self, row: Mapping[str, Any]) -> Request:
        if wrong := self._dialect.unshifted(_settings_aside(row), ""):
            raise RowFault(f"it holds {wrong}, which is not read")
        return self._dialect.read(dict(row))


def _in_one_form(messages: Iterable[Message]) -> Iterator[Message]:
    """Messages of which results that a shift has added take the form of the recorded ones."""
    said = list(messages)
    recorded = (m[WIRE] for m in said if m.get("role") == "tool" and WIRE in m)
    like = next(recorded, None)
    for message in said:
        added = like and message.get("role") == "tool" and WIRE not in message
        yield {**message, WIRE: {LIKE: like}} if added else message


_THOUGHT = THOUGHTS[0]
_WEIGHT = "weight"
_MODEL = ("assistant", "model")
"""The role of the model, as Anthropic and Gemini have it."""


def _learned(turn: Mapping[str, Any]) -> bool:
    return bool(turn.get(_WEIGHT) != 0)


def _came_in(message: Mapping[str, Any]) -> list[Any]:
    """The turns of the row that a message of the assistant was read from."""
    wire = message.get(WIRE) or {}
    return [turn for turn in (wire.get("raw"), *(wire.get("contents") or ())) if turn]


_CONVERSATION = frozenset(
    (
        "messages", "system", "tools", "tool_choice",
        "contents", "systemInstruction", "system_instruction", "toolConfig", "tool_config",
    )
)  # fmt: skip


def _settings_aside(row: Mapping[str, Any]) -> Row:
    """A row without the columns of a data set, which are no part of a request."""
    return {name: value for name, value in row.items() if name in _CONVERSATION}


def _has_blocks(row: Mapping[str, Any]) -> bool:
    """Whether a row has calls or results in blocks, or tools and a system as requests have them."""
    said = row.get("messages")
    if not isinstance(said, list):
        return False
    contents = [each.get("content") for each in said if isinstance(each, Mapping)]
    blocks = [b for c in contents if isinstance(c, list) for b in c if isinstance(b, Mapping)]
    if any(block.get("type") in ("tool_use", "tool_result") for block in blocks):
        return True
    tools = row.get("tools")
    theirs = isinstance(tools, list) and any(
        isinstance(tool, Mapping) and "input_schema" in tool for tool in tools
    )
    spoken = any(isinstance(each, Mapping) and "tool_calls" in each for each in said)
    return theirs and "system" in row and not spoken


def _has_parts(row: Mapping[str, Any]) -> bool:
    """Whether a row has contents of parts, as Gemini's requests and its tuning data have them."""
    contents = row.get("contents")
    return isinstance(contents, list) and any(
        isinstance(each, Mapping) and isinstance(each.get("parts"), list) for each in contents
    )


ANTHROPIC_ROWS = DialectRows("anthropic", "messages", _has_blocks, anthropic)
GEMINI_ROWS = DialectRows("gemini", "contents", _has_parts, gemini)
