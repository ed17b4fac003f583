"""Messages as LangChain dumps them: `type` with `data`, `lc` with `kwargs`, or flat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolshift.data.conversation import Conversation, Row, RowFault, decoded, encoded, with_ids
from toolshift.data.formats.openai import OPENAI, tools_column

_ROLES = {
    "human": "user", "HumanMessage": "user", "HumanMessageChunk": "user",
    "ai": "assistant", "AIMessage": "assistant", "AIMessageChunk": "assistant",
    "tool": "tool", "ToolMessage": "tool", "ToolMessageChunk": "tool",
    "system": "system", "SystemMessage": "system", "SystemMessageChunk": "system",
}  # fmt: skip
_TYPES = {"user": "human", "assistant": "ai", "tool": "tool", "system": "system"}
_CLASSES = {
    "user": "HumanMessage",
    "assistant": "AIMessage",
    "tool": "ToolMessage",
    "system": "SystemMessage",
}
_PLACE = "\0place"
"""Links a message in the form of chat completions to the one that it was read from."""
_OWN_TOOLS = ("args", "args_schema")


class LangChain:
    """`messages` of `langchain_core`: `messages_to_dict`, `dumpd`, or `model_dump`."""

    name = "langchain"

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Whether each message is one of these, and none has a role."""
        said = row.get("messages")
        return (
            isinstance(said, list)
            and bool(said)
            and all(
                isinstance(each, Mapping) and "role" not in each and _kind(each) for each in said
            )
        )

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """The conversation of a row."""
        return OPENAI.read(_as_chat(row))

    def write(self, conversation: Conversation, row: Mapping[str, Any] | None) -> Row:
        """A row; all that it has beside texts and calls stays as it was."""
        if row is None:
            raise RowFault(f"{self.name} is only written in rows that are of it")
        linked = Conversation(conversation.tools, with_ids(conversation.messages))
        made = OPENAI.write(linked, _as_chat(row))
        raws = row["messages"]
        messages = [
            _dumped(one, raws[one[_PLACE]] if _PLACE in one else None, raws[0])
            for one in made.pop("messages")
        ]
        return {**row, **made, "messages": messages}


def _kind(raw: Mapping[str, Any]) -> str:
    """The type or class of a message; "" for what is none."""
    path = raw.get("id")
    if "lc" in raw and isinstance(path, list) and path and isinstance(raw.get("kwargs"), Mapping):
        return path[-1] if path[-1] in _ROLES else ""
    kind = raw.get("type")
    known = isinstance(kind, str) and kind in _ROLES
    return str(kind) if known and ("data" in raw or "content" in raw) else ""


def _holder(raw: Mapping[str, Any]) -> str:
    """The key under which a message holds what it says; "" where it holds that itself."""
    return "kwargs" if "lc" in raw else "data" if isinstance(raw.get("data"), Mapping) else ""


def _inner(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    holder = _holder(raw)
    return raw[holder] if holder else raw


def _as_chat(row: Mapping[str, Any]) -> Row:
    """A row in the form of chat completions."""
    column = tools_column(row)
    for tool in decoded(row.get(column) or [], "the list of tools"):
        if isinstance(tool, Mapping) and set(_OWN_TOOLS) & tool.keys():
            raise RowFault(
                "its tools are dumps of LangChain: convert them with `convert_to_openai_tool`"
            )
    said = [_message(raw, place) for place, raw in enumerate(row["messages"])]
    return {**row, "messages": said}


def _message(raw: Mapping[str, Any], place: int) -> Row:
    inner = _inner(raw)
    out = {_PLACE: place, "role": _ROLES[_kind(raw)], "content": inner.get("content")}
    if inner.get("invalid_tool_calls"):
        raise RowFault(f"message {place} has `invalid_tool_calls`: leave it out")
    if inner.get("tool_calls"):
        out["tool_calls"] = [_call(one, place) for one in inner["tool_calls"]]
    elif (inner.get("additional_kwargs") or {}).get("tool_calls"):
        raise RowFault(f"message {place} has calls in `additional_kwargs` alone")
    kept = ("tool_call_id", "name") if out["role"] == "tool" else ()
    return out | {key: inner[key] for key in kept if inner.get(key) is not None}


def _call(raw: Any, place: int) -> Row:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("name"), str):
        raise RowFault(f"message {place}: a call has no name")
    own = {"id": raw["id"]} if isinstance(raw.get("id"), str) else {}
    said = {"name": raw["name"], "arguments": raw.get("args") or {}}
    return {**own, "type": "function", "function": said}


def _dumped(one: Row, raw: Mapping[str, Any] | None, like: Mapping[str, Any]) -> Row:
    """A message as LangChain dumps it; `like` is one of the row, where it was added."""
    if one.get("weight") == 0 and (raw is None or _inner(raw).get("weight") != 0):
        raise RowFault("LangChain's messages cannot say that one of them is not learned")
    if raw is not None and _message(raw, 0) == {**one, _PLACE: 0}:
        return dict(raw)
    before = _inner(raw) if raw is not None else {}
    inner = {**before, "content": one.get("content") or ""}
    calls = one.get("tool_calls") or []
    olds = list(before.get("tool_calls") or [])
    if calls or olds:
        by_id = {old.get("id"): old for old in olds}
        inner["tool_calls"] = [
            {
                **by_id.get(call.get("id"), {"id": call.get("id"), "type": "tool_call"}),
                "name": call["function"]["name"],
                "args": _arguments(call),
            }
            for call in calls
        ]
    further = before.get("additional_kwargs")
    if isinstance(further, Mapping) and "tool_calls" in further:
        inner["additional_kwargs"] = {**further, "tool_calls": [_sent(call) for call in calls]}
    inner |= {key: one[key] for key in ("tool_call_id", "name") if key in one}
    if raw is not None:
        holder = _holder(raw)
        return {**raw, holder: inner} if holder else inner
    return _added(one["role"], inner, like)


def _added(role: str, inner: Row, like: Mapping[str, Any]) -> Row:
    if "lc" in like:
        path = [*like["id"][:-1], _CLASSES[role]]
        typed = {"type": _TYPES[role]} if "type" in like["kwargs"] else {}
        return {**{k: like[k] for k in like if k != "name"}, "id": path, "kwargs": inner | typed}
    kind = {"type": _TYPES[role]}
    return {**kind, "data": inner} if _holder(like) else {**kind, **inner}


def _arguments(call: Mapping[str, Any]) -> Any:
    return decoded(call["function"]["arguments"], "arguments")


def _sent(call: Mapping[str, Any]) -> Row:
    """A call as the server sent it, which LangChain keeps beside its own."""
    said = {"name": call["function"]["name"], "arguments": encoded(_arguments(call), '{"a": 1}')}
    return {"id": call.get("id"), "function": said, "type": "function"}


LANGCHAIN = LangChain()
