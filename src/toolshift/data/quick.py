"""Lines of OpenAI messages, renamed without taking their tools apart.

Most rows of a large file share few lists of tools. A list is looked at once, by its bytes; after
that a line costs what its messages cost. What is not plain (another format, a fault, a shift that
must be played) is left to `augment.augmented`, which makes the same of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from toolshift.core.shift import NotApplicable
from toolshift.core.tool import JSON
from toolshift.data.augment import COLUMN, Draw, Recipe, digest_of, draws, due, told
from toolshift.data.conversation import RowFault, encoded, read_tools, rewrapped
from toolshift.data.formats.openai import THOUGHTS
from toolshift.data.prepared import Prepared, prepared
from toolshift.data.replay import validator_of
from toolshift.runs.cell import Stack, write_stack

MOST_LISTS = 4096
MOST_SHOWN = 4096
"""How much is kept, whatever the length of a file."""
_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_MESSAGES = msgspec.json.Decoder(list[dict[str, Any]])


class _NotPlain(Exception):
    """The line is for the way that takes everything apart."""


@dataclass(frozen=True, eq=False)
class _Shown:
    """A list of tools under one draw."""

    ready: Prepared
    raw: msgspec.Raw
    checks: Mapping[str, Any]
    label: str


@dataclass(frozen=True, eq=False)
class _List:
    """A list of tools, looked at once."""

    number: int
    raws: list[Any]
    checks: Mapping[str, Any]

    def under(self, draw: Draw) -> _Shown | None:
        """The tools under a draw; None where it is not applicable, or changes nothing."""
        tools = read_tools(self.raws)
        try:
            ready = prepared(tools, draw.stack, (), draw.number)
        except NotApplicable:
            return None
        before = [tool.function for tool in tools]
        if not ready.plain or [tool.function for tool in ready.shown] == before:
            return None
        listed = [rewrapped(tool, self.raws) for tool in ready.shown]
        checks = {name: validator_of(schema) for name, schema in ready.schemas.items()}
        return _Shown(ready, msgspec.Raw(JSON.encode(listed)), checks, write_stack(draw.stack))


class Quick:
    """Renames lines; keeps what it knows about lists of tools.

    Args:
        recipe: what is done.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.plain = not recipe.format and recipe.to in ("", "openai")
        self._lists: dict[bytes, _List] = {}
        self._shown: dict[tuple[int, int, int], _Shown | None] = {}
        self._stacks: dict[Stack, int] = {}
        self._seen = 0

    def line(self, content: bytes) -> tuple[bytes, str] | None:
        """What becomes of a line: its bytes, and the shifts that it went through ("" for none).

        None where it is not plain.
        """
        if not self.plain:
            return None
        try:
            return self._line(content)
        except (_NotPlain, RowFault, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None

    def _line(self, content: bytes) -> tuple[bytes, str]:
        top = _TOP.decode(content)
        if "tools" not in top or "messages" not in top or "tool_choice" in top:
            raise _NotPlain
        tools = self._list(bytes(top["tools"]))
        said = _MESSAGES.decode(top["messages"])
        calls = [call for each in said for call in _calls(each, tools.checks)]
        digest = digest_of(content)
        if not calls or not due(digest, self.recipe):
            return content, ""
        draw = next(draws(self.recipe, digest))
        shown = self._under(tools, draw) if draw.renames else None
        if shown is None:
            raise _NotPlain
        for inner, arguments in calls:
            _rename(inner, arguments, shown)
        for each in said:
            _say(each, shown.ready)
        note = msgspec.Raw(JSON.encode(told(shown.label, self.recipe, digest)))
        top |= {"messages": msgspec.Raw(JSON.encode(said)), "tools": shown.raw, COLUMN: note}
        return JSON.encode(top), shown.label

    def _under(self, tools: _List, draw: Draw) -> _Shown | None:
        stack = self._stacks.setdefault(draw.stack, len(self._stacks))
        key = (tools.number, stack, draw.number)
        if key not in self._shown:
            if len(self._shown) >= MOST_SHOWN:
                self._shown.pop(next(iter(self._shown)))
            self._shown[key] = tools.under(draw)
        return self._shown[key]

    def _list(self, raw: bytes) -> _List:
        found = self._lists.get(raw)
        if found is None:
            listed = msgspec.json.decode(raw)
            if not isinstance(listed, list):
                raise _NotPlain
            tools = [tool.function for tool in read_tools(listed)]
            checks = {tool["name"]: validator_of(tool.get("parameters")) for tool in tools}
            if len(self._lists) >= MOST_LISTS:
                self._lists.pop(next(iter(self._lists)))
            self._seen += 1
            found = self._lists[raw] = _List(self._seen, listed, checks)
        return found


def _calls(
    message: dict[str, Any], checks: Mapping[Any, Any]
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The functions that a message calls, with their arguments, each of which fits.

    Raises:
        _NotPlain: where one does not, or the message is of another form.
    """
    content = message.get("content")
    if (content is not None and type(content) is not str) or message.get("role") not in _ROLES:
        raise _NotPlain
    called = message.get("tool_calls")
    if "function_call" in message:
        raise _NotPlain
    if not called:
        return _NONE
    found = []
    for call in called:
        inner = call["function"] if type(call) is dict and "function" in call else None
        if type(inner) is not dict or type(inner.get("arguments")) is not str:
            raise _NotPlain
        arguments = _OBJECT.decode(inner["arguments"] or "{}")
        check = checks.get(inner.get("name"), _Never)
        if check is not None and not check.is_valid(arguments):
            raise _NotPlain
        found.append((inner, arguments))
    return found


USUAL_KEYS = 2
"""Role and content; a message without thoughts may have more."""
_NONE: list[tuple[dict[str, Any], dict[str, Any]]] = []
_ROLES = frozenset(("system", "developer", "user", "assistant", "tool"))


class _Never:
    """What checks a call of a tool that is not on offer."""

    @staticmethod
    def is_valid(arguments: object) -> bool:
        return False


def _rename(inner: dict[str, Any], arguments: dict[str, Any], shown: _Shown) -> None:
    """Renames a call in place.

    Raises:
        _NotPlain: where it would not fit what is shown.
    """
    name, given = inner["name"], arguments
    for surface in shown.ready.surfaces:
        name, given = surface.spoken(name, given)
    check = shown.checks.get(name, _Never)
    if check is not None and not check.is_valid(given):
        raise _NotPlain
    inner["name"] = name
    if given != arguments or list(given) != list(arguments):
        inner["arguments"] = encoded(given)


def _say(message: dict[str, Any], ready: Prepared) -> None:
    """Names the tools in a message as they are shown, in place."""
    role = message["role"]
    if role == "tool":
        name = message.get("name")
        if name is not None:
            for surface in ready.surfaces:
                name = surface.names.get(name, name)
            message["name"] = name
    elif role != "user":
        if message.get("content"):
            message["content"] = ready.say(message["content"])
        for key in THOUGHTS if len(message) > USUAL_KEYS else ():
            if isinstance(message.get(key), str):
                message[key] = ready.say(message[key])
