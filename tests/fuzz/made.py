"""Inputs as others may send them: odd, broken, long, and nearly right.

Whatever is made asks a `random.Random` for its choices and nothing else. So the same makers serve
three engines: numbers drawn by seed, Hypothesis (which shrinks what fails) and the bytes of a
coverage-guided fuzzer. No loop here waits for a choice to come out, for bytes may run out.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

SIGNS = (
    *"aZ09 _-./\\\"'`{}[]()<>=:,;|&?!#*$%@~^+\n\t\r",
    *("é", "‑", "日本", "\u202e", "\u200b", "\x00", "\x1b[31m", "\ud800", "\U0001f600", "ß", "ﬁ"),
)
PIECES = (
    *("<tool_call>", "</tool_call>", "<tools>", "</tools>", "<tool_response>", "<think>"),
    *("```json\n", "```", '{"name": "', '", "arguments": ', "arguments", "name", "parameters"),
    *("final_answer", "refuse", "ask_user", "not_found", "get_order", "find_place"),
    *("null", "true", "NaN", "Infinity", "1e999", "-0", "1" * 30, "9" * 5000, "0x1F", "2026-02-31"),
    *("$ref", "#/", "#/$defs/a", "#/properties/a", "[*", "&a ", "*a", "!!python/object:os.system "),
    *("---\n", "- ", ": ", "? ", "| ", "|---|", "%YAML 9.9\n", "[a.b]\n", "[[a]]\n", "a = 1\n"),
    *("BK7Q-X2MN", "bk7q x2mn", "The code is Q7K2-B3RT. ", "I cannot do this. ", "Which one? "),
    *("sk-abcdefgh1234567890", "Bearer abcdefghijkl", "-----BEGIN PRIVATE KEY-----", "token="),
    *("data: ", "[DONE]", "event: x\n\n", "&#45;", "\\u2011", "\\ud800", "%2e%2e/", "../"),
    *("poi/listing/0", "identity_erasure:2", "+", "@1", "erase", "12 km", "9:30 pm", "1,234.5"),
)
KEYS = (
    *("name", "arguments", "function", "tool_calls", "content", "role", "id", "type", "text"),
    *("properties", "required", "items", "enum", "const", "default", "$ref", "$defs", "allOf"),
    *("anyOf", "oneOf", "not", "additionalProperties", "description", "minimum", "format", "a"),
    *("parameters", "inputSchema", "outputSchema", "annotations", "tool", "value", "from", "key"),
    *("attributes", "kind", "status", "ok", "ms", "error", "end", "x y", "", "é", "a.b", "a/b"),
)
NUMBERS = (0, 1, -1, 2, 7, 0.0, -0.0, 0.5, 1e300, 5e-324, 2**31, 2**53 + 1, 2**63, -(2**63), 2**64)
ROLES = ("system", "user", "assistant", "tool", "human", "gpt", "function_call", "observation")
TYPES = ("string", "integer", "number", "boolean", "array", "object", "null", "any", 7)


def text(rng: Random, most: int = 12) -> str:
    """A text of signs and pieces that mean something to some reader; rarely a long one."""
    if rng.random() < 0.002:
        return long_text(rng)
    count = rng.randrange(most)
    return "".join(rng.choice(PIECES if rng.random() < 0.4 else SIGNS) for _ in range(count))


def long_text(rng: Random, most: int = 20_000) -> str:
    """One thing over and again: what a reader that is slower than linear takes long for."""
    unit = "".join(rng.choice(PIECES if rng.random() < 0.5 else SIGNS) for _ in range(3)) or "a"
    unit = unit[:60]
    start = rng.choice(("", rng.choice(PIECES)[:60]))
    return start + unit * (most // len(unit))


def word(rng: Random) -> str:
    """A name, mostly a plain one."""
    return rng.choice(KEYS) if rng.random() < 0.8 else text(rng, 4)


def leaf(rng: Random) -> Any:
    """A value of JSON that holds no other."""
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice(NUMBERS)
    if kind == 1:
        return rng.choice((None, True, False, [], {}))
    return text(rng, 6)


def data(rng: Random, depth: int = 3) -> Any:
    """A value of JSON, halves of characters aside."""
    kind = rng.randrange(4) if depth else 0
    if kind == 2:
        return [data(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 3:
        return {word(rng): data(rng, depth - 1) for _ in range(rng.randrange(5))}
    return leaf(rng)


def deep(rng: Random) -> Any:
    """A value that is nested beyond all use."""
    value: Any = leaf(rng)
    for _ in range(rng.choice((20, 33, 50, 101, 200, 400))):
        value = [value] if rng.random() < 0.5 else {word(rng): value}
    return value


ODD = (
    b"raw",
    {1: 2},
    {None: 1},
    (1, 2),
    {1, 2},
    object,
    float("nan"),
    float("inf"),
    10**400,
    1j,
    ...,
)


def odd(rng: Random, depth: int = 2) -> Any:
    """A value of Python as an agent's function may return it: JSON, or what is none."""
    kind = rng.randrange(8)
    if kind == 0:
        return rng.choice(ODD)
    if kind == 1:
        return deep(rng)
    if kind == 2 and depth:
        return {word(rng): odd(rng, depth - 1) for _ in range(rng.randrange(4))}
    if kind == 3 and depth:
        return [odd(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 4:
        held: list[Any] = []
        held.append(held)  # it holds itself
        return held
    return data(rng, depth)


# -- nearly right ----------------------------------------------------------------------------------


def changed(rng: Random, value: Any, times: int = 3) -> Any:
    """A copy of a value of JSON, changed in a few places."""
    for _ in range(1 + rng.randrange(times)):
        value = _changed(rng, value)
    return value


def _changed(rng: Random, value: Any) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        act = rng.randrange(9)
        if act == 0:
            return {k: v for k, v in value.items() if k != key}
        if act == 1:
            return {**value, word(rng): data(rng, 2)}
        if act == 2:
            return {(word(rng) if k == key else k): v for k, v in value.items()}
        return {**value, key: _changed(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.9:
        place = rng.randrange(len(value))
        act = rng.randrange(9)
        if act == 0:
            return value[:place] + value[place + 1 :]
        if act == 1:
            return [*value, value[place]]
        if act == 2:
            return [*value[:place], data(rng, 2), *value[place:]]
        return [*value[:place], _changed(rng, value[place]), *value[place + 1 :]]
    if isinstance(value, str) and rng.random() < 0.7:
        return changed_text(rng, value)
    return rng.choice((data, data, leaf, deep))(rng) if rng.random() < 0.95 else [value] * 300


def changed_text(rng: Random, value: str) -> str:
    """A text that is cut, doubled, or has something in it."""
    place = rng.randrange(len(value) + 1)
    act = rng.randrange(5)
    if act == 0:
        return value[:place]
    if act == 1:
        return value[:place] + rng.choice(SIGNS) + value[place:]
    if act == 2:
        return value[:place] + rng.choice(PIECES) + value[place:]
    if act == 3:
        return value[:place] + value[place + 1 + rng.randrange(4) :]
    end = min(len(value), place + rng.randrange(40))
    return value[:end] + value[place:end] * rng.choice((1, 2, 50)) + value[end:]


def changed_bytes(rng: Random, value: bytes) -> bytes:
    """Bytes with a few of them gone, added, or others; or a text that is changed."""
    if rng.random() < 0.5:
        told = changed_text(rng, value.decode("utf-8", "replace"))
        return told.encode("utf-8", "replace")
    place = rng.randrange(len(value) + 1)
    act = rng.randrange(4)
    if act == 0:
        return value[:place] + bytes((rng.randrange(256),)) + value[place + 1 :]
    if act == 1:
        return value[:place] + bytes(rng.randrange(256) for _ in range(4)) + value[place:]
    if act == 2:
        return value[:place]
    return value[place:] + value[:place]


def as_bytes(rng: Random, value: Any) -> bytes:
    """A value as the bytes of a JSON file, mostly; a few of them are changed now and then."""
    raw = json.dumps(value, ensure_ascii=rng.random() < 0.1).encode("utf-8", "replace")
    return changed_bytes(rng, raw) if rng.random() < 0.3 else raw


# -- schemas and tools -----------------------------------------------------------------------------

REFERENCES = ("#", "#/$defs/a", "#/properties/a", "#/$defs/a/items", "#a", "http://x/y", "#/a/0", 7)


def schema(rng: Random, depth: int = 3) -> Any:
    """A JSON Schema, its references into itself included; now and then it is none."""
    kind = rng.randrange(12)
    if kind == 0:
        return rng.choice((True, False, None, {}, [], "string"))
    if kind == 1:
        return {"$ref": rng.choice(REFERENCES)}
    made: dict[str, Any] = {"type": rng.choice(TYPES)}
    if rng.random() < 0.3:
        made["description"] = text(rng, 4)
    if rng.random() < 0.15:
        made[rng.choice(("enum", "examples", "required"))] = [leaf(rng), leaf(rng)]
    if rng.random() < 0.15:
        made[rng.choice(("default", "const", "minimum", "minLength", "format"))] = leaf(rng)
    if depth and rng.random() < 0.5:
        names = [word(rng) for _ in range(rng.randrange(4))]
        made["properties"] = {name: schema(rng, depth - 1) for name in names}
        made["required"] = names[: rng.randrange(3)]
    if depth and rng.random() < 0.2:
        made["items"] = schema(rng, depth - 1)
    if depth and rng.random() < 0.2:
        of = rng.choice(("allOf", "anyOf", "oneOf", "prefixItems"))
        made[of] = [schema(rng, depth - 1) for _ in range(1 + rng.randrange(2))]
    if depth and rng.random() < 0.15:
        made[rng.choice(("$defs", "definitions", "patternProperties", "dependentSchemas"))] = {
            "a": schema(rng, depth - 1)
        }
    if depth and rng.random() < 0.1:
        of = rng.choice(("not", "if", "then", "additionalProperties", "propertyNames"))
        made[of] = schema(rng, depth - 1)
    return made


def tool(rng: Random, name: str = "") -> dict[str, Any]:
    """A tool as an MCP server lists it."""
    made: dict[str, Any] = {"name": name or rng.choice(("get_order", "list-orders", word(rng)))}
    if rng.random() < 0.8:
        made["description"] = text(rng)
    if rng.random() < 0.9:
        made["inputSchema"] = schema(rng)
    if rng.random() < 0.3:
        made["outputSchema"] = schema(rng)
    if rng.random() < 0.3:
        made["annotations"] = {"readOnlyHint": rng.choice((True, False, "yes"))}
    if rng.random() < 0.1:
        made[word(rng)] = data(rng, 2)
    return made


def tools(rng: Random, most: int = 4) -> list[dict[str, Any]]:
    """A list of tools, whose names mostly differ."""
    return [
        tool(rng, f"tool_{n}" if rng.random() < 0.7 else "") for n in range(rng.randrange(most))
    ]


# -- what agents say ------------------------------------------------------------------------------


def call(rng: Random) -> Any:
    """An entry of `tool_calls`."""
    if rng.random() < 0.1:
        return odd(rng)
    spoken = odd(rng) if rng.random() < 0.5 else json.dumps(data(rng, 2))
    if isinstance(spoken, str) and rng.random() < 0.3:
        spoken = changed_text(rng, spoken)
    function = {"name": word(rng) if rng.random() < 0.9 else odd(rng), "arguments": spoken}
    return {"id": rng.choice(("1", "", None, 7)), "type": "function", "function": function}


def message(rng: Random) -> Any:
    """A message as an agent's function may return it."""
    kind = rng.randrange(10)
    if kind == 0:
        return odd(rng)
    if kind == 1:
        return text(rng, 30)
    made: dict[str, Any] = {"role": "assistant", "content": text(rng, 30)}
    if rng.random() < 0.2:
        made["content"] = odd(rng)
    if rng.random() < 0.7:
        made["tool_calls"] = [call(rng) for _ in range(rng.randrange(3))]
    if rng.random() < 0.1:
        made["tool_calls"] = odd(rng)
    return made


def written_call(rng: Random) -> str:
    """A call as text, in one of the ways in which models write one."""
    name, values = word(rng), {word(rng): data(rng, 2) for _ in range(rng.randrange(3))}
    spoken = json.dumps({"name": name, "arguments": values})
    way = rng.randrange(6)
    if way == 0:
        return f"<tool_call>{spoken}</tool_call>"
    if way == 1:
        return f"```json\n{spoken}\n```"
    if way == 2:
        return spoken
    if way == 3:
        inside = ", ".join(f"{key}={value!r}" for key, value in values.items())
        return f"[{name}({inside})]"
    inside = ", ".join(f"{key}={json.dumps(value)}" for key, value in values.items())
    return f"{name}({inside})"


def said(rng: Random) -> str:
    """What a model writes: prose, calls, or something between."""
    parts = [
        written_call(rng) if rng.random() < 0.5 else text(rng, 20)
        for _ in range(1 + rng.randrange(3))
    ]
    told = rng.choice(("\n", " ", "")).join(parts)
    return changed_text(rng, told) if rng.random() < 0.4 else told
