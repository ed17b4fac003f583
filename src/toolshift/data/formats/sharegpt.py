"""ShareGPT turns with calls as turns of their own (`function_call`, `observation`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolshift.data.conversation import (
    Call,
    Conversation,
    Message,
    Row,
    RowFault,
    arguments_of,
    decoded,
    encoded,
    in_order,
    joined,
    read_tools,
    rewrapped,
)
from toolshift.data.formats.turns import ROLES, has_turns, turns_of, written_turn

_CALLING = "function_call"


class ShareGPT:
    """`conversations`, with `tools` in a column; a call is a turn from `function_call`."""

    name = "sharegpt"

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Whether the row has such turns and a column of tools."""
        return has_turns(row) and "tools" in row

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """The conversation of a row."""
        messages = [_message(turn, place) for place, turn in enumerate(turns_of(row))]
        if isinstance(row.get("system"), str) and row["system"]:
            messages.insert(0, Message("system", row["system"]))
        return Conversation(read_tools(row.get("tools")), joined(messages))

    def write(self, conversation: Conversation, row: Mapping[str, Any] | None) -> Row:
        """A row. Text beside calls is a turn before them."""
        turns = turns_of(row) if row else []
        raws = decoded(row.get("tools") or [], "the list of tools") if row else []
        tools: Any = [rewrapped(tool, raws) for tool in conversation.tools]
        out: dict[str, Any] = {**(row or {}), "conversations": []}
        like = next((turn["value"] for turn in turns if turn["from"] == _CALLING), "")
        for each in in_order(conversation.messages):
            raw = turns[each.source] if row and each.source is not None else {}
            if each.role == "system" and row and each.source is None and "system" in row:
                out["system"] = each.text
                continue
            out["conversations"] += _turns(each, raw, like)
        listed = row.get("tools") if row else None
        out["tools"] = tools if isinstance(listed, list) else encoded(tools, listed or "")
        return out


def _message(turn: Mapping[str, Any], place: int) -> Message:
    role, value = ROLES[turn["from"]], turn["value"]
    learned = turn.get("weight") != 0
    if turn["from"] != _CALLING:
        return Message(role, value, learned=learned, source=place)
    found = decoded(value, f"turn {place}")
    calls = tuple(_call(one, place) for one in (found if isinstance(found, list) else [found]))
    return Message(role, "", calls, learned=learned, source=place)


def _call(said: Any, place: int) -> Call:
    if not isinstance(said, Mapping) or not isinstance(said.get("name"), str):
        raise RowFault(f"turn {place}: a call has no name")
    return Call(said["name"], arguments_of(said.get("arguments"), said["name"]))


def _arguments_in(value: str) -> str | None:
    """The arguments of one of these calls, where they are JSON in a string; None where not."""
    found = decoded(value, "a call")
    given = [one.get("arguments") for one in (found if isinstance(found, list) else [found])]
    return next((one for one in given if isinstance(one, str)), None)


def _turns(message: Message, raw: Mapping[str, Any], like: str) -> list[dict[str, Any]]:
    """The turns of a message; `like` is how the row writes calls."""
    speakers = {"user": "human", "assistant": "gpt", "tool": "observation"}
    turns = []
    if message.text or not message.calls:
        own = {} if raw.get("from") == _CALLING else raw
        speaker = speakers.get(message.role, message.role)
        turns.append(written_turn(message, message.text, own, speaker))
    if message.calls:
        own = raw if raw.get("from") == _CALLING else {}
        like = own.get("value") or like
        inner = _arguments_in(like) if like else None
        said = [
            {
                "name": call.name,
                "arguments": call.arguments if inner is None else encoded(call.arguments, inner),
            }
            for call in message.calls
        ]
        value = encoded(said[0] if len(said) == 1 else said, like)
        turns.append(written_turn(message, value, own, _CALLING))
    return turns


SHAREGPT = ShareGPT()
