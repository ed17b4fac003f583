"""OpenAI messages with tools, and TRL's columns `messages` and `tools`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from toolshift.data.conversation import (
    Call,
    Conversation,
    Message,
    Role,
    Row,
    RowFault,
    arguments_of,
    decoded,
    encoded,
    read_tools,
    rewrapped,
    with_ids,
)

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


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
        if "functions" in row and not row.get("tools"):
            raise RowFault("it lists `functions`, which OpenAI has replaced: convert it to `tools`")
        if not isinstance(said, list):
            raise RowFault("messages is no list")
        messages = tuple(_message(raw, place) for place, raw in enumerate(said))
        return Conversation(read_tools(row.get("tools")), messages)

    def write(self, conversation: Conversation, row: Mapping[str, Any] | None) -> Row:
        """A row; calls hold their arguments as the row had them, else as JSON strings."""
        raws = decoded(row.get("tools") or [], "the list of tools") if row else []
        said = decoded(row.get("messages"), "messages") if row else []
        tools: Any = [rewrapped(tool, raws) for tool in conversation.tools]
        like = _Like(any(map(_holds_objects, said)), _in_parts(said), _arguments_in(said))
        messages: Any = [
            _written(each, said[each.source] if row and each.source is not None else {}, like)
            for each in (conversation.messages if row else with_ids(conversation.messages))
        ]
        if row and isinstance(row.get("tools"), str):
            tools = encoded(tools, row["tools"])
        if row and isinstance(row.get("messages"), str):
            messages = encoded(messages, row["messages"])
        out = {**(row or {}), "messages": messages, "tools": tools}
        chosen = _chosen(out.get("tool_choice"))
        if chosen is not None:
            now = {raws[t.source].get("function", raws[t.source])["name"]: t.function["name"]
                   for t in conversation.tools if t.source is not None}  # fmt: skip
            if chosen["name"] not in now:
                raise RowFault(f"tool_choice asks for {chosen['name']}, which is not shown alone")
            inner = {**chosen, "name": now[chosen["name"]]}
            out["tool_choice"] = {**out["tool_choice"], "function": inner}
        return out


def _chosen(choice: Any) -> Mapping[str, Any] | None:
    """The function that `tool_choice` asks for, if it names one."""
    inner = choice.get("function") if isinstance(choice, Mapping) else None
    return inner if isinstance(inner, Mapping) and isinstance(inner.get("name"), str) else None


def _message(raw: Any, place: int) -> Message:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("role"), str):
        raise RowFault(f"message {place} has no role")
    role = _ROLES.get(raw["role"])
    if role is None:
        raise RowFault(f"message {place} has the unknown role {raw['role']!r}")
    if raw.get("function_call"):
        raise RowFault(
            f"message {place} has a `function_call`, which OpenAI has replaced: convert it to "
            "`tool_calls`"
        )
    listed = raw.get("tool_calls") or ()
    if not isinstance(listed, list | tuple):
        raise RowFault(f"message {place}: its tool_calls are no list")
    calls = tuple(_call(one, place) for one in listed)
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
    return "".join(_texts(content))


def _texts(content: list[Any]) -> list[str]:
    parts = [part.get("text") if isinstance(part, Mapping) else None for part in content]
    return [part for part in parts if isinstance(part, str)]


def _holds_more(content: Any) -> bool:
    """Whether a content has parts that are no texts, such as pictures."""
    return isinstance(content, list) and len(_texts(content)) < len(content)


def _call(raw: Any, place: int) -> Call:
    inner = raw.get("function", raw) if isinstance(raw, Mapping) else None
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise RowFault(f"message {place}: a call has no name")
    name = inner["name"]
    return Call(name, arguments_of(inner.get("arguments"), name), str(raw.get("id") or ""))


def _holds_objects(raw: Any) -> bool:
    calls = raw.get("tool_calls") or () if isinstance(raw, Mapping) else ()
    return any(isinstance((c.get("function") or c).get("arguments"), Mapping) for c in calls)


class _Like(NamedTuple):
    """How a row says what is added to it.

    Attributes:
        objects: arguments are objects, and no texts.
        parts: contents are lists of parts, and no texts; a column of a data set holds one kind.
        arguments: of one of its calls, as text.
    """

    objects: bool
    parts: bool
    arguments: str

    def content(self, text: str, before: Any) -> Any:
        """A content of that text in place of another."""
        in_parts = self.parts or isinstance(before, list)
        return [{"type": "text", "text": text}] if in_parts else text


def _in_parts(said: list[Any]) -> bool:
    contents = [each.get("content") for each in said]
    held = [one for one in contents if one not in (None, "")]
    return bool(held) and all(isinstance(one, list) for one in held)


def _arguments_in(said: list[Any]) -> str:
    """The arguments of the first call that has some, where they are a text."""
    calls = (call for each in said for call in each.get("tool_calls") or ())
    given = (call.get("function", call).get("arguments") for call in calls)
    return next((one for one in given if isinstance(one, str) and len(one) > len("{}")), "")


def _written(message: Message, raw: Mapping[str, Any], like: _Like) -> dict[str, Any]:
    out: dict[str, Any] = {**raw, "role": raw.get("role", message.role)}
    if _text(raw.get("content"), 0) != message.text or not raw:
        out["content"] = like.content(message.text, raw.get("content"))
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
    if raw and arguments_of(before, "") == call.arguments:
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


OPENAI = OpenAI()
