"""Calls in JSON: objects with a name and arguments, or a name before an object of arguments."""

from __future__ import annotations

import re
from typing import Any

from toolshift.core.calls import Call, malformed_call, read_call
from toolshift.lm.call_texts.format import DECODER, Body, Broken, Found, Text
from toolshift.lm.call_texts.tools import Tools

NAME_KEYS = ("name", "tool", "tool_name", "action")
VALUE_KEYS = (
    "arguments", "parameters", "args", "input", "action_input", "tool_input", "tool_arguments",
    "params",
)  # fmt: skip
_ID_KEYS = ("id", "tool_call_id")
_BESIDE = frozenset((*NAME_KEYS, *_ID_KEYS, "type", "index"))
_NAMED = re.compile(r"[\"'](?:tool_)?name[\"']\s*+:\s*+[\"']([^\"'\n]*)[\"']")
_BETWEEN = re.compile(r"\s*+[,;]?\s*+")


def name_in(piece: str) -> str:
    """The name that stands in JSON which cannot be read."""
    named = _NAMED.search(piece)
    return named[1] if named else ""


def json_calls(text: Text, mark: re.Match[str], tools: Tools) -> Found | None:
    """Objects or lists of them, one after another."""
    calls: list[Call] = []
    position = text.skip(mark.end())
    if not text.at(position, "[{"):
        return None
    while True:
        try:
            value, end = DECODER.raw_decode(text.text, position)
        except (ValueError, RecursionError):
            raise Broken("", tuple(calls), position) from None
        for item in value if isinstance(value, list) else [value]:
            call = _call_of(item, tools, text.text[position:end])
            if call is None:
                raise Broken("", tuple(calls), position)
            calls.append(call)
        between = _BETWEEN.match(text.text, end)
        following = between.end() if between else end
        if not text.at(following, "{"):
            return Found(tuple(calls), end)
        position = following


def _call_of(item: Any, tools: Tools, piece: str) -> Call | None:
    """The call that an object behind a mark is; None where it names no tool."""
    inner = item.get("function") if isinstance(item, dict) else None
    function = inner if isinstance(inner, dict) else item
    if not isinstance(function, dict):
        return None
    keys = NAME_KEYS if isinstance(inner, dict) else (*NAME_KEYS, "function")
    name = next((function[key] for key in keys if isinstance(function.get(key), str)), None)
    given = next((function[key] for key in VALUE_KEYS if key in function), None)
    if name is None and len(function) == 1:  # {"get_rate": {"base": "USD"}}
        ((name, given),) = function.items()
    if not isinstance(name, str) or not isinstance(given, dict | str | None):
        return None if name is None else malformed_call(name, piece)
    if given is None and function.keys() - _BESIDE - {"function", *VALUE_KEYS}:
        return malformed_call(name, piece)
    call_id = next((str(item[key]) for key in _ID_KEYS if isinstance(item.get(key), str)), "")
    raw = given if isinstance(given, str) else piece
    return read_call(tools.own(name, "functions."), given, call_id, text=raw)


def named(header: str) -> Body:
    """A body whose `header` names the tool (groups `name` and `id`) before an object in JSON.

    The header may be empty where the mark itself has the name.
    """
    pattern = re.compile(header)

    def read(text: Text, mark: re.Match[str], tools: Tools) -> Found | None:
        head = pattern.match(text.text, mark.end())
        if head is None:
            return None
        groups = {**mark.groupdict(), **head.groupdict()}
        name = tools.own(groups["name"].strip(), "functions.")
        position = text.skip(head.end())
        if position == len(text.text):
            raise Broken(name)
        if not text.at(position, '{"'):
            return None
        try:
            value, end = DECODER.raw_decode(text.text, position)
        except (ValueError, RecursionError):
            raise Broken(name) from None
        raw = text.text[position:end]
        return Found((read_call(name, value, groups.get("id") or "", text=raw),), end)

    return read
