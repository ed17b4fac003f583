"""Calls as Python writes them, which is our own layout too: `name(city="Lyon", n=3)`."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from toolshift.core.calls import Call, MalformedCall, malformed_call, read_call
from toolshift.lm.call_texts.format import Broken, Found, Text
from toolshift.lm.call_texts.python_values import Malformed, expect, read_value, skip
from toolshift.lm.call_texts.tools import Tools
from toolshift.lm.prompt import BARE

_OPENING = re.compile(r"(\w[\w.\-/:$]*)\((.*)", re.DOTALL)
_CALLED = re.compile(r"\s*+(?:\[\s*+)?\w[\w.\-/:$]*\(")
_BETWEEN = re.compile(r"[ \t]*[,;\n]?\s*+")


def well_formed(line: str) -> Call | None:
    """The call that a text is; None where it is none, or malformed."""
    try:
        name, start = _read_label(line, 0)
        arguments, end = _read_arguments(line, expect(line, start, "("))
    except Malformed:
        return None
    return read_call(name, arguments, text=line[start + 1 : -1]) if end == len(line) else None


def malformed(body: str) -> MalformedCall | None:
    """A call that cannot be read: an opening `name(`, then an argument or the end of a call."""
    opening = _OPENING.match(body)
    if opening is None:
        return None
    name, rest = opening.groups()
    if rest.rstrip().endswith(")"):
        return malformed_call(name, rest.rstrip()[:-1])
    # Without the closing bracket (the reply was cut off) only an argument tells it from prose.
    return malformed_call(name, rest) if re.match(r"\s*+[\w\"'.\-]+=", rest) else None


def listed_calls(line: str) -> list[Call]:
    """The calls of a list as Python has it: `[f(a="x"), g()]`."""
    calls: list[Call] = []
    position = 1
    if not (line.startswith("[") and line.endswith(")]")):
        return []
    try:
        while position < len(line):
            call, end = _read_one(line, skip(line, position))
            calls.append(call)
            end = skip(line, end)
            if line[end:] == "]":
                return calls
            position = expect(line, end, ",")
    except Malformed:
        pass
    return []


def python_calls(text: Text, mark: re.Match[str], tools: Tools) -> Found | None:
    """Calls in a list, one a line, or in a row, behind a mark."""
    return calls_from(text, mark.end(), tools)


def calls_from(text: Text, start: int, tools: Tools) -> Found | None:
    """The same from a place on."""
    if not _CALLED.match(text.text, start):
        return None
    calls: list[Call] = []
    position = text.skip(start)
    listed = text.at(position, "[")
    position += listed
    while True:
        begin = text.skip(position)
        try:
            call, position = _read_one(text.text, begin)
        except Malformed:
            opening = BARE.match(text.text, begin)
            raise Broken(opening[0] if opening else "", tuple(calls), begin) from None
        calls.append(_renamed(call, tools.names))
        between = _BETWEEN.match(text.text, position)
        following = between.end() if between else position
        if listed and text.at(following, "]"):
            return Found(tuple(calls), following + 1)
        more = _CALLED.match(text.text, following)
        if not more:
            if listed:
                raise Broken("", tuple(calls), following)
            return Found(tuple(calls), position)
        position = following


def _read_one(line: str, position: int) -> tuple[Call, int]:
    """A call, which may stand in `print(...)`, and the position after it."""
    name, start = _read_label(line, position)
    begin = expect(line, start, "(")
    if name == "print" and _CALLED.match(line, begin):
        call, end = _read_one(line, skip(line, begin))
        return call, expect(line, skip(line, end), ")")
    arguments, end = _read_arguments(line, begin)
    return read_call(name, arguments, text=line[start + 1 : end - 1]), end


def _renamed(call: Call, names: Collection[str]) -> Call:
    """A call by the name on offer: `default_api.get_rate` of Gemini, `search.call` of Llama."""
    if call.name in names:
        return call
    bare = call.name.removeprefix("default_api.").removeprefix("functions.").removesuffix(".call")
    if isinstance(call, MalformedCall):
        return malformed_call(bare, call.text)
    return read_call(bare, call.arguments)


def _read_arguments(line: str, position: int) -> tuple[dict[str, Any], int]:
    """Reads `key=value, ...)`; returns the arguments and the position after the bracket."""
    arguments: dict[str, Any] = {}
    position = skip(line, position)
    if line[position : position + 1] == ")":
        return arguments, position + 1
    while True:
        key, position = _read_label(line, skip(line, position))
        position = skip(line, expect(line, skip(line, position), "="))
        arguments[key], position = read_value(line, position)
        position = skip(line, position)
        if line[position : position + 1] == ")":
            return arguments, position + 1
        position = expect(line, position, ",")


def _read_label(line: str, position: int) -> tuple[str, int]:
    bare = BARE.match(line, position)
    if bare:
        return bare.group(), bare.end()
    if line[position : position + 1] != '"':
        raise Malformed
    value, end = read_value(line, position)
    return str(value), end
