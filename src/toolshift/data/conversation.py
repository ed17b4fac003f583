"""A recorded tool-use conversation, whatever format it came in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import msgspec

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
        """The conversation of a row.

        Args:
            row: as the file has it.

        Returns:
            What was said, whatever the format.

        Raises:
            RowFault: where it cannot be read.
        """
        ...

    def write(self, conversation: Conversation, row: Mapping[str, Any] | None) -> Row:
        """A row of a conversation.

        Args:
            conversation: what to write.
            row: the row of this format that it was read from, whose further columns and keys
                survive; None where it was read from another format.

        Returns:
            The row.

        Raises:
            RowFault: where this format cannot say it.
        """
        ...


TOOLS_HERE = "<tools></tools>"
"""Stands in a system text where a format lists the tools inside of it."""


def portable(conversation: Conversation) -> Conversation:
    """The conversation without marks of the format that it was read from."""
    messages = (
        msgspec.structs.replace(said, text=said.text.replace(TOOLS_HERE, "").rstrip())
        if said.role == "system"
        else said
        for said in conversation.messages
    )
    return Conversation(conversation.tools, tuple(messages))


def joined(messages: list[Message]) -> tuple[Message, ...]:
    """Messages in which what is said before calls is one message with them."""
    found: list[Message] = []
    for each in messages:
        last = found[-1] if found else None
        if each.calls and not each.text and last and last.role == "assistant" and not last.calls:
            learned = each.learned and last.learned
            found[-1] = msgspec.structs.replace(each, text=last.text, learned=learned)
        else:
            found.append(each)
    return tuple(found)


def decoded(text: Any, what: str) -> Any:
    """Reads JSON that stands in a string; what is no string passes.

    Args:
        text: JSON in a string, or data.
        what: it is, for the message.

    Returns:
        The data.

    Raises:
        RowFault: where it is not JSON.
    """
    if not isinstance(text, str):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as fault:
        raise RowFault(f"{what} is not JSON ({fault})") from None


def encoded(value: Any) -> str:
    """JSON as a string."""
    return msgspec.json.encode(value).decode()


def arguments_of(value: Any, name: str) -> dict[str, Any]:
    """The arguments of a call, as an object or as JSON in a string.

    Args:
        value: as the row has it.
        name: of the tool, for the message.

    Returns:
        By parameter.

    Raises:
        RowFault: where they are neither.
    """
    found = decoded(value if value not in ("", None) else {}, f"the arguments of {name}")
    if not isinstance(found, dict):
        raise RowFault(f"the arguments of {name} are no JSON object")
    return found


def function_of(raw: Any, place: int) -> dict[str, Any]:
    """A tool as an OpenAI function; bare or wrapped in `{"type": "function", ...}`.

    Args:
        raw: as the row has it.
        place: of the tool in its list, for the message.

    Returns:
        With its name.

    Raises:
        RowFault: where it has no name.
    """
    inner = raw.get("function", raw) if isinstance(raw, Mapping) else None
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise RowFault(f"tool {place} has no name")
    return dict(inner)


def read_tools(listed: Any) -> tuple[ToolShown, ...]:
    """Tools from a list of OpenAI functions.

    Args:
        listed: as the row has it.

    Returns:
        In the same order.

    Raises:
        RowFault: where it is no list, or one has no name.
    """
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
    return known if isinstance(known, Mapping) else {}


def rewrapped(tool: ToolShown, raws: list[Any]) -> dict[str, Any]:
    """A tool as an OpenAI tool, in the wrapping that it came in; `raws` is empty for none."""
    if tool.source is None or not raws:
        return {"type": "function", "function": tool.function}
    raw = raws[tool.source]
    if "function" not in raw:
        return {**raw, **tool.function}
    return {**raw, "function": {**raw["function"], **tool.function}}
