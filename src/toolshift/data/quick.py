"""Lines of OpenAI messages, renamed without taking them apart.

Most rows of a large file share few lists of tools. A list is looked at once, by its bytes: what
each tool and parameter is called under a draw is a table after that, and a line costs what its
messages cost. What is not plain (another format, a fault, a shift that must be played) is left to
`augment.augmented`, which makes the same of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import msgspec

from toolshift.core.shift import NotApplicable
from toolshift.core.tool import JSON
from toolshift.data.augment import (
    COLUMN,
    Pick,
    Recipe,
    digest_of,
    due,
    pick,
    renames,
    stacks_by_severity,
    told,
)
from toolshift.data.conversation import RowFault, encoded, read_tools, rewrapped
from toolshift.data.formats.openai import THOUGHTS
from toolshift.data.prepared import Prepared, prepared
from toolshift.data.replay import validator_of
from toolshift.runs.cell import Stack, write_stack

MOST_LISTS = 4096
MOST_SHOWN = 4096
"""How much is kept, whatever the length of a file."""


class _Function(msgspec.Struct, gc=False):
    name: str
    arguments: str | dict[str, Any] | None = None


class _Call(msgspec.Struct, gc=False):
    function: _Function


class _Said(msgspec.Struct, gc=False):
    """What of a message decides what it becomes; a message that does not fit it is not plain."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: list[_Call] | None = None
    name: str | None = None
    function_call: None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    thinking: str | None = None


_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_SAID = msgspec.json.Decoder(list[_Said])
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])
_Made = tuple[str, dict[str, Any]]
"""The name of a tool that is called, and the arguments."""


class _NotPlain(Exception):
    """The line is for the way that takes everything apart."""


class _Never:
    """What checks a call of a tool that is not on offer."""

    @staticmethod
    def is_valid(arguments: object) -> bool:
        return False


@dataclass(frozen=True, eq=False, slots=True)
class _Renamed:
    """What becomes of the calls of a tool: another name, and other names of some parameters."""

    name: str
    keys: Mapping[str, str]
    check: Any


@dataclass(frozen=True, eq=False, slots=True)
class _Shown:
    """A list of tools under one draw."""

    ready: Prepared
    raw: msgspec.Raw
    calls: Mapping[str, _Renamed]
    names: Mapping[str | None, str]
    label: str


@dataclass(frozen=True, eq=False)
class _List:
    """A list of tools, looked at once; `in_text` where it is JSON in a string."""

    number: int
    raws: list[Any]
    checks: Mapping[str, Any]
    in_text: bool

    def under(self, stack: Stack, way: int) -> _Shown | None:
        """The tools under shifts; None where they are not applicable, or change nothing."""
        tools = read_tools(self.raws)
        try:
            ready = prepared(tools, stack, (), way)
        except NotApplicable:
            return None
        before = [tool.function for tool in tools]
        if not ready.plain or [tool.function for tool in ready.shown] == before:
            return None
        listed: Any = [rewrapped(tool, self.raws) for tool in ready.shown]
        raw = msgspec.Raw(JSON.encode(encoded(listed) if self.in_text else listed))
        calls = {name: _renamed(name, ready) for name in self.checks}
        names: dict[str | None, str] = {
            name: each.name for name, each in calls.items() if name != each.name
        }
        return _Shown(ready, raw, calls, names, write_stack(stack))


def _renamed(name: str, ready: Prepared) -> _Renamed:
    """What becomes of the calls of a tool, through all surfaces."""
    keys: dict[str, str] = {}
    for surface in ready.surfaces:
        table = surface.params.get(name, {})
        keys = {key: table.get(now, now) for key, now in ({k: k for k in table} | keys).items()}
        name = surface.names.get(name, name)
    moved = {key: now for key, now in keys.items() if key != now}
    check = validator_of(ready.schemas[name]) if name in ready.schemas else _Never
    return _Renamed(name, moved, check)


class Quick:
    """Renames lines; keeps what it knows about lists of tools.

    Args:
        recipe: what is done.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.plain = not recipe.format and recipe.to in ("", "openai")
        self._lists: dict[bytes, _List] = {}
        self._shown: dict[tuple[int, ...], _Shown | None] = {}
        self._seen = 0

    @property
    def known(self) -> int:
        """How many lists of tools under a draw are kept."""
        return len(self._shown)

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
        raw = top["messages"]
        said = _SAID.decode(raw)
        checks = tools.checks
        calls = [_made(call, checks) for each in said for call in each.tool_calls or ()]
        digest = digest_of(content)
        if not calls or not due(digest, self.recipe):
            return content, ""
        shown = self._under(tools, pick(self.recipe, digest, 0, self._counts))
        if shown is None:
            raise _NotPlain
        note = told(shown.label, self.recipe, digest)
        messages = _messages(said, _RAWS.decode(raw), iter(calls), shown)
        row = {**top, "messages": messages, "tools": shown.raw, COLUMN: note}
        return JSON.encode(row), shown.label

    def _under(self, tools: _List, drawn: Pick) -> _Shown | None:
        key = (tools.number, *drawn)
        if key not in self._shown:
            if len(self._shown) >= MOST_SHOWN:
                self._shown.pop(next(iter(self._shown)))
            stack = self._stacks[drawn.entry][drawn.severity][drawn.stack]
            self._shown[key] = tools.under(stack, drawn.way) if renames(stack) else None
        return self._shown[key]

    @cached_property
    def _stacks(self) -> tuple[tuple[tuple[Stack, ...], ...], ...]:
        return stacks_by_severity(self.recipe)

    @cached_property
    def _counts(self) -> list[list[int]]:
        return [[len(stacks) for stacks in entry] for entry in self._stacks]

    def _list(self, raw: bytes) -> _List:
        found = self._lists.get(raw)
        if found is None:
            listed = msgspec.json.decode(raw)
            in_text = isinstance(listed, str)
            if in_text:
                listed = msgspec.json.decode(listed)
            if not isinstance(listed, list):
                raise _NotPlain
            tools = [tool.function for tool in read_tools(listed)]
            checks = {tool["name"]: validator_of(tool.get("parameters")) for tool in tools}
            if len(self._lists) >= MOST_LISTS:
                self._lists.pop(next(iter(self._lists)))
            self._seen += 1
            found = self._lists[raw] = _List(self._seen, listed, checks, in_text)
        return found


def _made(call: _Call, checks: Mapping[str, Any]) -> _Made:
    """A call that fits its tool.

    Raises:
        _NotPlain: where it does not.
    """
    inner = call.function
    given = inner.arguments
    arguments = given if isinstance(given, dict) else _OBJECT.decode(given or "{}")
    check = checks.get(inner.name, _Never)
    if check is not None and not check.is_valid(arguments):
        raise _NotPlain
    return inner.name, arguments


def _messages(
    said: list[_Said], raws: list[Any], calls: Iterator[_Made], shown: _Shown
) -> list[Any]:
    """The messages by other names; those in which nothing changes are the bytes that they were.

    Raises:
        _NotPlain: where a call would not fit what is shown.
    """
    for place, each in enumerate(said):
        if each.role == "user":
            continue
        if each.role == "tool":
            changed = {} if each.name not in shown.names else {"name": shown.names[each.name]}
        else:
            changed = _words(each, shown.ready)
        if changed or each.tool_calls:
            raws[place] = made = _OBJECT.decode(raws[place])
            made.update(changed)
            if each.tool_calls:
                for call in made["tool_calls"]:
                    _rename(call["function"], *next(calls), shown)
    return raws


def _words(said: _Said, ready: Prepared) -> dict[str, str]:
    """What is said and thought, where that speaks of the tools by other names now."""
    found: dict[str, str] = {}
    if said.content and (now := ready.say(said.content)) != said.content:
        found["content"] = now
    if said.reasoning_content or said.reasoning or said.thinking:
        for key in THOUGHTS:
            text = getattr(said, key)
            if text and (now := ready.say(text)) != text:
                found[key] = now
    return found


def _rename(inner: dict[str, Any], name: str, arguments: dict[str, Any], shown: _Shown) -> None:
    """Renames a call in place.

    Raises:
        _NotPlain: where it would not fit what is shown.
    """
    to = shown.calls[name]
    keys = to.keys
    if keys and not keys.keys().isdisjoint(arguments):
        given = {keys.get(key, key): value for key, value in arguments.items()}
        if len(given) < len(arguments):
            raise _NotPlain
        inner["arguments"] = given if type(inner["arguments"]) is dict else encoded(given)
        arguments = given
    if to.check is not None and not to.check.is_valid(arguments):
        raise _NotPlain
    inner["name"] = to.name
