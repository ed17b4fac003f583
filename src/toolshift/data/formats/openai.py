"""OpenAI messages with tools, and TRL's columns `messages` and `tools`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from toolshift.data.conversation import (
    PART_HERE,
    Call,
    Conversation,
    Message,
    Role,
    Row,
    RowFault,
    ToolList,
    arguments_of,
    decoded,
    encoded,
    function_of,
    lists_tools,
    literal,
    parts_in,
    read_tools,
    rewrapped,
    with_ids,
    written_like,
)

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
    "ipython": "tool",
    "tool_call": "assistant",
    "tool_response": "tool",
}
_CALLING = "tool_call"
"""The role of a turn that is one call, as JSON in its content: Toucan, and others of ms-swift."""


THOUGHTS = ("reasoning_content", "reasoning", "thinking")
"""Where rows keep what the assistant thought before it spoke."""


class OpenAI:
    """`{"messages": [...], "tools": [...]}`; tools, too, as JSON in a string, as TRL takes them."""

    name = "openai"

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Whether the row has messages with roles."""
        said = row.get("messages")
        if isinstance(said, str):
            return said.lstrip().startswith("[")
        return isinstance(said, list) and (
            not said or any(isinstance(each, Mapping) and "role" in each for each in said)
        )

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """The conversation of a row."""
        said = decoded(row.get("messages"), "messages")
        if not isinstance(said, list):
            raise RowFault("messages is no list")
        tools = ToolList.of(read_tools(row.get(tools_column(row))))
        messages = tuple(_message(raw, place, tools) for place, raw in enumerate(said))
        return Conversation(tools, messages)

    def write(self, conversation: Conversation, row: Mapping[str, Any] | None) -> Row:
        """A row; calls hold their arguments as the row had them, else as JSON strings."""
        column = tools_column(row) if row else "tools"
        raws = decoded(row.get(column) or [], "the list of tools") if row else []
        said = decoded(row.get("messages"), "messages") if row else []
        tools: Any = [rewrapped(tool, raws) for tool in conversation.tools]
        like = _Like(
            any(map(_holds_objects, said)),
            _in_parts(said),
            _arguments_in(said),
            _is_old(said),
            next((each["content"] for each in said if each.get("role") == _CALLING), ""),
            next((each["role"] for each in said if _ROLES[each["role"]] == "tool"), "tool"),
            _in_parts([each for each in said if _ROLES[each["role"]] == "tool"]),
        )
        messages: Any = [
            _written(each, said[each.source] if row and each.source is not None else {}, like)
            for each in (conversation.messages if row else with_ids(conversation.messages))
        ]
        if row and isinstance(row.get(column), str):
            tools = encoded(tools, row[column])
        if row and isinstance(row.get("messages"), str):
            messages = encoded(messages, row["messages"])
        out = {**(row or {}), "messages": messages}
        if tools or not row or row.get(column) is not None:
            out[column] = tools
        for key in ("tool_choice", "function_call"):
            if key in out:
                out[key] = _choosing(out[key], partial(_now, conversation, raws, key))
                self._check_chosen(key, conversation, row or {}, out[key])
        return out

    def _check_chosen(
        self, key: str, conversation: Conversation, row: Mapping[str, Any], choice: Any
    ) -> None:
        """Checks that what is learned calls no tool beside those that a row allows, if it did so.

        A row may be asked for one tool, and a shift calls another one first, or in its place.
        """
        before, now = _chosen(row.get(key)), _chosen(choice)
        if not now or not _learned_calls(self.read(row)) <= before:
            return
        for other in sorted(_learned_calls(conversation) - now):
            raise RowFault(f"{key} allows {', '.join(sorted(now))}, and {other} would be called")


def tools_column(row: Mapping[str, Any]) -> str:
    """The column that lists the tools: `tools`, or where that is empty, the one that holds some."""
    if row.get("tools") not in (None, "", [], "[]"):
        return "tools"
    found = [
        name
        for name, value in row.items()
        if name not in _NO_TOOLS and lists_tools(value, needs_parameters=name != _OLD_TOOLS)
    ]
    if len(found) > 1:
        raise RowFault(f"its columns {' and '.join(found)} list tools: leave one of them")
    return found[0] if found else "tools"


_NO_TOOLS = ("messages", "tools")
_OLD_TOOLS = "functions"


def _now(conversation: Conversation, raws: list[Any], key: str, chosen: str) -> str:
    """The name by which a tool is shown now."""
    for tool in conversation.tools:
        if tool.source is not None and function_of(raws[tool.source], 0)["name"] == chosen:
            return str(tool.function["name"])
    raise RowFault(f"{key} asks for {chosen}, which is not shown alone")


def _choosing(choice: Any, now: Callable[[str], str]) -> Any:
    """A choice of tools by the names as shown: of one function, or of a list of those allowed."""
    if not isinstance(choice, Mapping):
        return choice
    allowed, inner = choice.get("allowed_tools"), choice.get("function")
    if isinstance(allowed, Mapping):
        tools = [_choosing(one, now) for one in allowed.get("tools") or ()]
        return {**choice, "allowed_tools": {**allowed, "tools": tools}}
    if isinstance(inner, Mapping):
        return {**choice, "function": _choosing(inner, now)}
    name = choice.get("name")
    return {**choice, "name": now(name)} if name and isinstance(name, str) else choice


def _chosen(choice: Any) -> set[str]:
    """The names of the tools that a choice allows; none where it allows all."""
    names: set[str] = set()

    def met(name: str) -> str:
        names.add(name)
        return name

    _choosing(choice, met)
    return names


def _learned_calls(conversation: Conversation) -> set[str]:
    return {call.name for said in conversation.messages if said.learned for call in said.calls}


def _message(raw: Any, place: int, tools: ToolList) -> Message:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("role"), str):
        raise RowFault(f"message {place} has no role")
    role = _ROLES.get(raw["role"])
    if role is None:
        raise RowFault(f"message {place} has the unknown role {raw['role']!r}")
    if raw["role"] == _CALLING:
        call = _call(literal(raw.get("content"), f"the call of message {place}"), place, tools)
        return Message(role, calls=(call,), learned=raw.get("weight") != 0, source=place)
    listed = raw.get("tool_calls") or ()
    if not isinstance(listed, list | tuple):
        raise RowFault(f"message {place}: its tool_calls are no list")
    if raw.get("function_call"):
        if listed:
            raise RowFault(f"message {place} has `tool_calls` and `function_call`: leave one")
        listed = (raw["function_call"],)
    calls = tuple(_call(one, place, tools) for one in listed)
    return Message(
        role,
        _text(raw.get("content"), place, role),
        calls,
        str(raw.get("name") or "") if role == "tool" else "",
        str(raw.get("tool_call_id") or ""),
        raw.get("weight") != 0,
        place,
        next((raw[key] for key in THOUGHTS if isinstance(raw.get(key), str)), ""),
        _holds_more(raw.get("content")),
    )


def _text(content: Any, place: int, role: Role = "user") -> str:
    """The text of a content; what users say may have pictures beside it, and stays as it is."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise RowFault(f"message {place}: its content is no text, and no list of parts")
    kinds = [part.get("type") for part in content if isinstance(part, Mapping)]
    block = next((kind for kind in ("tool_use", "tool_result") if kind in kinds), None)
    if block:
        raise RowFault(
            f"message {place}: its content has a block `{block}`, as Anthropic has them, which is "
            "not read: convert calls to `tool_calls` and results to messages of the role `tool`"
        )
    if role != "user" and _holds_more(content):
        raise RowFault(f"message {place}: its content holds more than texts")
    texts = _texts(content)
    # What is renamed goes back into its parts; users and results are never renamed.
    return (PART_HERE if role in ("system", "assistant") and any(texts) else "").join(texts)


def _texts(content: list[Any]) -> list[str]:
    parts = [part.get("text") if isinstance(part, Mapping) else None for part in content]
    return [part for part in parts if isinstance(part, str)]


def _holds_more(content: Any) -> bool:
    """Whether a content has parts that are no texts, such as pictures."""
    return isinstance(content, list) and len(_texts(content)) < len(content)


def _call(raw: Any, place: int, tools: ToolList) -> Call:
    inner = raw.get("function", raw) if isinstance(raw, Mapping) else None
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise RowFault(f"message {place}: a call has no name")
    name = inner["name"]
    arguments = arguments_of(inner.get("arguments"), name)
    if None in arguments.values():
        arguments = _without_holes(arguments, name, tools)
    return Call(name, arguments, str(raw.get("id") or ""))


def _without_holes(arguments: dict[str, Any], name: str, tools: ToolList) -> dict[str, Any]:
    """Arguments without the nulls that a table has put in: a tool declares no such parameter."""
    declared = tools.parameters.get(name)
    if not declared:
        return arguments
    return {key: one for key, one in arguments.items() if one is not None or key in declared}


def _holds_objects(raw: Any) -> bool:
    calls = [*(raw.get("tool_calls") or ())] if isinstance(raw, Mapping) else []
    calls += [raw["function_call"]] if calls == [] and raw.get("function_call") else []
    return any(isinstance((c.get("function") or c).get("arguments"), Mapping) for c in calls)


class _Like(NamedTuple):
    """How a row says what is added to it.

    Attributes:
        objects: arguments are objects, and no texts.
        parts: contents are lists of parts, and no texts; a column of a data set holds one kind.
        arguments: of one of its calls, as text.
        old: a call is a `function_call`, and its result is of the role `function`.
        turn: the first call that is a turn of its own; "" where none is.
        result: the role of results.
        told: the contents of results are lists of parts.
    """

    objects: bool
    parts: bool
    arguments: str
    old: bool
    turn: str
    result: str
    told: bool

    def content(self, text: str, before: Any) -> Any:
        """A content of that text in place of another."""
        texts = parts_in(text)
        plain = isinstance(before, list) and all("text" in part for part in before)
        if plain and len(texts) == len(before):
            return [{**part, "text": one} for part, one in zip(before, texts, strict=True)]
        whole = "".join(texts)
        if isinstance(before, list) and before:
            return _in_first_text(before, whole)
        return [{"type": "text", "text": whole}] if self.parts or before == [] else whole


def _in_first_text(parts: list[Any], text: str) -> list[Any]:
    """Parts of a content of which the first text says all; pictures and the like stay."""
    places = [place for place, part in enumerate(parts) if "text" in part]
    if not places:
        return [*parts, {"type": "text", "text": text}]
    first = places[0]
    told = [*parts[:first], {**parts[first], "text": text}, *parts[first + 1 :]]
    return [part for place, part in enumerate(told) if place not in places[1:]]


def _in_parts(said: list[Any]) -> bool:
    contents = [each.get("content") for each in said]
    held = [one for one in contents if one not in (None, "")]
    return bool(held) and all(isinstance(one, list) for one in held)


def _is_old(said: list[Any]) -> bool:
    """Whether calls are said as before there were `tool_calls`."""
    return any(each.get("function_call") for each in said)


def _arguments_in(said: list[Any]) -> str:
    """The arguments of the first call that has some, where they are a text."""
    calls = [call for each in said for call in each.get("tool_calls") or ()]
    calls += [each["function_call"] for each in said if each.get("function_call")]
    given = (call.get("function", call).get("arguments") for call in calls)
    return next((one for one in given if isinstance(one, str) and len(one) > len("{}")), "")


def _written(message: Message, raw: Mapping[str, Any], like: _Like) -> dict[str, Any]:
    role = like.result if message.role == "tool" else message.role
    out: dict[str, Any] = {**raw, "role": raw.get("role", role)}
    if like.turn and (message.calls or message.role == "tool"):
        return _as_turn(message, raw, out, like)
    if _text(raw.get("content"), 0, message.role) != message.text or not raw:
        fresh: list[Any] | None = [] if like.told and message.role == "tool" else None
        out["content"] = like.content(message.text, raw.get("content") if raw else fresh)
    if like.old and (message.calls or message.role == "tool"):
        return _in_old_words(message, raw, out, like)
    if message.calls:
        befores = _befores(message.calls, list(raw.get("tool_calls") or ()))
        pairs = zip(message.calls, befores, strict=True)
        out["tool_calls"] = [_written_call(call, before, like) for call, before in pairs]
    elif raw.get("tool_calls"):
        del out["tool_calls"]
    if message.role == "tool":
        out |= {"tool_call_id": message.call_id} if message.call_id else {}
        out |= {"name": message.name} if message.name else {}
    if not message.learned:
        out["weight"] = 0
    read = next((key for key in THOUGHTS if isinstance(raw.get(key), str)), "")
    if read:
        out[read] = message.thought
    return out


def _as_turn(
    message: Message, raw: Mapping[str, Any], out: dict[str, Any], like: _Like
) -> dict[str, Any]:
    """A call as a turn of the role `tool_call`, or its result."""
    if message.role == "tool":
        role = raw.get("role", "tool_response")
        out |= {"role": role, "content": like.content(message.text, raw.get("content"))}
    elif len(message.calls) > 1 or message.text:
        raise RowFault(f"a turn of the role `{_CALLING}` is one call, and no more")
    else:
        (call,), before = message.calls, str(raw.get("content") or like.turn)
        was = literal(before, "a call")
        said = {"name": call.name, "arguments": call.arguments}
        if isinstance(was.get("arguments"), str):
            said["arguments"] = encoded(call.arguments, was["arguments"])
        same = raw and _call(was, 0, ToolList()) == call
        out |= {"role": _CALLING, "content": before if same else written_like(said, before)}
    return out if message.learned else {**out, "weight": 0}


def _in_old_words(
    message: Message, raw: Mapping[str, Any], out: dict[str, Any], like: _Like
) -> dict[str, Any]:
    """A call as `function_call`, or its result, which names its tool."""
    if message.role == "tool":
        if not message.name:
            raise RowFault("a result of the role `function` must name its tool")
        out |= {"role": raw.get("role", "function"), "name": message.name}
    elif len(message.calls) > 1:
        raise RowFault("a message with `function_call` has one call, and no more")
    else:
        before = raw.get("function_call") or {}
        said = _written_call(message.calls[0], {"function": before}, like)["function"]
        out["function_call"] = said
    return out if message.learned else {**out, "weight": 0}


def _befores(calls: tuple[Call, ...], raws: list[Any]) -> list[Mapping[str, Any]]:
    """What the row has for each call: the one of its id, for some may have gone elsewhere."""
    by_id = {raw["id"]: raw for raw in raws if isinstance(raw.get("id"), str)}
    if len(by_id) == len(raws) and all(call.id in by_id for call in calls):
        return [by_id[call.id] for call in calls]
    if len(calls) == len(raws):
        return raws
    like = {key: value for key, value in raws[0].items() if key != "id"} if raws else {}
    return [like for _ in calls]


def _written_call(call: Call, raw: Mapping[str, Any], like: _Like) -> dict[str, Any]:
    inner = raw.get("function", raw)
    before = inner.get("arguments")
    says = isinstance(before, str) and len(before) > len("{}")
    if raw and _given(arguments_of(before, ""), call.arguments) == call.arguments:
        arguments = {"arguments": before} if "arguments" in inner else {}  # with its spaces
    elif like.objects and not isinstance(before, str):
        arguments = {"arguments": call.arguments}
    else:
        arguments = {"arguments": encoded(call.arguments, before if says else like.arguments)}
    named = {**inner, "name": call.name, **arguments}
    if raw and "function" not in raw:
        return named
    head = {"id": call.id} if call.id else {}
    return {**head, "type": "function", **raw, "function": named}


def _given(before: dict[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a row without nulls that were not read."""
    return {key: one for key, one in before.items() if one is not None or key in now}


OPENAI = OpenAI()
