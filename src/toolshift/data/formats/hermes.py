"""Hermes function calling: `<tools>`, `<tool_call>` and `<tool_response>` inside of texts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from toolshift.core.values import as_list
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
            _CALL.search(value) or (turn.get("from") == "system" and _TOOLS.search(value))
            for turn in turns
            if isinstance(value := turn.get("value"), str)
        )

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """The conversation of a row."""
        turns = turns_of(row)
        messages: list[Message] = []
        for place, turn in enumerate(turns):
            messages += _messages(turn, place)
        holder, match = _holder(turns)
        if match:
            value = turns[holder]["value"]
            text = f"{value[: match.start()]}{TOOLS_HERE}{value[match.end() :]}"
            messages = [
                msgspec.structs.replace(said, text=text) if said.source == holder else said
                for said in messages
            ]
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
        usual = _like(turns)
        for group in _grouped(messages):
            first = group[0]
            raw = turns[first.source] if row and first.source is not None else {"value": ""}
            before = _list_in(raw["value"])
            told = _value(group, tools, before, _like([raw], usual))
            speaker = {"user": "human", "assistant": "gpt"}.get(first.role, first.role)
            written.append(written_turn(first, told, raw, speaker))
        out = {**(row or {}), "conversations": written}
        if row and "tools" in row:
            listed = row["tools"]
            out["tools"] = encoded(tools, listed) if isinstance(listed, str) else tools
        return out


def _listed(row: Mapping[str, Any], turns: Iterable[Mapping[str, Any]]) -> list[Any]:
    """The tools of a row: its column, else what stands in `<tools>`."""
    if row.get("tools"):
        found = decoded(row["tools"], "the list of tools")
        return as_list(found)
    _, match = _holder(turns)
    return _parsed_tools(match[1].strip()) if match else []


def _holder(turns: Iterable[Mapping[str, Any]]) -> tuple[int, re.Match[str] | None]:
    """The first turn of the system or a user that lists tools, and the list."""
    for place, turn in enumerate(turns):
        match = _list_in(turn["value"]) if ROLES[turn["from"]] in ("system", "user") else None
        if match:
            return place, match
    return -1, None


def _list_in(text: str) -> re.Match[str] | None:
    """The list of tools in a text; `<tools></tools>` alone, as many prompts say, is prose."""
    return next((m for m in _TOOLS.finditer(text) if m[1].lstrip()[:1] in ("[", "{")), None)


def _parsed_tools(text: str) -> list[Any]:
    """A JSON list, or one object a line."""
    if text.startswith("["):
        found = _value_of(text, "the list in <tools>")
        return as_list(found)
    return [_value_of(line, "a tool in <tools>") for line in text.splitlines() if line.strip()]


def _value_of(text: str, what: str) -> Any:
    """JSON, or a Python literal, as older data has it."""
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
        return [Message(role, value, source=place)]
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


class _Like(NamedTuple):
    """How a turn, or a row, writes calls and results.

    Attributes:
        call: what stands in a `<tool_call>`.
        response: what stands in a `<tool_response>`; None where results stand in no tag.
    """

    call: str = ""
    response: str | None = ""


def _like(turns: Iterable[Mapping[str, Any]], usual: _Like = _Like()) -> _Like:
    """How some turns write calls and results; what they do not have is as usual."""
    call, response = "", usual.response
    for turn in reversed(list(turns)):
        role = ROLES.get(turn.get("from", ""))
        if role == "assistant" and (match := _CALL.search(turn["value"])):
            call = match[1]
        elif role == "tool":
            match = _RESPONSE.search(turn["value"])
            response = match[1] if match else None
    return _Like(call or usual.call, response)


_ARGUMENTS_FIRST = re.compile(r"\s*\{\s*['\"]arguments['\"]")
"""As the first data of this form has it; a call keeps its order."""


def _value(
    group: list[Message], tools: list[Any], before: re.Match[str] | None, like: _Like
) -> str:
    first = group[0]
    if first.role == "tool":
        if like.response is None and len(group) == 1 and not first.name:
            return first.text
        return "\n".join(_response(each, like.response or "") for each in group)
    if first.role == "system" or TOOLS_HERE in first.text:
        return _with_tools(first.text, tools, before)
    made = [{"name": call.name, "arguments": call.arguments} for call in first.calls]
    if _ARGUMENTS_FIRST.match(like.call):
        made = [dict(reversed(call.items())) for call in made]
    calls = [_in_tag("tool_call", _inside(call, like.call), like.call) for call in made]
    return "\n".join([*([first.text] if first.text else []), *calls])


def _in_tag(tag: str, text: str, like: str) -> str:
    """A text in a tag, with the space around it that another has there."""
    content = like.strip()
    begin, _, end = like.partition(content) if content else ("\n", "", "\n")
    return f"<{tag}>{begin}{text}{end}</{tag}>"


def _inside(value: Any, like: str) -> str:
    """Data that holds no tag of these, as it stands in one; written as `like` is."""
    written = repr(value) if _LITERAL.match(like) else encoded(value, like)
    return _TAG.sub(r"\\u003c", written)


_LITERAL = re.compile(r"\s*\[?\s*\{\s*'")
"""A literal of Python: JSON has other quotes."""


_TAG = re.compile(r"<(?=/?(?:tools|tool_call|tool_response)>)")


def _response(message: Message, like: str) -> str:
    inner = {"name": message.name, "content": data_of(message.text)} if message.name else None
    return _in_tag("tool_response", _inside(inner, like) if inner else message.text, like)


def _with_tools(text: str, tools: list[Any], before: re.Match[str] | None) -> str:
    """A system text with its tools, written as they were before."""
    inner = before[1] if before else "\n[]\n"
    content = inner.strip()
    begin, _, end = inner.partition(content) if content else (inner, "", "")
    begin, end = f"<tools>{begin}", f"{end}</tools>"
    in_lines = not content.startswith("[")
    told = "\n".join(_inside(tool, content) for tool in tools)
    told = told if in_lines else _inside(tools, content)
    if TOOLS_HERE not in text:
        return text if before else f"{text}\n{begin}{told}{end}"
    return text.replace(TOOLS_HERE, f"{begin}{told}{end}", 1)


HERMES = Hermes()
