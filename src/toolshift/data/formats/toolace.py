"""ToolACE: tools as JSON in the system text, calls as `[name(argument="value"), ...]`."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from toolshift.data.conversation import (
    TOOLS_HERE,
    Call,
    Conversation,
    Message,
    Row,
    RowFault,
    ToolShown,
    data_of,
    encoded,
    in_order,
    joined,
)
from toolshift.data.formats.schemas import as_json_schema, in_words, rewritten, words_in
from toolshift.data.formats.turns import ROLES, has_turns, turns_of, written_turn

_WORDS = {"true": "True", "false": "False", "null": "None"}
_WORD = re.compile(r"""'(?:\\.|[^'\\])*+'|"(?:\\.|[^"\\])*+"|\b(true|false|null)\b""", re.DOTALL)
"""Words of JSON, and texts in quotes, in which they stay."""
_PREFACE = "You can call these functions, as [name(argument=value)]. Here they are in JSON:\n"


class ToolACE:
    """`{"system", "conversations"}`."""

    name = "toolace"

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Whether the row has turns and a system text with a list of functions."""
        return has_turns(row) and isinstance(row.get("system"), str) and "[{" in row["system"]

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """The conversation of a row."""
        raws, begin, end = _listed(row["system"])
        tools = tuple(_tool(raw, place) for place, raw in enumerate(raws))
        names = [tool.function["name"] for tool in tools]
        said = _marked(row["system"], begin, end)
        messages = [Message("system", said)] if said.strip() != TOOLS_HERE else []
        for place, turn in enumerate(turns_of(row)):
            messages += _messages(turn, place, names)
        return Conversation(tools, joined(messages))

    def write(self, conversation: Conversation, row: Mapping[str, Any] | None) -> Row:
        """A row."""
        turns = turns_of(row) if row else []
        conversation = _nested(conversation)
        in_turns = [m for m in conversation.messages if not _in_system(m, row)]
        written: list[dict[str, Any]] = []
        waiting: list[Message] = []
        for each in in_order(tuple(in_turns)):
            if each.role == "tool":
                waiting.append(each)
                continue
            written += _results(waiting, turns)
            waiting = []
            raw = turns[each.source] if row and each.source is not None else {}
            if each.calls and each.text:  # a turn of calls holds nothing else
                written.append(written_turn(each, each.text, {}, each.role))
            written.append(written_turn(each, _value(each), raw, each.role))
        written += _results(waiting, turns)
        return {**(row or {}), "system": _system(conversation, row), "conversations": written}


def _in_system(message: Message, row: Mapping[str, Any] | None) -> bool:
    """Whether a message stands in the system text; others of the system are turns of the row."""
    return message.role == "system" and (not row or message.source is None)


def _system(conversation: Conversation, row: Mapping[str, Any] | None) -> str:
    """The system text of a row, with its functions where they stood."""
    like = row["system"] if row else _PREFACE
    raws, begin, end = _listed(like) if row else ([], len(like), len(like))
    tools = encoded([_written(tool, raws) for tool in conversation.tools], like[begin:end])
    own = [m.text for m in conversation.messages if _in_system(m, row)]
    said = "\n".join(own) if own else _marked(like, begin, end)
    said = said if TOOLS_HERE in said else f"{said}\n{TOOLS_HERE}"
    preface = _PREFACE if like[:begin].endswith(_PREFACE) else ""
    return said.replace(TOOLS_HERE, f"{preface}{tools}", 1)


def _marked(system: str, begin: int, end: int) -> str:
    """A system text with a mark for its functions, and for our own sentence before them."""
    return f"{system[:begin].removesuffix(_PREFACE)}{TOOLS_HERE}{system[end:]}"


def _listed(system: str) -> tuple[list[Any], int, int]:
    """The list of functions in a system text, and where it begins and ends."""
    begin = system.find("[{")
    end = _end_of_list(system, begin)
    try:
        found = msgspec.json.decode(system[begin:end])
    except (msgspec.DecodeError, RecursionError) as fault:
        raise RowFault(f"the functions in the system text are not JSON ({fault})") from None
    if not isinstance(found, list):
        raise RowFault("the functions in the system text are no list")
    return found, begin, end


def _end_of_list(text: str, begin: int) -> int:
    """Where the bracket that opens at `begin` is closed, strings apart."""
    depth, quoted, place = 0, False, begin
    while place < len(text):
        sign = text[place]
        if quoted:
            place += sign == "\\"
            quoted = sign != '"'
        elif sign == '"':
            quoted = True
        else:
            depth += (sign in "[{") - (sign in "]}")
            if not depth:
                return place + 1
        place += 1
    return len(text)


def _tool(raw: Any, place: int) -> ToolShown:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("name"), str):
        raise RowFault(f"function {place} has no name")
    schema = _read(raw.get(_key(raw)))
    told = str(raw.get("description") or "")
    function = {"name": raw["name"], "description": told, "parameters": schema}
    return ToolShown(function, place, {name: name for name in schema.get("properties") or {}})


def _key(raw: Mapping[str, Any]) -> str:
    """Where a function has its parameters."""
    return "arguments" if raw.get("arguments") and not raw.get("parameters") else "parameters"


def _read(parameters: Any) -> dict[str, Any]:
    schema = as_json_schema(parameters) if isinstance(parameters, Mapping) else {}
    return {"type": "object", **schema}


def _written(tool: ToolShown, raws: list[Any]) -> dict[str, Any]:
    if not raws:
        return tool.function
    if tool.source is None:
        return _added(tool.function, raws)
    raw, schema = raws[tool.source], tool.function.get("parameters") or {}
    key = _key(raw)
    after = before = raw.get(key) or {}
    if schema.get("properties") or before.get("properties"):
        after = rewritten(schema, _read(before), before, words_in(raws), tool.params)
    head = {"name": tool.function["name"], "description": tool.function.get("description", "")}
    return {**raw, **head, key: after}


def _added(function: Mapping[str, Any], raws: list[Any]) -> dict[str, Any]:
    """A function that was added, as the others are written, so that this does not tell it apart."""
    like = raws[0]
    told = {**in_words(function, raws), **{key: None for key in like if like[key] is None}}
    if "arguments" in like and "parameters" not in like and "parameters" in told:
        told["arguments"] = told.pop("parameters")
    return told


# -- names with dots -----------------------------------------------------------------------------


def _nested(conversation: Conversation) -> Conversation:
    """A conversation in which an argument `request.id` is `id` in the object `request`.

    No argument of a call in Python has a dot in its name. Names that were read stay as they are.
    """
    dotted = {tool.function["name"]: _dotted(tool) for tool in conversation.tools}
    if not any(dotted.values()):
        return conversation
    tools = tuple(
        msgspec.structs.replace(tool, function=_nested_in(tool.function, names)) if names else tool
        for tool, names in zip(conversation.tools, dotted.values(), strict=True)
    )
    messages = tuple(
        msgspec.structs.replace(
            said,
            calls=tuple(
                Call(call.name, _gathered(call.arguments, dotted.get(call.name, set())), call.id)
                for call in said.calls
            ),
        )
        for said in conversation.messages
    )
    return Conversation(tools, messages)


def _dotted(tool: ToolShown) -> set[str]:
    """The parameters with dots that were read under other names."""
    shown = (tool.function.get("parameters") or {}).get("properties") or {}
    new = (name for name in shown if "." in name and tool.params.get(name) != name)
    return {name for name in new if name.partition(".")[0] not in shown}


def _gathered(values: Mapping[str, Any], dotted: set[str]) -> dict[str, Any]:
    """What stands under names with dots, in objects."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name in dotted:
            whole, _, part = name.partition(".")
            found.setdefault(whole, {})[part] = value
        else:
            found[name] = value
    return found


def _nested_in(function: Mapping[str, Any], dotted: set[str]) -> dict[str, Any]:
    """A function whose schema takes such objects."""
    schema = function["parameters"]
    wholes = {name.partition(".")[0] for name in dotted}
    needed = _gathered(dict.fromkeys(schema.get("required") or ()), dotted)
    properties = {
        name: {"type": "object", "properties": one, "required": list(needed.get(name, ()))}
        if name in wholes
        else one
        for name, one in _gathered(schema["properties"], dotted).items()
    }
    inner = {**schema, "properties": properties, "required": list(needed)}
    return {**function, "parameters": inner}


# -- calls -----------------------------------------------------------------------------------------


def _messages(turn: Mapping[str, Any], place: int, names: list[str]) -> list[Message]:
    role, value = ROLES[turn["from"]], turn["value"]
    learned = turn.get("weight") != 0
    if role == "assistant":
        calls = read_calls(value, names)
        if calls:
            return [Message(role, "", calls, learned=learned, source=place)]
    if role == "tool":
        return [
            Message("tool", text, name=name, source=place) for name, text in _read_results(value)
        ]
    return [Message(role, value, learned=learned, source=place)]


def read_calls(text: str, names: list[str]) -> tuple[Call, ...]:
    """The calls of a text such as `[get_price(item="tea", count=2)]`; none where it is prose."""
    said = text.strip()
    known = any(said.startswith(f"[{name}(") for name in names)
    if not said.endswith(")]") or not (known or _CALLED.match(said)):
        return ()
    try:
        return _calls(said)
    except RowFault:
        if known:
            raise
        return ()  # prose in brackets


def _calls(said: str) -> tuple[Call, ...]:
    calls, place = [], 1
    while place < len(said) - 1:
        opened = said.find("(", place)
        if opened < 0:
            raise RowFault(f"a call has no arguments: {said[place : place + 60]}")
        closed = _closing(said, opened)
        name = said[place:opened].strip(" ,")
        calls.append(Call(name, _arguments(said[opened + 1 : closed], name)))
        place = closed + 1
        while place < len(said) - 1 and said[place] in ", \n":
            place += 1
    return tuple(calls)


_CALLED = re.compile(r"\[[\w .:/-]+\(")


def _closing(text: str, opened: int) -> int:
    """Where a bracket is closed, strings apart."""
    depth, quote, place = 0, "", opened
    while place < len(text):
        sign = text[place]
        if quote:
            place += sign == "\\"
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        else:
            depth += (sign in "([{") - (sign in ")]}")
            if not depth:
                return place
        place += 1
    raise RowFault(f"a call is not closed: {text[opened : opened + 60]}")


def _arguments(text: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in _split(text):
        key, sign, value = part.partition("=")
        if not sign or not key.strip():
            raise RowFault(f"{name}: an argument has no name: {part.strip()[:60]}")
        found[key.strip()] = _literal(value.strip(), name)
    return found


def _split(text: str) -> list[str]:
    """The parts of a list that commas divide, brackets and strings apart."""
    parts, depth, quote, begin, place = [], 0, "", 0, 0
    while place < len(text):
        sign = text[place]
        if quote:
            place += sign == "\\"
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign == "," and not depth:
            parts.append(text[begin:place])
            begin = place + 1
        else:
            depth += (sign in "([{") - (sign in ")]}")
        place += 1
    return [part for part in (*parts, text[begin:]) if part.strip()]


def _literal(text: str, name: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return ast.literal_eval(_WORD.sub(lambda m: _WORDS[m[1]] if m[1] else m[0], text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise RowFault(f"{name}: the value {text[:60]} cannot be read") from None


def _read_results(value: str) -> list[tuple[str, str]]:
    """Name and text of each result of a turn."""
    try:
        found = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return [("", value)]
    if not isinstance(found, list) or not all(
        isinstance(one, dict) and "name" in one for one in found
    ):
        return [("", value)]
    out = []
    for one in found:
        inner = one.get("results", one.get("data", one))
        out.append((str(one["name"]), inner if isinstance(inner, str) else encoded(inner)))
    return out


def _results(waiting: list[Message], turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The turn of some results."""
    if not waiting:
        return []
    first = waiting[0]
    raw = turns[first.source] if turns and first.source is not None else {}
    if len(waiting) == 1 and not first.name:
        return [written_turn(first, first.text, raw, "tool")]
    told = [{"name": each.name, "results": data_of(each.text)} for each in waiting]
    some = next((turn["value"] for turn in turns if ROLES[turn["from"]] == "tool"), "")
    return [written_turn(first, encoded(told, raw.get("value", some)), raw, "tool")]


def _value(message: Message) -> str:
    if not message.calls:
        return message.text
    said = []
    for call in message.calls:
        told = ", ".join(f"{key}={_spoken(value)}" for key, value in call.arguments.items())
        said.append(f"{call.name}({told})")
    return f"[{', '.join(said)}]"


def _spoken(value: Any) -> str:
    """A value as a call states it: text in double quotes, the rest as Python writes it."""
    return encoded(value) if isinstance(value, str) else repr(value)


TOOLACE = ToolACE()
