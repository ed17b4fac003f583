"""Made-up conversations in every format, adversarial names included."""

from __future__ import annotations

import json
from random import Random
from typing import Any

NAMES = (
    "get", "get_order", "get_order_status", "list-orders", "findPlace", "search", "search_web",
    "book_table", "cancel", "weather.current", "translate", "send_mail",
)  # fmt: skip
KEYS = ("id", "order", "order_id", "query", "city", "q", "limit", "to", "text", "when")
VALUES = (
    "A-17",
    "Rome",
    "שלום עולם",
    "naïve café",
    '{"order": "get_order"}',
    "get order id",
    "日本",
    "x",
)
TYPES = {"string": VALUES, "integer": (1, 5, 250), "boolean": (True, False)}


def tools(rng: Random, count: int = 4) -> list[dict[str, Any]]:
    """Some OpenAI functions whose names are parts of one another, and of prose."""
    made = []
    for name in rng.sample(NAMES, count):
        keys = rng.sample(KEYS, rng.randint(1, 4))
        kinds = {key: rng.choice(list(TYPES)) for key in keys}
        made.append(
            {
                "name": name,
                "description": f"Does {name} for you. Give `{keys[0]}` to {name}.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        key: {"type": kind, "description": f"The {key} of it."}
                        for key, kind in kinds.items()
                    },
                    "required": keys[: rng.randint(1, len(keys))],
                },
            }
        )
    return made


def arguments(rng: Random, tool: dict[str, Any]) -> dict[str, Any]:
    """Arguments that a function takes."""
    known = tool["parameters"]["properties"]
    needed = tool["parameters"]["required"]
    return {
        key: rng.choice(TYPES[schema["type"]])
        for key, schema in known.items()
        if key in needed or rng.random() < 0.5
    }


def result(rng: Random) -> str:
    """A recorded result: a record, records, or a text."""
    record = {"ref": rng.choice(VALUES), "count": rng.randint(0, 9), "nested": {"get_order": "x"}}
    return rng.choice(
        [json.dumps(record), json.dumps([record, record], ensure_ascii=False), "Done: get_order."]
    )


def openai(seed: int) -> dict[str, Any]:
    """A conversation as OpenAI has it, in the columns of TRL."""
    rng = Random(seed)
    offered = tools(rng)
    said: list[dict[str, Any]] = [
        {"role": "system", "content": f"Use {offered[0]['name']} when in doubt."},
        {"role": "user", "content": "Please get my order and search for a place to eat."},
    ]
    for turn in range(rng.randint(1, 3)):
        chosen = rng.sample(offered, rng.randint(1, 2))
        calls = [
            {
                "id": f"call_{turn}_{n}",
                "type": "function",
                "function": {"name": one["name"], "arguments": json.dumps(arguments(rng, one))},
            }
            for n, one in enumerate(chosen)
        ]
        said.append(
            {"role": "assistant", "content": f"I call {chosen[0]['name']}.", "tool_calls": calls}
        )
        said += [{"role": "tool", "tool_call_id": c["id"], "content": result(rng)} for c in calls]
    said.append({"role": "assistant", "content": "Here it is: I get what you search, order done."})
    wrapped = [{"type": "function", "function": one} for one in offered]
    return {"id": f"row-{seed}", "messages": said, "tools": wrapped, "note": "stays"}


def question(seed: int) -> dict[str, Any]:
    """One question and its calls, as xLAM has them."""
    rng = Random(seed)
    offered = tools(rng)
    spoken = {"string": "str", "integer": "int", "boolean": "bool"}
    listed = []
    for one in offered:
        known, needed = one["parameters"]["properties"], one["parameters"]["required"]
        parameters = {
            key: {
                "description": schema["description"],
                "type": spoken[schema["type"]] + ("" if key in needed else ", optional"),
            }
            for key, schema in known.items()
        }
        listed.append({**one, "parameters": parameters})
    calls = [
        {"name": one["name"], "arguments": arguments(rng, one)} for one in rng.sample(offered, 2)
    ]
    return {
        "id": seed,
        "query": "Get order A-17 and search Rome.",
        "tools": json.dumps(listed),
        "answers": json.dumps(calls),
    }
