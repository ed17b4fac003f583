"""Values as Python writes them where JSON has others, and the small steps of reading them."""

from __future__ import annotations

import json
import re
from typing import Any

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
_DEEPEST = 32


class Malformed(ValueError):
    """The text does not follow the call syntax."""


def read_value(line: str, position: int, depth: int = 0) -> tuple[Any, int]:
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
        position = skip(line, position)
        if line.startswith(closing, position):
            found = dict(zip(keys, values, strict=True)) if closing == "}" else values
            return found, position + 1
        if values:
            position = skip(line, expect(line, position, ","))
        value, position = read_value(line, position, depth)
        if closing == "}":
            if not isinstance(value, str):
                raise Malformed
            keys.append(value)
            position = skip(line, expect(line, skip(line, position), ":"))
            value, position = read_value(line, position, depth)
        values.append(value)


def _unescaped(escape: re.Match[str]) -> str:
    code, sign = escape[1] or escape[2] or escape[3], escape[4]
    if code:
        return chr(int(code, 16))
    return _ESCAPED.get(sign, sign if sign in "\\'\"" else escape[0])


def expect(line: str, position: int, mark: str) -> int:
    """The place after a mark that must stand here."""
    if line[position : position + 1] != mark:
        raise Malformed
    return position + 1


def skip(line: str, position: int) -> int:
    """The place after spaces."""
    while line[position : position + 1] in (" ", "\n", "\t"):
        position += 1
    return position
