"""The Agent Data Protocol: a trajectory of actions and observations.

It has no place of its own for tools; they are read from `details`, under `tools` or
`available_apis`, as JSON in a string.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolshift.core.values import as_mapping
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
)

_PLACES = ("tools", "available_apis")


class ADP:
    """`{"id", "content": [{"class_": ...}], "details": {...}}`."""

    name = "adp"

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Whether the content is made of classes of the protocol."""
        content = row.get("content")
        return isinstance(content, list) and any(
            isinstance(item, Mapping) and "class_" in item for item in content
        )

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """The conversation of a row."""
        listed = _listed(row)
        if listed is None:
            raise RowFault("details lists no tools (under tools or available_apis)")
        said = tuple(_message(raw, place) for place, raw in enumerate(row["content"]))
        return Conversation(read_tools(listed), said)

    def write(self, conversation: Conversation, row: Mapping[str, Any] | None) -> Row:
        """A row."""
        raws = decoded(_listed(row) or [], "the list of tools") if row else []
        tools = [rewrapped(tool, raws) for tool in conversation.tools]
        content: list[dict[str, Any]] = []
        for each in conversation.messages:
            raw = row["content"][each.source] if row and each.source is not None else {}
            content += _written(each, raw)
        details = dict(row.get("details") or {}) if row else {}
        place = next((p for p in _PLACES if p in details), "tools")
        was = details.get(place)
        details[place] = tools if isinstance(was, list) else encoded(tools, was or "")
        return {**(row or {}), "content": content, "details": details}


def without_tools(row: Row) -> Row:
    """A row whose `details` list no tools, for another format that lists them elsewhere."""
    details = row.get("details")
    held = as_mapping(details)
    kept = {key: value for key, value in held.items() if key not in _PLACES}
    rest = {key: value for key, value in row.items() if key != "details"}
    return {**rest, "details": kept} if kept else rest


def _listed(row: Mapping[str, Any]) -> Any:
    details = row.get("details")
    if not isinstance(details, Mapping):
        return None
    return next((details[place] for place in _PLACES if details.get(place)), None)


def _message(raw: Any, place: int) -> Message:
    kind = raw.get("class_") if isinstance(raw, Mapping) else None
    learned = not isinstance(raw, Mapping) or raw.get("weight") != 0
    call_id = str(raw.get("tool_call_id") or "") if isinstance(raw, Mapping) else ""
    if kind == "api_action":
        name = str(raw.get("function"))
        call = Call(name, arguments_of(raw.get("kwargs"), name), call_id)
        told = str(raw.get("description") or "")
        return Message("assistant", told, (call,), learned=learned, source=place)
    if kind == "message_action":
        text = str(raw.get("content") or "")
        return Message("assistant", text, learned=learned, source=place)
    if kind == "text_observation":
        source = raw.get("source")
        role: Role = "user" if source == "user" else "system" if source == "system" else "tool"
        text = str(raw.get("content") or "")
        name = str(raw.get("name") or "") if role == "tool" else ""
        return Message(role, text, name=name, call_id=call_id, source=place)
    if kind is None:
        raise RowFault(f"item {place} of content has no class_")
    raise RowFault(f"item {place} is a {kind}, which is no tool use that can be shifted")


def _written(message: Message, raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    weight = {} if message.learned else {"weight": 0}
    if message.role == "assistant" and message.calls:
        out = []
        for n, call in enumerate(message.calls):
            own = dict(raw) if not n else {}
            told = message.text if not n else ""
            head = {"class_": "api_action", **own, "function": call.name, "kwargs": call.arguments}
            head["description"] = told or own.get("description")
            head |= {"tool_call_id": call.id} if call.id else {}
            out.append({**head, **weight})
        return out
    if message.role == "assistant":
        return [{"class_": "message_action", **raw, "content": message.text, **weight}]
    source = message.role if message.role in ("user", "system") else "environment"
    head = {"class_": "text_observation", "source": source, **raw, "content": message.text}
    head |= {"tool_call_id": message.call_id} if message.call_id else {}
    return [head]


ADP_ROWS = ADP()
