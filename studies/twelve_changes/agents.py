"""Two scripted agents: one has learned today's tools by heart, one reads the list that it is shown.

Both know the task (its facts, and under which names these stood); neither is told what will change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

JSON = dict[str, Any]
TASKS = {
    ask: (call, str(path).split("."))
    for change in yaml.safe_load((Path(__file__).parent / "changes.yaml").read_text()).values()
    for _, ask, call, path, _ in change["tasks"]
}


def learned(messages: Sequence[JSON], tools: Sequence[JSON]) -> JSON | str:
    """Makes the call that it has learned, and takes the answer from where it stood."""
    call, path = _task(messages)
    last = messages[-1]
    if last["role"] != "tool":
        ((name, arguments),) = call.items()
        return _called(name, arguments)
    found = _at(_read(last["content"]), path)
    return "I could not find it." if found is None else str(found)


def reader(messages: Sequence[JSON], tools: Sequence[JSON]) -> JSON | str:
    """Picks the tool that fits best by its words, and fills what its schema asks for."""
    call, path = _task(messages)
    last = messages[-1]
    ask = next(m["content"] for m in messages if m["role"] == "user")
    ((name, arguments),) = call.items()
    if last["role"] != "tool":
        shown = [t["function"] for t in tools]
        own = ("final_answer", "refuse", "ask_user")
        best = max((t for t in shown if t["name"] not in own), key=lambda t: _fits(name, t))
        facts = list(_leaves(arguments))
        return _called(best["name"], _filled(best["parameters"], name, facts, ask, ()) or {})
    result = _read(last["content"])
    found = _at(result, path)
    if found is None:
        key = next((one for one in reversed(path) if not one.isdigit()), path[-1])
        named = [v for k, v in _pairs(result) if _words(k) == _words(key)]
        like = [v for k, v in _pairs(result) if _words(key) & _words(k)]
        found = next(iter([*named, *like]), None)
    return "I could not find it." if found is None else str(found)


def _task(messages: Sequence[JSON]) -> tuple[JSON, list[str]]:
    return TASKS[next(m["content"] for m in messages if m["role"] == "user")]


def _called(name: str, arguments: JSON) -> JSON:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": function}],
    }


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _at(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        if isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict) and key in value:
            value = value[key]
        else:
            return None
    return value if not isinstance(value, (dict, list)) else None


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(each, (dict, list)):
                yield key, each
        for each in value.values():
            yield from _pairs(each)
    elif isinstance(value, list):
        for each in value:
            yield from _pairs(each)


def _words(name: str) -> set[str]:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return {w.lower().rstrip("s") for w in re.findall(r"[A-Za-z]+", apart)}


def _fits(name: str, tool: JSON) -> float:
    if tool["name"] == name:
        return 9.0
    wanted, here = _words(name), _words(tool["name"])
    choices = _words(" ".join(map(str, _choices(tool["parameters"]))))
    told = _words(tool.get("description") or "")
    return (
        len(wanted & here) / len(wanted | here)
        + 0.5 * len(wanted & choices) / len(wanted)
        + 0.3 * len(wanted & told) / len(wanted)
    )


def _choices(schema: JSON) -> list[Any]:
    return [c for p in schema.get("properties", {}).values() for c in p.get("enum", ())]


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, (*path, key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield from _leaves(value[0], path)
    else:
        yield path, value


def _filled(schema: Any, tool: str, facts: list[Any], ask: str, path: tuple[str, ...]) -> Any:
    """A value for a schema: from the facts by their names, else from the request; None for none."""
    if not isinstance(schema, dict):
        return None
    for key in ("allOf", "oneOf", "anyOf"):
        if key in schema:
            found = [_filled(one, tool, facts, ask, path) for one in schema[key]]
            found = [one for one in found if one is not None]
            if key == "allOf":
                return {k: v for one in found if isinstance(one, dict) for k, v in one.items()}
            return max(found, key=lambda one: str(one).lower() in ask.lower(), default=None)
    if "properties" in schema:
        made = {}
        places = schema["properties"]
        needed = schema.get("required", ())
        taken: set[Any] = set()
        for key in sorted(places, key=lambda one: -_best((*path, one), facts, places[one])):
            left = [one for one in facts if one[0] not in taken]
            value = _filled(places[key], tool, left, ask, (*path, key))
            own = _own((*path, key), left, places[key]) if "properties" not in places[key] else None
            if value is None and key in needed:
                value, own = _asked(places[key], key, tool, left, ask)
            if value is not None:
                made[key] = value
                taken |= {own}
        return made or None
    items = schema.get("items")
    if schema.get("type") == "array" and isinstance(items, dict) and "properties" in items:
        one = _filled(items, tool, facts, ask, path)
        return [one] if one else None
    own = _own(path, facts, schema)
    return None if own is None else _typed(schema, dict(facts)[own])


def _own(path: Sequence[str], facts: list[Any], schema: JSON) -> Any:
    """The name of the fact that a place is for, by its likeness; None where none is like it."""
    if not path:
        return None
    fitting = [
        (_alike(path, own), own)
        for own, value in facts
        if _fits_type(_typed(schema, value), schema)
    ]
    best = max(fitting, default=(0, None))
    return best[1] if best[0] >= 1 else None


def _best(path: Sequence[str], facts: list[Any], schema: JSON) -> float:
    return max((_alike(path, own) for own, _ in facts), default=0)


def _fits_type(value: Any, schema: JSON) -> bool:
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds] if kinds else []
    if schema.get("enum") and value not in schema["enum"]:
        return False
    if isinstance(value, bool):
        return not kinds or "boolean" in kinds
    of = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return not kinds or of.get(type(value)) in kinds or (type(value) is int and "number" in kinds)


def _alike(path: Sequence[str], own: Sequence[str]) -> float:
    if path[-1] == own[-1]:
        return 2.5 + len(set(path) & set(own)) / len({*path, *own})
    new, old = _words(path[-1]), _words(own[-1])
    return 1 + len(new & old) / len(new | old) if new & old else 0


def _typed(schema: JSON, value: Any) -> Any:
    """The value in the type and the choice that the schema names."""
    choices = schema.get("enum")
    if choices and value not in choices:
        return next((c for c in choices if _words(str(c)) & _words(str(value))), value)
    kind = schema.get("type")
    if kind == "string" and not isinstance(value, str):
        return str(value)
    if kind in ("integer", "number") and isinstance(value, str) and value.isdigit():
        return int(value)
    return value


def _asked(schema: JSON, key: str, tool: str, facts: list[Any], ask: str) -> tuple[Any, Any]:
    """What the request, the name of the tool as it was, or the one fact that is left says for a
    value that is required; with the name of that fact."""
    choices = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if choices:
        by_name = max(choices, key=lambda c: len(_words(str(c)) & _words(tool)) - len(str(c)) / 99)
        said = [c for c in choices if re.search(rf"\b{re.escape(str(c))}\b", ask)]
        return (said[0] if said and key != "method" else by_name), None
    left = [own for own, value in facts if _fits_type(_typed(schema, value), schema)]
    if len(left) == 1:
        return _typed(schema, dict(facts)[left[0]]), left[0]
    return None, None
