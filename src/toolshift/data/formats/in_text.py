"""Formats whose calls, and often tools, stand in texts: Glaive, Nemotron, When2Call, templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from toolshift.core.calls import LARGEST
from toolshift.data.conversation import (
    TOOLS_HERE,
    Conversation,
    Format,
    Message,
    Row,
    RowFault,
    read_tools,
)
from toolshift.data.formats.calls_in_text import Forms, Reader, Region, marked, regions_of
from toolshift.data.formats.glaive_calls import glaive_regions
from toolshift.data.formats.openai import OPENAI
from toolshift.data.formats.tools_in_text import Listed, tools_in, written
from toolshift.data.formats.turns_in_text import (
    GLAIVE,
    TEMPLATES,
    TurnsInText,
    begins_result,
    result_in,
)
from toolshift.lm.call_texts.tools import Tools


class InText:
    """A format of messages, with the calls in the texts of the assistant.

    Args:
        name: of the format.
        inner: what reads and writes the messages.
        reader: what finds calls in a text.
        needs_calls: whether a row without calls is of another format.
    """

    def __init__(
        self, name: str, inner: Format, reader: Reader = regions_of, needs_calls: bool = False
    ) -> None:
        self.name, self._inner, self._reader, self._needs = name, inner, reader, needs_calls

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Whether the messages are there, and calls in their texts where it needs some."""
        if not self._inner.recognises(row):
            return False
        if not self._needs:
            return True
        try:
            said = self._inner.read(row)
            return not any(message.calls for message in said.messages) and any(
                self._regions(said, _shown(said)[0])
            )
        except RowFault as fault:
            return "in its text" in str(fault)

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """The conversation of a row, with marks where tools and calls stand."""
        said = self._inner.read(row)
        shown, place, listed = _shown(said)
        messages = []
        for number, message in enumerate(said.messages):
            regions = self._in(message, shown)
            text = marked(message.text, regions)
            if listed and number == place:
                text = f"{text[: listed.begin]}{TOOLS_HERE}{text[listed.end :]}"
            calls = tuple(call for region in regions for call in region.calls)
            messages.append(msgspec.structs.replace(message, text=text, calls=calls))
        return Conversation(shown, tuple(messages))

    def write(self, conversation: Conversation, row: Mapping[str, Any] | None) -> Row:
        """A row: what stood in its texts stands there again, in the form that it had."""
        if row is None:
            raise RowFault(f"{self.name} is only written in rows that are of it")
        said = self._inner.read(row)
        shown, place, listed = _shown(said)
        before = {
            message.source: [(message.text[r.begin : r.end], r) for r in self._in(message, shown)]
            for message in said.messages
        }
        usual = next((parts[0][0] for parts in before.values() if parts), "")
        now = Tools([tool.function for tool in conversation.tools])
        forms = Forms(self._reader, now, usual)
        if any(m.role == "tool" for m in conversation.messages) and not any(
            m.role == "tool" for m in said.messages
        ):
            raise RowFault("no message of the row shows how results are written")
        messages = []
        for message in conversation.messages:
            text = message.text
            if listed and TOOLS_HERE in text:
                told = written(conversation.tools, said.messages[place].text, listed)
                text = text.replace(TOOLS_HERE, told, 1)
            if message.role == "assistant":
                parts = before.get(message.source, []) if message.source is not None else []
                text = forms.said(text, message.calls, parts)
            messages.append(msgspec.structs.replace(message, text=text, calls=()))
        tools = () if listed else conversation.tools
        return self._inner.write(Conversation(tools, tuple(messages)), row)

    def _in(self, message: Message, shown: Any) -> list[Region]:
        if message.role != "assistant" or len(message.text) > LARGEST:
            return []
        return self._reader(message.text, Tools([tool.function for tool in shown]))

    def _regions(self, said: Conversation, shown: Any) -> list[Region]:
        return [region for message in said.messages for region in self._in(message, shown)]


def _shown(said: Conversation) -> tuple[Any, int, Listed | None]:
    """The tools of a conversation, and the message and the place in it where they stand."""
    if said.tools:
        return said.tools, -1, None
    for place, message in enumerate(said.messages):
        found = tools_in(message.text) if message.role in ("system", "user") else None
        if found:
            return read_tools(found.raws), place, found
    return said.tools, -1, None


class ResultsOfUsers:
    """Messages in which a turn of the user is a result where it says so: `<tool_response>`.

    Some chat templates write the results of calls so, and rows that are made by them do too.
    """

    name = OPENAI.name

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Whether the row has messages with roles."""
        return OPENAI.recognises(row)

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """The conversation of a row; the marks of a result are none of what it says."""
        said = OPENAI.read(row)
        return msgspec.structs.replace(said, messages=tuple(map(_as_result, said.messages)))

    def write(self, conversation: Conversation, row: Mapping[str, Any] | None) -> Row:
        """A row; results are turns of the user where those of the row are."""
        said = OPENAI.read(row).messages if row else ()
        marks = {m.source: result_in(m.text) or _WHOLE for m in said if _is_result(m)}
        usual = next((found for found in marks.values() if found is not _WHOLE), None)
        messages = []
        for message in conversation.messages:
            told = message.role == "tool" and bool(marks)
            if told and message.source is None and usual is None:
                raise RowFault("no message of the row shows how results are written")
            if told and (message.source is None or message.source in marks):
                begin, _, end = marks.get(message.source) or usual or _WHOLE
                text = f"{begin}{message.text}{end}"
                messages.append(Message("user", text, source=message.source))
            else:
                messages.append(message)
        return OPENAI.write(msgspec.structs.replace(conversation, messages=tuple(messages)), row)


_WHOLE = ("", "", "")
"""What stands around several results in one turn: they are one text, with their marks."""


def _is_result(message: Message) -> bool:
    return message.role == "user" and not message.more and begins_result(message.text)


def _as_result(message: Message) -> Message:
    if not _is_result(message):
        return message
    found = result_in(message.text)
    return msgspec.structs.replace(message, role="tool", text=found[1] if found else message.text)


CALLS_IN_TEXT_ROWS = InText("calls-in-text", ResultsOfUsers(), needs_calls=True)
GLAIVE_ROWS = InText("glaive", TurnsInText("glaive", ("chat",), (GLAIVE,)), glaive_regions)
TEMPLATED_ROWS = InText("chat-template", TurnsInText("chat-template", (), TEMPLATES))
