"""A recorded tool-use conversation, whatever format it came in."""

from __future__ import annotations

import ast
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from itertools import count
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from toolshift.core.values import as_json, as_mapping
from toolshift.data.validators import validator_of

Role = Literal["system", "user", "assistant", "tool"]
Row = dict[str, Any]


class RowFault(ValueError):
    """A row of data cannot be read; the message says what is wrong and where in it."""


class Call(msgspec.Struct, frozen=True):
    """One tool call of the assistant."""

    name: str
    arguments: dict[str, Any]
    id: str = ""


class Message(msgspec.Struct, frozen=True):
    """One message.

    Attributes:
        role: who says it.
        text: what is said; of a tool, its result.
        calls: the tools that the assistant calls.
        name: of the tool whose result this is, where that is said.
        call_id: of the call whose result this is, where that is said.
        learned: whether a trainer learns it; False for context only, such as a provoked failure.
        source: the place of the message that it was read from; None for one that was added.
        thought: what the assistant thought before, where a format keeps that apart.
        more: whether there is more than text, such as a picture, which only its own format says.
    """

    role: Role
    text: str = ""
    calls: tuple[Call, ...] = ()
    name: str = ""
    call_id: str = ""
    learned: bool = True
    source: int | None = None
    thought: str = ""
    more: bool = False


class ToolShown(msgspec.Struct, frozen=True):
    """A tool as it is on offer.

    Attributes:
        function: `name`, `description` and `parameters` (a JSON Schema), as OpenAI has them.
        source: the place of the tool that it was read from; None for one that was added.
        params: for each parameter as shown, the name that it was read under.
    """

    function: dict[str, Any]
    source: int | None = None
    params: Mapping[str, str] = {}


class ToolList(tuple[ToolShown, ...]):
    """Tools that many conversations share: what follows from them is found once and kept."""

    @cached_property
    def encoded(self) -> bytes:
        """The tools as JSON."""
        return msgspec.json.encode([tool.function for tool in self])

    @cached_property
    def validators(self) -> dict[str, Any]:
        """What checks the arguments of each tool, by its name; None where they may be anything."""
        return {t.function["name"]: validator_of(t.function.get(PARAMETERS)) for t in self}

    @cached_property
    def parameters(self) -> dict[str, frozenset[str]]:
        """The parameters that each tool declares, by its name."""
        return {t.function["name"]: frozenset(_properties(t.function)) for t in self}

    @staticmethod
    def of(tools: tuple[ToolShown, ...]) -> ToolList:
        """Tools as such a list."""
        return tools if isinstance(tools, ToolList) else ToolList(tools)


class Conversation(msgspec.Struct, frozen=True):
    """Tools on offer, and what was said."""

    tools: tuple[ToolShown, ...]
    messages: tuple[Message, ...]


class Format(Protocol):
    """A format of tool-use data: how rows of it are recognised, read and written."""

    name: str

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Whether a row is of this format, by what is in it."""
        ...

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """The conversation of a row."""
        ...

    def write(self, conversation: Conversation, row: Mapping[str, Any] | None) -> Row:
        """A row of a conversation."""
        ...


TOOLS_HERE = "\0<tools>\0"
"""Stands in a text where a format lists the tools inside of it; no text of a file holds it."""
CALLS_HERE = "\0<calls>\0"
"""Stands in a text where a format writes calls inside of it."""


PART_HERE = "\0<part>\0"
"""Stands in what the assistant or the system says where a format holds that in several parts."""


def parts_in(text: str) -> list[str]:
    """The texts of the parts in which something is said."""
    return text.split(PART_HERE)


def portable(conversation: Conversation) -> Conversation:
    """The conversation without marks of the format that it was read from.

    Calls that were made at once, as some formats say them one by one, are one message.
    """
    messages = [
        msgspec.structs.replace(
            message,
            text=without_marks(message.text),
            thought="\n".join(parts_in(message.thought)),
        )
        if "\0<" in message.text or PART_HERE in message.thought
        else message
        for message in conversation.messages
    ]
    return Conversation(conversation.tools, _at_once(messages))


def without_marks(text: str) -> str:
    """A text without marks of the format that it was read from."""
    text = "".join(parts_in(text))
    if "\0<" not in text:
        return text
    return text.replace(TOOLS_HERE, "").replace(CALLS_HERE, "").rstrip()


def _at_once(messages: list[Message]) -> tuple[Message, ...]:
    """Messages in which calls that follow each other, with nothing between them, are one."""
    merged: list[Message] = []
    for message in messages:
        last = merged[-1] if merged else None
        if (
            last
            and last.calls
            and message.calls
            and not message.text
            and last.learned == message.learned
        ):
            merged[-1] = msgspec.structs.replace(last, calls=last.calls + message.calls)
        else:
            merged.append(message)
    return tuple(merged)


def told(conversation: Conversation) -> list[tuple[Any, ...]]:
    """What a conversation says, whatever the format: in its order, and each call with its result.

    Left out are system texts, which some formats hold elsewhere, ids, and spaces around a text.
    """
    conversation = portable(conversation)
    turns = turns_of(conversation.messages)
    if turns is None:
        return [
            (message.role, message.text.strip(), message.calls) for message in conversation.messages
        ]
    content: list[tuple[Any, ...]] = []
    for message, results in turns:
        if message.role != "system" and (message.text.strip() or message.role == "user"):
            content.append((message.role, message.text.strip()))
        for call, result in zip(message.calls, results, strict=True):
            text = None if result is None else data_of(result.text.strip())
            content.append((call.name, call.arguments, text))
    return content


# -- which result is of which call -------------------------------------------------------------

Turn = tuple[Message, tuple[Message | None, ...]]
"""A message that is no result, and the results of its calls; None for one not recorded."""


def turns_of(messages: Iterable[Message]) -> list[Turn] | None:
    """Every message but results, each with the results of its calls."""
    recorded = _Recorded()
    waiting: list[Message] = []
    for message in messages:
        if message.role == "tool":
            waiting.append(message)
            continue
        if not recorded.answer(waiting):
            return None
        waiting = []
        recorded.add(message)
    if not recorded.answer(waiting):
        return None
    return [(message, tuple(results)) for message, results in recorded.turns]


class _Recorded:
    """Messages as they are read, and which of their calls wait for a result.

    What waits is kept apart, so that a long conversation is not looked through for each result.
    """

    def __init__(self) -> None:
        self.turns: list[tuple[Message, list[Message | None]]] = []
        self._waiting: list[int] = []
        self._by_id: dict[str, deque[tuple[list[Message | None], int]]] = {}
        self._calling = 0
        """The first of the messages at the end that all have calls."""

    def add(self, message: Message) -> None:
        """A message that is no result."""
        known: list[Message | None] = [None] * len(message.calls)
        if message.calls:
            self._waiting.append(len(self.turns))
        else:
            self._calling = len(self.turns) + 1
        for number, call in enumerate(message.calls):
            if call.id:
                self._by_id.setdefault(call.id, deque()).append((known, number))
        self.turns.append((message, known))

    def answer(self, results: list[Message]) -> bool:
        """Gives results that follow each other to their calls; whether each has one.

        By their ids; others by the names that they say, and then in the order of the calls that
        wait, which are those of the last message, or of all that call right before it where just
        as many wait. A result with an id belongs to no call that has another.
        """
        left = [result for result in results if not self._by_its_id(result)]
        if not left:
            return True
        self._waiting = [place for place in self._waiting if None in self.turns[place][1]]
        together = self._open_in([place for place in self._waiting if place >= self._calling])
        last = self._open_in(self._waiting[-1:])
        open_calls = together if len(together) == len(left) else last
        if len(left) > len(open_calls):
            return False
        unnamed = [result for result in left if not _by_its_name(result, open_calls)]
        for result, place in zip(unnamed, list(open_calls), strict=False):
            if not place.take(result):
                return False
        return True

    def _by_its_id(self, result: Message) -> bool:
        places = self._by_id.get(result.call_id) if result.call_id else None
        while places:
            known, number = places.popleft()
            if known[number] is None:
                known[number] = result
                return True
        return False

    def _open_in(self, places: list[int]) -> list[_Open]:
        return [
            _Open(call, known, number)
            for message, known in (self.turns[place] for place in places)
            for number, call in enumerate(message.calls)
            if known[number] is None
        ]


class _Open(NamedTuple):
    """A call that waits for its result, and where that belongs."""

    call: Call
    known: list[Message | None]
    number: int

    def take(self, result: Message) -> bool:
        """Gives it its result; False where both have ids, which are not the same."""
        if result.call_id and self.call.id:
            return False
        self.known[self.number] = result
        return True


def _by_its_name(result: Message, open_calls: list[_Open]) -> bool:
    """Gives a result to the first call of the tool that it names, and that call waits no more."""
    place = next((one for one in open_calls if result.name == one.call.name), None)
    if place is None or not place.take(result):
        return False
    open_calls.remove(place)
    return True


def in_order(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages with the results of calls in the order of the calls.

    A format without ids says by their order which result is of which call. Each result names its
    tool then.
    """
    if not any(message.call_id for message in messages):
        return messages
    turns = turns_of(messages)
    if turns is None:
        return messages
    ordered: list[Message] = []
    for message, results in turns:
        ordered.append(message)
        for call, result in zip(message.calls, results, strict=True):
            if result is not None:
                ordered.append(msgspec.structs.replace(result, name=call.name))
    return tuple(ordered)


def with_ids(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages with an id for each call that has none, and for its result."""
    if all(call.id for message in messages for call in message.calls):
        return messages
    turns = turns_of(messages)
    if turns is None:
        return messages
    taken = {call.id for message in messages for call in message.calls}
    free = (name for n in count() if (name := f"call_{n}") not in taken)
    named: list[Message] = []
    for message, results in turns:
        calls = tuple(
            call if call.id else msgspec.structs.replace(call, id=next(free))
            for call in message.calls
        )
        named.append(msgspec.structs.replace(message, calls=calls))
        for call, result in zip(calls, results, strict=True):
            if result is not None:
                named.append(msgspec.structs.replace(result, call_id=call.id))
    return tuple(named)


def joined(messages: list[Message]) -> tuple[Message, ...]:
    """Messages in which what is said before calls is one message with them."""
    merged: list[Message] = []
    for message in messages:
        last = merged[-1] if merged else None
        before = last and last.role == "assistant" and last.text and not last.calls
        if last and before and message.calls and not message.text:
            learned = message.learned and last.learned
            merged[-1] = msgspec.structs.replace(message, text=last.text, learned=learned)
        else:
            merged.append(message)
    return tuple(merged)


def decoded(text: Any, what: str) -> Any:
    """Reads JSON that stands in a string; what is no string passes."""
    if not isinstance(text, str):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as fault:
        raise RowFault(f"{what}: not JSON ({fault})") from None


def literal(text: Any, what: str) -> Any:
    """An object in a string: JSON, or as Python prints it, as some data has it."""
    if not isinstance(text, str):
        raise RowFault(f"{what} is no text")
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        try:
            found = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise RowFault(f"{what} is neither JSON nor a literal of Python: {text[:80]}") from None
    if not isinstance(found, dict):
        raise RowFault(f"{what} is no object")
    return found


def written_like(value: dict[str, Any], like: str) -> str:
    """An object as JSON, or as Python prints it where another one is written so."""
    try:
        msgspec.json.decode(like)
    except (msgspec.DecodeError, RecursionError):
        return repr(value)
    return encoded(value, like)


def encoded(value: Any, like: str = "") -> str:
    """JSON as a string, with the spaces, line breaks and escapes of another one.

    Formats have JSON inside of texts that models read. What is written anew must not be told by
    its spaces from what was there before: those would mark the rows that are shifted.
    """
    if '": ' not in like or not _SPACED.search(like):
        return as_json(value)
    lines = _LINES.match(like)
    escaped = like.isascii() and _ESCAPED.search(like) is not None
    return _writer(escaped, lines[1] if lines else None)(value)


@lru_cache(maxsize=16)
def _writer(escaped: bool, indent: str | None) -> Callable[[Any], str]:
    return json.JSONEncoder(ensure_ascii=escaped, indent=indent).encode


_LINES = re.compile(r"\s*[\[{]\r?\n([ \t]+)")
_SPACED = re.compile(r'(?<!\\)": ')
_ESCAPED = re.compile(r"\\u[0-9a-fA-F]{4}")


def data_of(text: str) -> Any:
    """A result as it stands inside of JSON: the data that it is, else the text."""
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return text if isinstance(data, str) else data  # it would lose its quotes


def arguments_of(value: Any, name: str) -> dict[str, Any]:
    """The arguments of a call, as an object or as JSON in a string."""
    arguments = decoded(value if value not in ("", None) else {}, f"the arguments of {name}")
    if not isinstance(arguments, dict):
        raise RowFault(f"the arguments of {name} are no JSON object")
    return arguments


def function_of(raw: Any, place: int) -> dict[str, Any]:
    """A tool as an OpenAI function; bare or wrapped in `{"type": "function", ...}`.

    The schema of its arguments may stand where MCP or Anthropic have it. A tool may be JSON in a
    text, and have nulls that a table has put in.
    """
    raw = decoded(raw, f"tool {place}")
    inner = raw.get("function", raw) if isinstance(raw, Mapping) else None
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise RowFault(f"tool {place} has no name")
    function = {key: value for key, value in inner.items() if value is not None}
    key = _schema_key(function)
    if key != PARAMETERS and key:
        function[PARAMETERS] = function.pop(key)
    if key:
        function[PARAMETERS] = _without_holes(function[PARAMETERS])
    return function


_NULL_MAY_BE = ("default", "const")
"""Keys of a schema under which null is a value, and not a hole."""


def _without_holes(node: Any) -> Any:
    """A schema without the nulls with which a table fills its columns."""
    if isinstance(node, list):
        return [_without_holes(one) for one in node]
    if not isinstance(node, Mapping):
        return node
    return {
        key: value if key in _WITH_DATA else _without_holes(value)
        for key, value in node.items()
        if value is not None or key in _NULL_MAY_BE
    }


_WITH_DATA = (*_NULL_MAY_BE, "enum", "examples")


def lists_tools(value: Any, needs_parameters: bool = False) -> bool:
    """Whether a value is a list of tools: each has a name, and a description or parameters.

    With `needs_parameters` one at least has those: persons have names and descriptions too.
    """
    try:
        listed = decoded(value, "") if isinstance(value, list) or _is_list(value) else None
        functions = [function_of(raw, 0) for raw in listed or ()]
    except RowFault:
        return False
    if needs_parameters and not any(PARAMETERS in each for each in functions):
        return False
    return bool(functions) and all({PARAMETERS, "description"} & each.keys() for each in functions)


def _is_list(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip().startswith("[")


PARAMETERS = "parameters"
_SCHEMA_KEYS = (PARAMETERS, "inputSchema", "input_schema")
"""Where OpenAI, MCP and Anthropic have the schema of a tool's arguments."""


def _schema_key(function: Mapping[str, Any]) -> str:
    for key in _SCHEMA_KEYS:
        if key in function:
            return key
    return ""


def read_tools(listed: Any) -> tuple[ToolShown, ...]:
    """Tools from a list of OpenAI functions; a list that many rows share is read once."""
    try:
        raw = listed.encode() if isinstance(listed, str) else msgspec.json.encode(listed)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _read_tools(listed)
    return _kept_tools(raw, isinstance(listed, str))


@lru_cache(maxsize=1024)
def _kept_tools(raw: bytes, in_text: bool) -> tuple[ToolShown, ...]:
    # Read from its JSON, so that nothing of a row of the user's is kept.
    return ToolList(_read_tools(raw.decode() if in_text else msgspec.json.decode(raw)))


def _read_tools(listed: Any) -> tuple[ToolShown, ...]:
    listed = decoded(listed if listed not in ("", None) else [], "the list of tools")
    if not isinstance(listed, list):
        raise RowFault("the list of tools is no list")
    functions = [function_of(raw, place) for place, raw in enumerate(listed)]
    return tuple(
        ToolShown(function, place, {name: name for name in _properties(function)})
        for place, function in enumerate(functions)
    )


def _properties(function: Mapping[str, Any]) -> Mapping[str, Any]:
    parameters = function.get("parameters")
    known = parameters.get("properties") if isinstance(parameters, Mapping) else None
    return as_mapping(known)


def _decoded(tool: Any) -> Any:
    return decoded(tool, "a tool")


def rewrapped(tool: ToolShown, raws: list[Any]) -> Any:
    """A tool as an OpenAI tool, in the wrapping that it came in; `raws` is empty for none.

    One that was added is written as the first of the list is, so that this does not tell it apart.
    """
    if not raws:
        return {"type": "function", "function": tool.function}
    raw = raws[tool.source or 0]
    if isinstance(raw, str):
        if tool.source is not None and function_of(raw, 0) == tool.function:
            return raw
        return encoded(rewrapped(tool, [_decoded(one) for one in raws]), raw)
    if tool.source is not None and function_of(raw, 0) == tool.function:
        return raw
    inner = raw.get("function", raw)
    function, key = dict(tool.function), _schema_key(inner)
    if key and key != PARAMETERS and PARAMETERS in function:
        function[key] = function.pop(PARAMETERS)
    if tool.source is not None:
        return (
            {**raw, "function": {**inner, **function}} if inner is not raw else {**raw, **function}
        )
    if inner is not raw:
        return {"type": "function", "function": function}
    return {"type": raw["type"], **function} if "type" in raw else function
