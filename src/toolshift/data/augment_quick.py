"""Lines of OpenAI messages, renamed without taking them apart.

Most rows of a large file share few lists of tools. A list is looked at once, by its bytes: what
each tool and parameter is called under a draw is a table after that, and a line costs what its
messages cost. What is not plain (another format, a fault, a shift that must be played) is left to
`augment.augmented`, which makes the same of it.

It stays beside that path because that path makes 0.21 to 0.28 of its rows a second
(`benchmarks/quick_path.json`; 0.15 to 0.21 before lists of tools were kept there), and half was
asked for. A reader and a writer of plain messages in that path brought 0.24 to 0.33 and were given
up. What having both costs: this file, and four tests that compare the two
(`tests/data/test_augment.py`, `tests/data/test_guarantees.py`). A line is written with the spaces
that it had here, and without any there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from toolshift.core.scene import Stack
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import JSON
from toolshift.data.augment import (
    COLUMN,
    DRAWS,
    Pick,
    Recipe,
    digest_of,
    draw_number,
    is_selected,
    pick,
    renames,
    stacks_by_severity,
    told,
)
from toolshift.data.conversation import (
    Call,
    Message,
    Role,
    RowFault,
    encoded,
    read_tools,
    rewrapped,
)
from toolshift.data.formats.openai import THOUGHTS
from toolshift.data.interface_texts import in_english
from toolshift.data.listed_twice import Descriptions
from toolshift.data.prepared import Prepared, needed_by, on_offer, prepared
from toolshift.data.tool_mentions import Seen
from toolshift.data.tools import apart
from toolshift.data.validators import validator_of
from toolshift.runs.cell import write_stack

MAX_LISTS = 4096
MAX_SHOWN = 8192
"""How much is kept, whatever the length of a file."""


class _Function(msgspec.Struct, gc=False):
    name: str
    arguments: str | dict[str, Any] | None = None


class _Call(msgspec.Struct, gc=False):
    function: _Function


class _Message(msgspec.Struct, gc=False, tag_field="role"):
    """What of a message decides what it becomes; a message that does not fit it is not plain."""

    content: str | None = None
    function_call: None = None


class _User(_Message, gc=False, tag="user"):
    """What a user says is never changed."""

    tool_calls: tuple[()] | None = None


class _Tool(_Message, gc=False, tag="tool"):
    """Of a result only the name of its tool may change."""

    tool_calls: tuple[()] | None = None
    name: str | None = None


class _Speaking(_Message, gc=False):
    """A text that may speak of tools."""

    reasoning_content: str | None = None
    reasoning: str | None = None
    thinking: str | None = None


class _Assistant(_Speaking, gc=False, tag="assistant"):
    """Calls, beside what is said."""

    tool_calls: list[_Call] | None = None


class _System(_Speaking, gc=False, tag="system"):
    """What is said before anything else."""

    tool_calls: tuple[()] | None = None


class _Developer(_Speaking, gc=False, tag="developer"):
    """The like."""

    tool_calls: tuple[()] | None = None


_Said = _User | _Tool | _Assistant | _System | _Developer
_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_SAID = msgspec.json.Decoder(list[_Said])
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])


class _NotPlain(Exception):
    """The line is for the way that takes everything apart."""


class _Never:
    """What checks a call of a tool that is not on offer."""

    @staticmethod
    def is_valid(arguments: object) -> bool:
        return False


@dataclass(frozen=True, eq=False, slots=True)
class _Renamed:
    """What becomes of the calls of a tool: another name, and other names of some parameters.

    Attributes:
        name: that is shown.
        keys: the parameters that are shown by another name.
        known: all parameters, where the arguments as they are shown are to fit the same schema as
            before but for names and texts: one check then speaks for both. Else None.
        before: checks arguments as they were; None where they may be anything. It serves every
            draw, so it is tried first.
        check: the like for arguments as they are shown.
    """

    name: str
    keys: Mapping[str, str]
    known: frozenset[str] | None
    before: Any
    check: Any


@dataclass(frozen=True, eq=False, slots=True)
class _Shown:
    """A list of tools under one draw.

    Attributes:
        ready: the tools under the shifts.
        raw: the list as it is written.
        calls: what becomes of calls, by the name of the tool.
        names: of tools that are shown by another name.
        words: a text without any of these stays as it is; mostly the same for every draw.
        label: of the shifts.
    """

    ready: Prepared
    raw: msgspec.Raw
    calls: Mapping[str, _Renamed]
    names: Mapping[str | None, str]
    words: tuple[str, ...]
    label: str


@dataclass(frozen=True, eq=False)
class _List:
    """A list of tools, looked at once.

    Attributes:
        number: of the list, which no other has.
        raws: the tools as they came.
        schemas: of the arguments of each tool, by name.
        checks: of the arguments of each tool, by name; None where they may be anything.
        text: the list as it came, where it is JSON in a string; else "".
    """

    number: int
    raws: list[Any]
    schemas: Mapping[str, Any]
    checks: Mapping[str, Any]
    text: str

    @cached_property
    def own(self) -> frozenset[str]:
        """The tools that shifts may touch."""
        return frozenset(tool.function["name"] for tool in apart(read_tools(self.raws))[0])

    @cached_property
    def descriptions(self) -> Descriptions:
        """What finds these tools in texts that describe them."""
        return Descriptions([tool.function for tool in read_tools(self.raws)])

    @cached_property
    def words(self) -> tuple[str, ...]:
        """All names in the list."""
        params = (name for schema in self.schemas.values() for name in _parameters(schema))
        return tuple(sorted({*self.schemas, *params}))

    def under(self, stack: Stack, way: int, needed: tuple[str, ...]) -> _Shown | None:
        """The tools under shifts, where rows need some of them.

        None where the shifts are not applicable, or change nothing.
        """
        tools = read_tools(self.raws)
        try:
            ready = prepared(tools, stack, needed, way)
        except NotApplicable:
            return None
        before = [tool.function for tool in tools]
        if not ready.plain or [tool.function for tool in ready.shown] == before:
            return None
        listed: Any = [rewrapped(tool, self.raws) for tool in ready.shown]
        raw = msgspec.Raw(JSON.encode(encoded(listed, self.text) if self.text else listed))
        calls = {name: self._renamed(name, ready) for name in self.checks}
        names: dict[str | None, str] = {
            name: call.name for name, call in calls.items() if name != call.name
        }
        words = self.words if ready.words.issubset(self.words) else tuple(sorted(ready.words))
        return _Shown(ready, raw, calls, names, words, write_stack(stack))

    def _renamed(self, true: str, ready: Prepared) -> _Renamed:
        """What becomes of the calls of a tool, through all surfaces."""
        keys: dict[str, str] = {}
        name = true
        for surface in ready.surfaces:
            table = surface.params.get(name, {})
            keys = {key: table.get(now, now) for key, now in ({k: k for k in table} | keys).items()}
            name = surface.names.get(name, name)
        moved = {key: now for key, now in keys.items() if key != now}
        if name not in ready.schemas:
            return _Renamed(name, moved, None, None, _Never)
        schema, shown = self.schemas[true], ready.schemas[name]
        known = _parameters(schema) if _ask_the_same(schema, shown, moved) else None
        return _Renamed(name, moved, known, self.checks[true], validator_of(shown))


def _parameters(schema: Any) -> frozenset[str]:
    known = schema.get("properties") if isinstance(schema, dict) else None
    return frozenset(known if isinstance(known, dict) else ())


_PLAIN = {"type", "properties", "required", "additionalProperties", "description", "title"}
"""What a schema of arguments mostly has; of these, two keywords name parameters."""


def _ask_the_same(before: Any, shown: Any, keys: Mapping[str, str]) -> bool:
    """Whether two schemas are one but for the names of parameters, and texts.

    Arguments that are declared and fit the first then fit the second by their new names.
    """
    if not (_is_plain(before) and _is_plain(shown)):
        return False
    properties, required = before.get("properties", {}), before.get("required", [])
    renamed = {
        **before,
        "properties": {keys.get(key, key): one for key, one in properties.items()},
        "required": [keys.get(key, key) for key in required],
    }
    return len(renamed["properties"]) == len(properties) and _asked(renamed) == _asked(shown)


def _is_plain(schema: Any) -> bool:
    """Whether a schema names parameters in two places alone, and refers to none."""
    return (
        isinstance(schema, dict)
        and schema.keys() <= _PLAIN
        and isinstance(schema.get("properties", {}), dict)
        and isinstance(schema.get("required", []), list)
        and all(isinstance(name, str) for name in schema.get("required", []))
        and isinstance(schema.get("additionalProperties", True), bool)
        and b'ef":' not in JSON.encode(schema)
    )


def _asked(schema: Mapping[str, Any]) -> Any:
    """What a schema asks of arguments: all but its texts, and those of its parameters."""
    without = {key: value for key, value in schema.items() if key not in _TEXTS}
    without["properties"] = {
        name: {key: value for key, value in one.items() if key not in _TEXTS}
        if isinstance(one, dict)
        else one
        for name, one in schema.get("properties", {}).items()
    }
    return {**without, "required": sorted(schema.get("required", []))}


_TEXTS = ("description", "title")


class _Drawn(NamedTuple):
    """The shifts that are drawn, and in which way they fall on a list of tools.

    Attributes:
        number: of all this, from 1.
    """

    number: int
    stack: Stack
    way: int


class Quick:
    """Renames lines; keeps what it knows about lists of tools.

    Args:
        recipe: what is done.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.plain = not recipe.format and recipe.to in ("", "openai") and not recipe.trainer
        self._lists: dict[bytes, _List] = {}
        self._shown: dict[tuple[int, int, tuple[str, ...]], _Shown | None] = {}
        self._draws: dict[Pick, int] = {}
        self._drawn: dict[int, _Drawn] = {}
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
        except (
            _NotPlain,
            NotApplicable,
            RowFault,
            msgspec.MsgspecError,
            UnicodeDecodeError,
            RecursionError,
        ):
            return None

    def _line(self, content: bytes) -> tuple[bytes, str]:
        top: dict[str, Any] = _TOP.decode(content)
        if "tools" not in top or "messages" not in top or "tool_choice" in top or COLUMN in top:
            raise _NotPlain
        if b'"strict"' in bytes(top["tools"]):  # what may be added to such tools is looked at
            raise _NotPlain
        tools = self._list(bytes(top["tools"]))
        raw = top["messages"]
        conversation = _SAID.decode(raw)
        digest = digest_of(content)
        if not is_selected(digest, self.recipe):
            if not _fit(conversation, tools.checks):
                raise _NotPlain  # its calls may be written in the text of a message
            return content, ""
        called = (c.function.name for said in conversation for c in said.tool_calls or ())
        names = on_offer(called, tools.own)
        shown = self._under(tools, digest, names)
        if shown is None or not shown.ready.reaches(names):
            raise _NotPlain
        telling = (_User, _System, _Developer)
        if any(
            isinstance(said, telling) and tools.descriptions.stand_in(said.content or "")
            for said in conversation
        ):
            raise _NotPlain  # what lists the tools a second time goes along
        messages = _messages(conversation, _RAWS.decode(raw), shown)
        if messages is None:
            raise _NotPlain  # why nothing of it can be shifted is said where rows are read whole
        top["messages"] = messages
        top["tools"] = shown.raw
        top[COLUMN] = told(shown.label, self.recipe, digest)
        return JSON.encode(top), shown.label

    def _under(self, tools: _List, digest: str, names: tuple[str, ...]) -> _Shown | None:
        left = draw_number(self.recipe, digest, 0) % self._period
        drawn = self._drawn.get(left) or self._draw(left)
        needed = next(needed_by(drawn.stack, names, f"{self.recipe.seed} {digest}"))
        key = (tools.number, drawn.number, needed)
        try:
            return self._shown[key]
        except KeyError:
            pass
        if len(self._shown) >= MAX_SHOWN:
            self._shown.pop(next(iter(self._shown)))
        stack = drawn.stack
        made = tools.under(stack, drawn.way, needed) if renames(stack) else None
        self._shown[key] = made
        return made

    def _draw(self, left: int) -> _Drawn:
        """What a number draws; what is drawn alike has the same number, from 1."""
        drawn = pick(self.recipe, left, self._counts)
        number = self._draws.setdefault(drawn, len(self._draws) + 1)
        stack = self._stacks[drawn.entry][drawn.severity][drawn.stack]
        made = _Drawn(number, stack, drawn.way)
        if len(self._drawn) < MAX_SHOWN:
            self._drawn[left] = made
        return made

    @cached_property
    def _period(self) -> int:
        """Rows whose numbers leave the same remainder by this draw the same."""
        counts = {count for entry in self._counts for count in entry}
        return len(self._counts) * len(self.recipe.severities) * math.lcm(*counts) * DRAWS

    @cached_property
    def _stacks(self) -> tuple[tuple[tuple[Stack, ...], ...], ...]:
        return stacks_by_severity(self.recipe)

    @cached_property
    def _counts(self) -> list[list[int]]:
        return [[len(stacks) for stacks in entry] for entry in self._stacks]

    def _list(self, raw: bytes) -> _List:
        known = self._lists.get(raw)
        if known is None:
            listed = msgspec.json.decode(raw)
            text = listed if isinstance(listed, str) else ""
            if text:
                listed = msgspec.json.decode(listed)
            if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
                raise _NotPlain
            if not listed or b"null" in raw:  # another column may list them; holes of a table
                raise _NotPlain
            tools = [tool.function for tool in read_tools(listed)]
            if not in_english(tools):  # what is reworded in them is looked at
                raise _NotPlain
            schemas = {tool["name"]: tool.get("parameters") for tool in tools}
            checks = {name: validator_of(schema) for name, schema in schemas.items()}
            if len(self._lists) >= MAX_LISTS:
                self._lists.pop(next(iter(self._lists)))
            self._seen += 1
            known = self._lists[raw] = _List(self._seen, listed, schemas, checks, text)
        return known


def _fit(messages: list[_Said], checks: Mapping[str, Any]) -> bool:
    """Whether there are calls; each of them must fit its tool."""
    called = False
    for message in messages:
        for call in message.tool_calls or ():
            called = True
            check = checks.get(call.function.name, _Never)
            given = call.function.arguments
            arguments = given if isinstance(given, dict) else _OBJECT.decode(given or "{}")
            if check is not None and not check.is_valid(arguments):
                raise _NotPlain
    return called


def _messages(messages: list[_Said], raws: list[Any], shown: _Shown) -> list[Any] | None:
    """The messages by other names; those in which nothing changes are the bytes that they were.

    None where no tool is called, and so nothing is to be learned of tools.
    """
    called, seen = False, Seen(_Kept(messages, shown.words))
    for place, message in enumerate(messages):
        if isinstance(message, _User):
            continue
        if isinstance(message, _Tool):
            if message.name in shown.names:
                raws[place] = {**_OBJECT.decode(raws[place]), "name": shown.names[message.name]}
            continue
        made = None
        if message.tool_calls:
            called = True
            raws[place] = made = _OBJECT.decode(raws[place])
            _rename(message.tool_calls, made["tool_calls"], shown.calls)
        if message.content or message.reasoning_content or message.reasoning or message.thinking:
            changed = _words(message, shown, seen.at(place, _ROLES[type(message)]))
            if changed:
                raws[place] = {**(made or _OBJECT.decode(raws[place])), **changed}
    return raws if called else None


@dataclass(frozen=True, slots=True)
class _Kept:
    """The messages as far as they say what stays, read when it is asked for."""

    messages: list[_Said]
    words: tuple[str, ...]

    def __iter__(self) -> Iterator[Message]:
        return map(self._kept, self.messages)

    def _kept(self, said: _Said) -> Message:
        """A message, with the arguments that may hold a name."""
        given = (call.function.arguments for call in getattr(said, "tool_calls", None) or ())
        calls = tuple(
            Call("", g if isinstance(g, dict) else _OBJECT.decode(g))
            for g in given
            if g and (isinstance(g, dict) or "\\u" in g or any(map(g.__contains__, self.words)))
        )
        return Message(_ROLES[type(said)], said.content or "", calls)


_ROLES: dict[type, Role] = {
    _User: "user",
    _Tool: "tool",
    _Assistant: "assistant",
    _System: "system",
    _Developer: "system",
}


def _words(message: _Speaking, shown: _Shown, here: Seen.Here) -> dict[str, str]:
    """What is said and thought, where that speaks of the tools by other names now."""
    words = {}
    for key in _SPOKEN:
        text = getattr(message, key)
        if text and any(map(text.__contains__, shown.words)):
            now = shown.ready.say(text, here)
            if now != text:
                words[key] = now
    return words


_SPOKEN = ("content", *THOUGHTS)


def _rename(calls: list[_Call], raws: list[Any], shown: Mapping[str, _Renamed]) -> None:
    """Renames the calls of a message in place."""
    for place, call in enumerate(calls):
        function = call.function
        to = shown.get(function.name)
        if to is None:
            raise _NotPlain
        given = function.arguments
        arguments = given if isinstance(given, dict) else _OBJECT.decode(given or "{}")
        if to.before is not None and not to.before.is_valid(arguments):
            raise _NotPlain
        if None in arguments.values():
            raise _NotPlain  # it may be what a table has put in
        proven = to.known is not None and to.known.issuperset(arguments)
        inner = raws[place]["function"]
        keys = to.keys
        if keys and not keys.keys().isdisjoint(arguments):
            now = {keys.get(key, key): value for key, value in arguments.items()}
            if len(now) < len(arguments):
                raise _NotPlain
            inner["arguments"] = encoded(now, given) if isinstance(given, str) else now
            arguments = now
        if not (proven or to.check is None or to.check.is_valid(arguments)):
            raise _NotPlain
        inner["name"] = to.name
