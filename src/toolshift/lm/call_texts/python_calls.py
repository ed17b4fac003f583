"""Calls as Python writes them, which is our own layout too: `name(city="Lyon", n=3)`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from toolshift.core.calls import Call, MalformedCall, malformed_call, read_call
from toolshift.lm.call_texts.format import Broken, Found, Text
from toolshift.lm.call_texts.tools import Tools
from toolshift.lm.prompt import BARE

_DECODER = json.JSONDecoder(strict=False)
_LITERALS: dict[str, Any] = {"True": True, "False": False, "None": None}
_LITERAL = re.compile(r"(True|False|None)\b")
_QUOTED = re.compile(
    r"\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*+\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*+'''"
    r"|'(?:[^'\\\n]|\\.)*+'|\"(?:[^\"\\\n]|\\.)*+\"",
    re.DOTALL,
)
"""A text in the quotes of Python."""
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4})|(.))",
    re.DOTALL,
)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\n": "", "b": "\b", "f": "\f", "0": "\0"}
_OPENING = re.compile(r"(\w[\w.\-/:$]*)\((.*)", re.DOTALL)
_CALLED = re.compile(r"\s*+(?:\[\s*+)?\w[\w.\-/:$]*\(")
_BETWEEN = re.compile(r"[ \t]*[,;\n]?\s*+")
_DEEPEST = 32


class Malformed(ValueError):
    """The text does not follow the call syntax."""


def well_formed(line: str) -> Call | None:
    """The call that a text is; None where it is none, or malformed."""
    try:
        name, start = _read_label(line, 0)
        arguments, end = _read_arguments(line, _expect(line, start, "("))
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
            call, end = _read_one(line, _skip(line, position))
            calls.append(call)
            end = _skip(line, end)
            if line[end:] == "]":
                return calls
            position = _expect(line, end, ",")
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
    begin = _expect(line, start, "(")
    if name == "print" and _CALLED.match(line, begin):
        call, end = _read_one(line, _skip(line, begin))
        return call, _expect(line, _skip(line, end), ")")
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
    position = _skip(line, position)
    if line[position : position + 1] == ")":
        return arguments, position + 1
    while True:
        key, position = _read_label(line, _skip(line, position))
        position = _skip(line, _expect(line, _skip(line, position), "="))
        arguments[key], position = _read_value(line, position)
        position = _skip(line, position)
        if line[position : position + 1] == ")":
            return arguments, position + 1
        position = _expect(line, position, ",")


def _read_label(line: str, position: int) -> tuple[str, int]:
    bare = BARE.match(line, position)
    if bare:
        return bare.group(), bare.end()
    if line[position : position + 1] != '"':
        raise Malformed
    value, end = _read_value(line, position)
    return str(value), end


def _read_value(line: str, position: int, depth: int = 0) -> tuple[Any, int]:
    """Reads JSON, or what Python writes in its place, which chat models mix in."""
    literal = _LITERAL.match(line, position)
    if literal:
        return _LITERALS[literal.group()], literal.end()
    if not line.startswith('"""', position):
        try:
            return _DECODER.raw_decode(line, position)
        except (ValueError, RecursionError):
            pass
    quoted = _QUOTED.match(line, position)
    if quoted:
        width = 3 if quoted[0].startswith(('"""', "'''")) else 1
        return _ESCAPE.sub(_unescaped, quoted[0][width:-width]), quoted.end()
    sign = line[position : position + 1]
    if sign not in ("[", "{") or depth == _DEEPEST:
        raise Malformed
    return _read_items(line, position + 1, "]" if sign == "[" else "}", depth + 1)


def _read_items(line: str, position: int, closing: str, depth: int) -> tuple[Any, int]:
    """Reads a list or a dictionary of Python up to its bracket."""
    values: list[Any] = []
    keys: list[Any] = []
    while True:
        position = _skip(line, position)
        if line.startswith(closing, position):
            found = dict(zip(keys, values, strict=True)) if closing == "}" else values
            return found, position + 1
        if values:
            position = _skip(line, _expect(line, position, ","))
        value, position = _read_value(line, position, depth)
        if closing == "}":
            if not isinstance(value, str):
                raise Malformed
            keys.append(value)
            position = _skip(line, _expect(line, _skip(line, position), ":"))
            value, position = _read_value(line, position, depth)
        values.append(value)


def _unescaped(escape: re.Match[str]) -> str:
    code, sign = escape[1] or escape[2] or escape[3], escape[4]
    if code:
        return chr(int(code, 16))
    return _ESCAPED.get(sign, sign if sign in "\\'\"" else escape[0])


def _expect(line: str, position: int, mark: str) -> int:
    if line[position : position + 1] != mark:
        raise Malformed
    return position + 1


def _skip(line: str, position: int) -> int:
    while line[position : position + 1] in (" ", "\n", "\t"):
        position += 1
    return position
