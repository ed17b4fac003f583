"""The calls that agents speak, and the one place that reads them.

Whatever an agent gives as a call becomes a `ToolCall`, whose arguments are a JSON object that a
tool can take and a file can hold, or a `MalformedCall`, which is the agent's mistake and answered
as such. Nothing else can come of it: no form of arguments raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

import msgspec

from toolshift.core.text import storable

DEEPEST = 32
"""How deep the arguments of a call may nest; no tool of ours needs more than three levels."""
LARGEST = 256 * 1024
"""The most bytes of the arguments of a call; those of our tools have some hundreds."""
LARGEST_EXTRA = 4 * 1024 * 1024
"""The most bytes of one field beside a message or call; sealed thoughts have some thousands."""
LONGEST_NAME = 200
_INTEGERS = range(-(2**63), 2**64)
"""What 64 bits hold, signed or not: readers of JSON differ beyond it."""


class ToolCall(msgspec.Struct, frozen=True):
    """One call as the agent spoke it, with arguments that could be read.

    Attributes:
        name: of the tool as shown.
        arguments: a JSON object.
        id: the agent's own, if it gave one.
        extra: what came beside them, such as a signature; kept, and given back as it came.
    """

    name: str
    arguments: dict[str, Any]
    id: str = ""
    extra: dict[str, Any] = {}


class MalformedCall(msgspec.Struct, frozen=True):
    """A call whose arguments are no JSON object, or beyond the limits.

    Attributes:
        name: of the tool as shown.
        text: the arguments as they came; where they were no text, what is wrong, in brackets.
        id: the agent's own, if it gave one.
        extra: what came beside them, such as a signature; kept, and given back as it came.
    """

    name: str
    text: str
    id: str = ""
    extra: dict[str, Any] = {}


Call = ToolCall | MalformedCall


class Unreadable(ValueError):
    """Arguments that are no JSON object, or beyond the limits.

    Args:
        text: what is kept of them.

    Attributes:
        text: what is kept of them.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def read_call(name: object, arguments: object, call_id: object = "", text: str = "") -> Call:
    """Reads a call in whatever form an agent has given it."""
    try:
        return ToolCall(_short(name), read_arguments(arguments), _short(call_id))
    except Unreadable as fault:
        return malformed_call(name, text or fault.text, call_id)


def malformed_call(name: object, text: str, call_id: object = "") -> MalformedCall:
    """Makes a call whose arguments are already known to be unreadable."""
    return MalformedCall(_short(name), storable(text[:LARGEST]), _short(call_id))


def read_arguments(given: object) -> dict[str, Any]:
    """Reads the arguments of a call: JSON as text, an object, or nothing."""
    if given is None:
        return {}
    if isinstance(given, str):  # servers write "", " " or "null" for a call without arguments
        nothing = given.strip() in ("", "null")
        return {} if nothing else _from_text(storable(given))
    written = _written(given)
    if not isinstance(given, dict):
        raise Unreadable(written.decode())
    arguments: dict[str, Any] = msgspec.json.decode(written)
    return arguments


def read_extra(given: Mapping[str, Any]) -> dict[str, Any]:
    """What came beside a message or a call, as a file can hold it: fields that are no JSON go."""
    kept = {}
    for name, value in given.items():
        try:
            text = msgspec.json.encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError):
            continue
        if isinstance(name, str) and len(text) <= LARGEST_EXTRA:
            kept[storable(name)] = msgspec.json.decode(text)
    return kept


def is_json(text: str) -> bool:
    """Whether a text is JSON within the limits, an object or not."""
    try:
        _decoded(text)
    except Unreadable:
        return False
    return True


def _from_text(text: str) -> dict[str, Any]:
    value = _decoded(text)
    if not isinstance(value, dict):
        raise Unreadable(text)
    return value


def _decoded(text: str) -> object:
    if len(text) > LARGEST:
        raise Unreadable(_too_large(len(text)))
    try:
        value: object = msgspec.json.decode(text)
    except (ValueError, RecursionError):  # msgspec's own errors, and half a character
        raise Unreadable(text) from None
    if _fault(value):
        raise Unreadable(text)
    return value


def _written(given: object) -> bytes:
    """A value as JSON."""
    fault = _fault(given)
    if fault:
        raise Unreadable(f"(not JSON: {fault})")
    try:
        written = msgspec.json.encode(given)
    except UnicodeEncodeError:
        raise Unreadable("(not JSON: half a character)") from None
    except (TypeError, ValueError, OverflowError, RecursionError) as why:
        raise Unreadable(storable(f"(not JSON: {why})")) from None
    if len(written) > LARGEST:
        raise Unreadable(_too_large(len(written)))
    return written


def _fault(value: object) -> str:
    """Why a value is no JSON within the limits; "" where it is.

    Level by level, so that neither depth nor a value that holds itself is a danger.
    """
    level = [value]
    for _ in range(DEEPEST + 1):
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                for key in item:
                    if not isinstance(key, str):
                        return f"a key of type {type(key).__name__}"
                below += item.values()
            elif isinstance(item, list | tuple):
                below += item
            elif wrong := _wrong_leaf(item):
                return wrong
        if not below:
            return ""
        if len(below) > LARGEST:
            return f"more than {LARGEST} values"
        level = below
    return f"nested more than {DEEPEST} levels deep"


def _wrong_leaf(value: object) -> str:
    if value is None or isinstance(value, str | bool):
        return ""
    if isinstance(value, int):
        return "" if value in _INTEGERS else "an integer of more than 64 bits"
    if isinstance(value, float):
        return "" if isfinite(value) else "a number that is not finite"
    return f"a value of type {type(value).__name__}"


def _too_large(size: int) -> str:
    return f"({size} bytes, more than the {LARGEST} that a call may have)"


def _short(name: object) -> str:
    """A name as a trace can hold it."""
    if isinstance(name, str):
        return storable(name[:LONGEST_NAME])
    return "" if name is None else f"({type(name).__name__})"
