"""What ShareGPT, Hermes and ToolACE share: `conversations` of `from` and `value`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolshift.data.conversation import Message, Role, RowFault

ROLES: dict[str, Role] = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "function_call": "assistant",
    "tool": "tool",
    "observation": "tool",
    "function_response": "tool",
}


def turns_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The turns of a row."""
    turns = row.get("conversations")
    if not isinstance(turns, list):
        raise RowFault("conversations is no list")
    for place, turn in enumerate(turns):
        if not isinstance(turn, Mapping) or not isinstance(turn.get("value"), str):
            raise RowFault(f"turn {place} has no text in `value`")
        if str(turn.get("from")) not in ROLES:
            raise RowFault(f"turn {place} is from {turn.get('from')!r}; known: {', '.join(ROLES)}")
    return turns


def has_turns(row: Mapping[str, Any]) -> bool:
    """Whether a row has such turns."""
    turns = row.get("conversations")
    return (
        isinstance(turns, list)
        and bool(turns)
        and isinstance(turns[0], Mapping)
        and ("from" in turns[0] and "value" in turns[0])
    )


def written_turn(
    message: Message, value: str, raw: Mapping[str, Any], speaker: str
) -> dict[str, Any]:
    """A turn with another text; one that is context only says so."""
    out = {**raw, "from": raw.get("from", speaker), "value": value}
    return out if message.learned else {**out, "weight": 0}
