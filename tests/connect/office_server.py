"""Thirty tools of many forms as a server; `python office_server.py SEED` serves them over stdio."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random
from typing import Any

import anyio

sys.path.insert(0, str(Path(__file__).parents[1]))

from connect.shop_server import PIXEL, READS, Shop, shop_server, text, tool

TOOLS = 30
WORDS = ("order", "ticket", "invoice", "room", "flight", "parcel", "patient", "note", "member")
VERBS = ("get", "find", "list", "read", "check", "count", "show", "cancel", "update", "send")
IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
INSIDE = {"type": "resource", "resource": {"uri": "note://two", "text": "two"}}


def _leaf(rng: Random) -> tuple[dict[str, Any], Any]:
    """A schema of one value, and such a value."""
    number = rng.randrange(1, 500)
    return rng.choice(
        (
            ({"type": "string"}, f"word {number}"),
            ({"type": "string", "enum": ["open", "closed"]}, "open"),
            ({"type": "string", "format": "date"}, "2026-03-04"),
            ({"type": "integer", "minimum": 0}, number),
            ({"type": "number"}, number / 4),
            ({"type": "boolean"}, number % 2 == 0),
            ({"type": ["string", "null"]}, None),
            ({"type": "array", "items": {"type": "string"}}, ["a", "b"]),
            ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, number),
        )
    )


def _record(rng: Random, word: str, depth: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """A schema of an object, and such an object."""
    schema: dict[str, Any] = {}
    value: dict[str, Any] = {}
    names = rng.sample(("id", "name", "status", "total_price", "created_at", "km", "is_open"), 4)
    for name in (f"{word}_{names[0]}", *names[1:]):
        schema[name], value[name] = _leaf(rng)
    if depth == 0 and rng.random() < 0.4:
        schema["owner"], value["owner"] = _record(rng, "owner", 1)
    made: dict[str, Any] = {"type": "object", "properties": schema, "required": list(value)}
    if rng.random() < 0.5:
        made["additionalProperties"] = False
    return made, value


def _answer(rng: Random, word: str) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """The `outputSchema` of a tool, if it has one, and what it answers."""
    schema, value = _record(rng, word)
    written = json.dumps(value, indent=rng.choice((None, 2)))
    several = [{**value, f"{word}_n": n} for n in range(3)]
    link = {"type": "resource_link", "uri": f"note://{word}", "name": word}
    kind = rng.randrange(10)
    if kind < 2:
        return schema, {"content": [text(written)], "structuredContent": value}
    if kind == 2:
        schema.pop("additionalProperties", None)
        listed = {"type": "object", "properties": {"result": {"type": "array", "items": schema}}}
        blocks = [text(json.dumps(one)) for one in several]
        return listed, {"content": blocks, "structuredContent": {"result": several}}
    if kind == 3:
        blocks = [text(f"See {word}:"), IMAGE, text(written), link, text(f"That was {word}.")]
        return schema, {"content": blocks, "structuredContent": value}
    if kind == 4:
        return None, {"content": [text(written), IMAGE, INSIDE]}
    if kind == 5:
        return None, {"content": [link, text(f"A note on {word}."), IMAGE]}
    if kind == 6:
        return schema, {"content": [text("There is no such one.")], "isError": True}
    if kind == 7:
        return None, {"content": [text(json.dumps(several))]}
    if kind == 8:
        return None, {"content": [IMAGE, link, text(written)]}
    return None, {"content": [text(written)], "structuredContent": value}


class Office(Shop):
    """A server whose tools come from a seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.tools, self.answers = [], {}
        for number in range(TOOLS):
            rng = Random(f"{seed} {number}")
            word = WORDS[number % len(WORDS)]
            name = f"{VERBS[(number // 3 + number) % len(VERBS)]}_{word}_{number}"
            schema, self.answers[name] = _answer(rng, f"{word}{number}")
            given = {"id": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}}
            more: dict[str, Any] = {"outputSchema": schema} if schema else {}
            if rng.random() < 0.8:
                more["annotations"] = READS
            said = f"{name.split('_')[0].capitalize()} {word} number {number}, by its id."
            self.tools.append(tool(name, said, given, required=["id"], **more))

    async def answer(self, ctx: Any, params: Any) -> dict[str, Any]:
        return self.answers[params.name]


async def main(seed: int) -> None:
    from mcp.server.stdio import stdio_server

    server = shop_server(Office(seed))
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]))
