"""Conversations with marks in every turn of the assistant: whether a trainer should learn it."""

from __future__ import annotations

import json
from typing import Any

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{verb} an order.",
            "parameters": {
                "type": "object",
                "properties": {"order_id": {"type": "string"}, extra: {"type": "string"}},
                "required": ["order_id"],
            },
        },
    }
    for name, verb, extra in (("get_order", "Gets", "lang"), ("cancel_order", "Cancels", "note"))
]


def call(name: str, number: str, mark: str, learned: bool = True, text: str = "") -> dict[str, Any]:
    """A turn of the assistant with one call, which holds its mark."""
    arguments = json.dumps({"order_id": mark, "lang" if name == "get_order" else "note": "en"})
    made = {
        "role": "assistant",
        "content": text,
        "tool_calls": [
            {
                "id": number,
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
        ],
    }
    return made if learned else {**made, "weight": 0}


def result(number: str, **data: Any) -> dict[str, Any]:
    """The result of a call."""
    return {"role": "tool", "tool_call_id": number, "content": json.dumps(data)}


def user(text: str) -> dict[str, Any]:
    """What the user says."""
    return {"role": "user", "content": text}


def said(mark: str, learned: bool = True) -> dict[str, Any]:
    """A text of the assistant, which holds its mark."""
    made = {"role": "assistant", "content": f"Done: {mark}."}
    return made if learned else {**made, "weight": 0}


def both(first: str, second: str) -> dict[str, Any]:
    """Two calls at once."""
    made = call("get_order", "p1", first)
    made["tool_calls"] += call("get_order", "p2", second)["tool_calls"]
    return made


CONVERSATIONS: dict[str, list[dict[str, Any]]] = {
    "plain": [user("Hi"), said("YES1")],
    "failing": [
        {"role": "system", "content": "Help."},
        user("Cancel A."),
        call("get_order", "c1", "NOT1", learned=False),
        result("c1", error="try again"),
        call("get_order", "c2", "YES2", text="Once more."),
        result("c2", status="open"),
        call("cancel_order", "c3", "YES3"),
        result("c3", ok=True),
        said("YES4"),
    ],
    "late": [
        user("Look at A."),
        call("get_order", "c1", "YES5"),
        result("c1", status="open"),
        said("YES6"),
        user("Cancel it."),
        call("cancel_order", "c2", "NOT2", learned=False),
        result("c2", error="no"),
        call("cancel_order", "c3", "YES7"),
        result("c3", ok=True),
        said("YES8"),
        user("Thanks."),
    ],
    "ends in a call": [user("Look."), call("get_order", "c1", "YES9")],
    "ends in a result": [
        user("Look."),
        call("get_order", "c1", "YES10"),
        result("c1", status="open"),
    ],
    "at once": [
        user("Look at both."),
        both("YES11a", "YES11b"),
        result("p2", status="two"),
        result("p1", status="one"),
        said("YES12"),
    ],
    "old context": [
        user("Look."),
        said("NOT3", learned=False),
        user("Do it."),
        user("Now."),
        said("YES13"),
    ],
}
"""Messages by what is odd about them; `YES` is to be learned, and `NOT` is context."""


def rows() -> list[dict[str, Any]]:
    """All of them; the first two list no tools, or an empty list."""
    found = [
        {"messages": messages, "tools": TOOLS, "source": name}
        for name, messages in CONVERSATIONS.items()
    ]
    found[0]["tools"] = []
    return found
