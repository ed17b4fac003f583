"""Hermes function calling: `<tools>`, `<tool_call>` and `<tool_response>` inside of texts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from toolshift.data.conversation import (
    TOOLS_HERE,
    Call,
    Conversation,
    Message,
    Row,
    RowFault,
    arguments_of,
    data_of,
    decoded,
    encoded,
    in_order,
    read_tools,
    rewrapped,
)
from toolshift.data.formats.turns import ROLES, has_turns, turns_of, written_turn


def _tagged(tag: str) -> re.Pattern[str]:
    """What stands in a tag; nothing is read twice, however many tags are never closed."""
    return re.compile(rf"<{tag}>([^<]*+(?:<(?!/?{tag}>)[^<]*+)*+)</{tag}>")


_TOOLS, _CALL, _RESPONSE = map(_tagged, ("tools", "tool_call", "tool_response"))


class Hermes:
    """ShareGPT turns in which tools, calls and results stand in tags."""

    name = "hermes"

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Whether any turn has a tag of these, and no turn is a call without one."""
        if not has_turns(row):
            return False
        turns = [turn for turn in row["conversations"] if isinstance(turn, Mapping)]
        return not any(turn.get("from") == "function_call" for turn in turns) and any(
            (_TOOLS if turn.get("from") == "system" else _CALL).search(str(turn.get("value")))
            for turn in turns
        )

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """The conversation of a row.

        Args:
            row: as the file has it.

        Returns:
            What was said.

        Raises:
            RowFault: where it cannot be read.
        """
        turns = turns_of(row)
        messages: list[Message] = []
        for place, turn in enumerate(turns):
            messages += _messages(turn, place)
        return Conversation(read_tools(_listed(row, turns)), tuple(messages))

    def write(self, conversation: Conversation, row: Mapping[str, Any] | None) -> Row:
        """A row; without one to follow, the tools stand in the system turn."""
        turns = turns_of(row) if row else []
        raws = _listed(row, turns) if row else []
        tools = [rewrapped(tool, raws) for tool in conversation.tools]
        messages = list(in_order(conversation.messages))
        if not row and not any(each.role == "system" for each in messages):
            messages.insert(0, Message("system", "You may call these tools."))
        written: list[dict[str, Any]] = []
        for group in _grouped(messages):
            first = group[0]
            raw = turns[first.source] if row and first.source is not None else {"value": ""}
            before = _TOOLS.search(raw["value"])
            told = _value(group, tools, before)
            speaker = {"user": "human", "assistant": "gpt"}.get(first.role, first.role)
            written.append(written_turn(first, told, raw, speaker))
        out = {**(row or {}), "conversations": written}
        if row and "tools" in row:
            out["tools"] = encoded(tools) if isinstance(row["tools"], str) else tools
        return out


def _listed(row: Mapping[str, Any], turns: Iterable[Mapping[str, Any]]) -> list[Any]:
    """The tools of a row: its column, else what stands in `<tools>`."""
    if row.get("tools"):
        found = decoded(row["tools"], "the list of tools")
        return found if isinstance(found, list) else []
    for turn in turns:
        match = _TOOLS.search(turn["value"])
        if match:
            return _parsed_tools(match[1].strip())
    return []


def _parsed_tools(text: str) -> list[Any]:
    """A JSON list, or one object a line."""
    if text.startswith("["):
        found = _value_of(text, "the list in <tools>")
        return found if isinstance(found, list) else []
    return [_value_of(line, "a tool in <tools>") for line in text.splitlines() if line.strip()]


def _value_of(text: str, what: str) -> Any:
    """JSON, or a Python literal, as older data has it.

    Raises:
        RowFault: where it is neither.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise RowFault(f"{what} is neither JSON nor a Python literal: {text[:80]}") from None


def _messages(turn: Mapping[str, Any], place: int) -> list[Message]:
    role, value = ROLES[turn["from"]], turn["value"]
    learned = turn.get("weight") != 0
    if role == "tool":
        return _results(value, place)
    if role != "assistant":
        return [Message(role, _TOOLS.sub(TOOLS_HERE, value, count=1), source=place)]
    calls = tuple(_call(match[1]) for match in _CALL.finditer(value))
    return [Message(role, _CALL.sub("", value).strip(), calls, learned=learned, source=place)]


def _call(text: str) -> Call:
    found = _value_of(text, "a <tool_call>")
    if not isinstance(found, Mapping) or not isinstance(found.get("name"), str):
        raise RowFault(f"a <tool_call> has no name: {text[:80]}")
    return Call(found["name"], arguments_of(found.get("arguments"), found["name"]))


def _results(value: str, place: int) -> list[Message]:
    """The results of a turn; what stands in no tag is one result."""
    found = []
    for match in _RESPONSE.finditer(value):
        name, content = "", match[1].strip()
        try:
            said = msgspec.json.decode(content)
        except (msgspec.DecodeError, RecursionError):
            said = None
        if isinstance(said, dict) and {"name", "content"} <= said.keys():
            inner = said["content"]
            name, content = str(said["name"]), inner if isinstance(inner, str) else encoded(inner)
        found.append(Message("tool", content, name=name, source=place))
    return found or [Message("tool", value, source=place)]


def _grouped(messages: Iterable[Message]) -> list[list[Message]]:
    """The messages turn by turn: results that stand in a row are one turn."""
    groups: list[list[Message]] = []
    for each in messages:
        if groups and each.role == "tool" and groups[-1][0].role == "tool":
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _value(group: list[Message], tools: list[Any], before: re.Match[str] | None) -> str:
    first = group[0]
    if first.role == "tool":
        return "\n".join(_response(each) for each in group)
    if first.role == "system":
        return _with_tools(first.text, tools, before)
    calls = [
        f"<tool_call>\n{_inside({'name': c.name, 'arguments': c.arguments})}\n</tool_call>"
        for c in first.calls
    ]
    return "\n".join([*([first.text] if first.text else []), *calls])


def _inside(value: Any) -> str:
    """JSON that holds no tag of these, as it stands in one."""
    return _TAG.sub(r"\\u003c", encoded(value))


_TAG = re.compile(r"<(?=/?(?:tools|tool_call|tool_response)>)")


def _response(message: Message) -> str:
    inner = {"name": message.name, "content": data_of(message.text)} if message.name else None
    return f"<tool_response>\n{_inside(inner) if inner else message.text}\n</tool_response>"


def _with_tools(text: str, tools: list[Any], before: re.Match[str] | None) -> str:
    """A system text with its tools, written as they were before."""
    inner = before[1] if before else "\n[]\n"
    content = inner.strip()
    begin, _, end = inner.partition(content) if content else (inner, "", "")
    begin, end = f"<tools>{begin}", f"{end}</tools>"
    in_lines = not content.startswith("[")
    told = "\n".join(map(_inside, tools)) if in_lines else _inside(tools)
    if TOOLS_HERE not in text:
        return text if before else f"{text}\n{begin}{told}{end}"
    return text.replace(TOOLS_HERE, f"{begin}{told}{end}", 1)


HERMES = Hermes()
