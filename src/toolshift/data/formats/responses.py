"""Requests of OpenAI's Responses: `input` items and `tools`, and `output` where a row has it.

The codec of the dialect reads and writes them, by way of the format `openai`. What the model
thought is text where it is said (a summary); what is sealed goes where the text has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from toolshift.data.conversation import Conversation, Row, RowFault, decoded, encoded, with_ids
from toolshift.data.formats.openai import OPENAI, THOUGHTS
from toolshift.dialects.form import WIRE, Request
from toolshift.dialects.responses import RESPONSES
from toolshift.dialects.responses_items import places_of, read_items, texts_of, write_items
from toolshift.dialects.responses_scope import unshifted

_SIDES = ("input", "output")
_THOUGHT = THOUGHTS[0]
Item = dict[str, Any]


class ResponsesRows:
    """`{"input": [...], "tools": [...]}`, with `instructions` and `output` where a row has them."""

    name = "responses"

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Whether the input, or the output, is a list of items."""
        answer = row.get("output")
        if isinstance(answer, str) and answer and not _are_items(answer):
            return False  # an answer in words is of no request of this API, and would not be read
        return any(_are_items(row.get(side)) for side in _SIDES)

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """The conversation of a row."""
        return OPENAI.read(_as_chat(row))

    def write(self, conversation: Conversation, row: Mapping[str, Any] | None) -> Row:
        """A row; items that say what they said stand as they stood."""
        before = _as_chat(row) if row else None
        if row is None:
            messages = with_ids(conversation.messages)
            conversation = Conversation(conversation.tools, messages)
        chat = OPENAI.write(conversation, before)
        body = _body(row or {})
        choice = chat.get("tool_choice")
        request = Request([], chat["tools"], choice if before else None)
        tools = RESPONSES.write(body, request).get("tools") or []
        out: Row = {**(row or {}), **_told(chat["messages"], body, places_of(tools))}
        if "tools" in out or tools:
            out["tools"] = _like(tools, out.get("tools"))
        if choice is not None and row and choice != (before or {}).get("tool_choice"):
            out["tool_choice"] = RESPONSES.write(body, request)["tool_choice"]
        for side in _SIDES:
            if row and side in out:
                out[side] = _like(out[side], row.get(side))
        return deepcopy(out)  # nothing is shared with other rows


def without_items(row: Row) -> Row:
    """A row without its conversation, for another format that has it elsewhere."""
    return {key: value for key, value in row.items() if key not in (*_SIDES, "instructions")}


def _are_items(listed: Any) -> bool:
    if isinstance(listed, str):
        return listed.lstrip().startswith("[{") and ('"type"' in listed or '"role"' in listed)
    return isinstance(listed, list) and any(
        isinstance(item, Mapping) and ("type" in item or "role" in item) for item in listed
    )


def _like(value: Any, before: Any) -> Any:
    return encoded(value, before) if isinstance(before, str) else value


def _body(row: Mapping[str, Any]) -> dict[str, Any]:
    """The request that a row holds, its lists decoded."""
    found = {key: row[key] for key in ("instructions", "tool_choice") if row.get(key) is not None}
    found["tools"] = decoded(row.get("tools") or [], "the list of tools")
    for side in _SIDES:
        found[side] = decoded(row.get(side) or [], side) if _are_items(row.get(side)) else []
    return found


def _as_chat(row: Mapping[str, Any]) -> Row:
    """A row of the format `openai` with the same conversation."""
    body = _body(row)
    both = [*body["input"], *body.pop("output")]
    if odd := unshifted({**body, "input": both}):
        raise RowFault(f"it holds {odd}, which is not shifted")
    request = RESPONSES.read({**body, "input": []})
    said = list(request.messages)
    for side in _SIDES:
        for message in read_items(_body(row)[side]):
            said.append(_with_marks(message, side))
    return {"messages": said, "tools": request.tools, "tool_choice": request.choice}


def _with_marks(message: dict[str, Any], side: str) -> dict[str, Any]:
    """A message with what rows say beside an API: thoughts as text, and what is not learned."""
    wire = message[WIRE]
    out = {**message, WIRE: {**wire, "side": side}}
    thought = "\n".join(text for item in wire["items"] for text in _thoughts(item))
    out |= {_THOUGHT: thought} if thought else {}
    texts = texts_of(message) if message["role"] == "assistant" else []
    if len(texts) > 1:
        out["content"] = [{"type": "text", "text": text} for text in texts]
    return out | ({"weight": 0} if any(i.get("weight") == 0 for i in wire["items"]) else {})


def _thoughts(item: Item) -> list[str]:
    if item.get("type") != "reasoning":
        return []
    parts = [*(item.get("summary") or ()), *(item.get("content") or ())]
    return [part["text"] for part in parts if isinstance(part.get("text"), str)]


def _told(messages: list[Any], body: Mapping[str, Any], places: Any) -> Row:
    """The sides of a row that messages make up."""
    sides: dict[str, list[Any]] = {"input": [], "output": []}
    side, written, out = "input", set[int](), Row()
    for message in messages:
        wire = message.get(WIRE) or {}
        if wire.get("instructions"):
            out["instructions"] = message["content"]
            continue
        side = wire.get("side", side)
        sides[side].append(_as_it_says(message, written))
    context: list[Any] = []
    for name, said in sides.items():
        items = write_items([one for one, _ in said], places, context)
        context += [one for one, _ in said]
        if name == "input" or items or body.get(name):
            out[name] = _weighed(items, said, places)
    return out


def _as_it_says(message: dict[str, Any], written: set[int]) -> tuple[dict[str, Any], bool]:
    """A message whose items have its thought; and whether it is learned."""
    wire = message.get(WIRE) or {}
    items = wire.get("items") or []
    if id(wire) in written:  # of a message that became two: thoughts and words stand once
        items = [item for item in items if "call_id" in item]
    written.add(id(wire))
    thought = "\n".join(text for item in items for text in _thoughts(item))
    if thought and thought != message.get(_THOUGHT, thought):
        first = next(n for n, item in enumerate(items) if _thoughts(item))
        rest = [i for n, i in enumerate(items) if n <= first or i.get("type") != "reasoning"]
        sealed = ("encrypted_content", "content")
        own = {key: value for key, value in rest[first].items() if key not in sealed}
        rest[first] = {**own, "summary": [{"type": "summary_text", "text": message[_THOUGHT]}]}
        items = rest
    held = {WIRE: {**wire, "items": items}} if wire else {}
    return {**message, **held}, message.get("weight") != 0


def _weighed(items: list[Item], said: list[tuple[dict[str, Any], bool]], places: Any) -> list[Item]:
    """Items with a mark where a trainer must not learn them."""
    if all(learned for _, learned in said):
        return items
    found, rest = list[Item](), iter(items)
    for message, learned in said:
        count = len(write_items([message], places))
        own = [next(rest) for _ in range(count)]
        found += own if learned else [{**item, "weight": 0} for item in own]
    return found


RESPONSES_ROWS = ResponsesRows()
