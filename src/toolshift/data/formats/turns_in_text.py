"""Conversations that are one text: the turns of a chat template, or of Glaive."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from toolshift.data.conversation import Conversation, Message, Role, Row, RowFault, read_tools
from toolshift.data.formats.openai import tools_column

_ROLES: dict[str, Role] = {
    "system": "system", "developer": "system",
    "user": "user", "human": "user",
    "assistant": "assistant", "model": "assistant", "gpt": "assistant",
    "tool": "tool", "ipython": "tool", "observation": "tool", "tool_response": "tool",
    "function response": "tool",
}  # fmt: skip


class Template(NamedTuple):
    """How a text marks its turns.

    Attributes:
        name: of the template.
        header: what begins a turn; its group is the role.
        end: what ends one.
    """

    name: str
    header: re.Pattern[str]
    end: re.Pattern[str]


def _template(name: str, header: str, end: str) -> Template:
    return Template(name, re.compile(header, re.MULTILINE), re.compile(rf"\s*(?:{end})?\s*\Z"))


_SAID = "|".join(role for role in _ROLES if " " not in role)
TEMPLATES = (
    _template("ChatML", rf"<\|im_start\|>({_SAID})[ \t]*\n", r"<\|im_end\|>"),
    _template(
        "Llama 3",
        rf"<\|start_header_id\|>({_SAID})<\|end_header_id\|>\s*",
        r"<\|(?:eot_id|eom_id|end_of_text)\|>",
    ),
    _template("Llama 4", rf"<\|header_start\|>({_SAID})<\|header_end\|>\s*", r"<\|e\w+\|>"),
    _template("Gemma", rf"<start_of_turn>({_SAID})[ \t]*\n", r"<end_of_turn>"),
    _template("Gemma 4", rf"<\|turn>({_SAID})[ \t]*\n", r"<turn\|>"),
    _template("Granite", rf"<\|start_of_role\|>({_SAID})<\|end_of_role\|>", r"<\|end_of_text\|>"),
    _template("Zephyr, Phi and GLM", rf"^<\|({_SAID})\|>[ \t]*\n?", r"<\|end\|>|</s>"),
)
"""The chat templates that are known in a text."""
GLAIVE = _template("Glaive", r"^(USER|ASSISTANT|FUNCTION RESPONSE):[ ]?", r"<\|endoftext\|>")
_RESULT = re.compile(r"\s*<(tool_response|TOOL_RESPONSE)>\s*")


class Turn(NamedTuple):
    """A turn of a text: what it says, and what stands around that."""

    role: Role
    before: str
    said: str
    after: str


def turns_in(text: str, template: Template) -> tuple[str, list[Turn]]:
    """What stands before the first turn of a text, and the turns."""
    heads = list(template.header.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    turns = [
        _turn(head, text[head.end() : end], template) for head, end in zip(heads, ends, strict=True)
    ]
    return text[: heads[0].start()] if heads else text, turns


def _turn(head: re.Match[str], body: str, template: Template) -> Turn:
    role = _ROLES[head[1].lower()]
    end = template.end.search(body)
    cut = end.start() if end else len(body)
    said, after, before = body[:cut], body[cut:], head[0]
    if role in ("user", "tool") and begins_result(said):
        role = "tool"
        if result := result_in(said):
            before, said, after = before + result[0], result[1], result[2] + after
    return Turn(role, before, said, after)


def begins_result(text: str) -> bool:
    """Whether a text begins with the mark of a result, as some templates write them."""
    return _RESULT.match(text) is not None


def result_in(text: str) -> tuple[str, str, str] | None:
    """What stands before, in and behind the marks of a result, where a text is one result alone."""
    begin = _RESULT.match(text)
    end = re.search(rf"\s*</{begin[1]}>\s*\Z", text) if begin else None
    if begin is None or end is None or text.count(f"<{begin[1]}>") > 1 or end.start() < begin.end():
        return None
    return begin[0], text[begin.end() : end.start()], end[0]


class TurnsInText:
    """Rows in which a conversation is one text.

    Args:
        name: of the format.
        columns: those that hold the text; () for the one that has the marks of a template.
        templates: that it may follow.
    """

    def __init__(
        self, name: str, columns: tuple[str, ...], templates: tuple[Template, ...]
    ) -> None:
        self.name, self._columns, self._templates = name, columns, templates

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Whether a column has the marks of turns, one of them the assistant's."""
        return bool(self._found(row))

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """The turns of a row, their calls still in their texts."""
        column, template = self._one(row)
        _, turns = turns_in(row[column], template)
        messages = [Message(one.role, one.said, source=n) for n, one in enumerate(turns)]
        if isinstance(row.get("system"), str):
            messages.insert(0, Message("system", row["system"]))
        return Conversation(read_tools(row.get(tools_column(row))), tuple(messages))

    def write(self, conversation: Conversation, row: Mapping[str, Any] | None) -> Row:
        """A row; turns that are added are marked as others of their role."""
        if row is None:
            raise RowFault(f"{self.name} is only written in rows that are of it")
        column, template = self._one(row)
        out, (head, turns) = dict(row), turns_in(row[column], template)
        parts = [head]
        for message in conversation.messages:
            if message.role == "system" and message.source is None and "system" in row:
                out["system"] = message.text
                continue
            if not message.learned:
                raise RowFault("one text cannot say which of its turns are not to be learned")
            like = (
                turns[message.source]
                if message.source is not None
                else next((one for one in turns if one.role == message.role), None)
            )
            if like is None:
                raise RowFault(f"no turn of the text shows how {message.role} is marked")
            parts += [like.before, message.text, like.after]
        return {**out, column: "".join(parts)}

    def _found(self, row: Mapping[str, Any]) -> list[tuple[str, Template]]:
        return [
            (name, template)
            for name, value in row.items()
            if isinstance(value, str) and (not self._columns or name in self._columns)
            for template in self._templates
            if "assistant" in {_ROLES[head[1].lower()] for head in template.header.finditer(value)}
        ]

    def _one(self, row: Mapping[str, Any]) -> tuple[str, Template]:
        found = self._found(row)
        if len(found) != 1:
            names = " and ".join(f"{name} ({template.name})" for name, template in found)
            raise RowFault(f"which text is the conversation is not clear: {names or 'none'}")
        return found[0]
