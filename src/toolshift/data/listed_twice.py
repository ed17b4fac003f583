"""A list of tools that stands in a text as well: it goes along, or the shift does without the row.

Rows often have a column of tools and a prompt that lists the same tools. JSON that says what the
column says is written anew with it, in its own wrapping. A list in another form, such as
signatures, cannot be: where the shift changes a tool that is described there, it is not applicable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from toolshift.core.shift import NotApplicable
from toolshift.data.conversation import (
    PARAMETERS,
    Conversation,
    RowFault,
    ToolShown,
    function_of,
)
from toolshift.data.formats.tools_in_text import Listed, tools_in, written
from toolshift.data.tool_mentions import ToolNames

LISTING = ("system", "user")
"""Who lists tools in a text."""
MIN_DESCRIPTION = 20
"""A description of so many letters stands in no other text by chance."""


class _Copy(NamedTuple):
    """A list of tools in a text.

    Attributes:
        mark: that stands in its place meanwhile.
        text: that it stood in.
        listed: the tools there.
        sources: the place that each has in the column.
        whole: whether all of the column stand there.
    """

    mark: str
    text: str
    listed: Listed
    sources: list[int]
    whole: bool


class ListedTwice:
    """The tools of a conversation that its texts list as well.

    Args:
        conversation: as it was read.

    Attributes:
        marked: the conversation with marks in place of the lists that go along.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._tools = conversation.tools
        self._lists = Descriptions([tool.function for tool in conversation.tools])
        self._copies: list[_Copy] = []
        messages = tuple(
            msgspec.structs.replace(message, text=self._marked(message.text))
            if message.role in LISTING and _may_list(message.text)
            else message
            for message in conversation.messages
        )
        self.marked = Conversation(conversation.tools, messages) if self._copies else conversation

    def written(self, part: Conversation) -> Conversation:
        """The shifted conversation, with its lists in its texts."""
        self._check_others(part)
        if not self._copies:
            return part
        messages = tuple(
            msgspec.structs.replace(message, text=self._unmarked(message.text, part.tools))
            if message.role in LISTING
            else message
            for message in part.messages
        )
        return Conversation(part.tools, messages)

    # -- inside --------------------------------------------------------------------------------

    def _marked(self, text: str) -> str:
        """A text with a mark in place of its list of tools, if that says what the column says."""
        listed = tools_in(text)
        if listed is None:
            return text
        sources = self._sources(listed.raws)
        if sources is None:
            return text
        mark = f"\0<listed {len(self._copies)}>\0"
        whole = len(set(sources)) == len(self._tools)
        self._copies.append(_Copy(mark, text, listed, sources, whole))
        return f"{text[: listed.begin]}{mark}{text[listed.end :]}"

    def _sources(self, raws: Iterable[Any]) -> list[int] | None:
        """The places of tools in the column; None where one is not as it is there."""
        known = {tool.function["name"]: place for place, tool in enumerate(self._tools)}
        sources = []
        for raw in raws:
            try:
                function = function_of(raw, 0)
            except RowFault:
                return None
            place = known.get(function["name"])
            if place is None or _plain(self._tools[place].function) != _plain(function):
                return None
            sources.append(place)
        return sources

    def _unmarked(self, text: str, tools: Sequence[ToolShown]) -> str:
        """A text with the lists of tools in the places of their marks."""
        for copy in self._copies:
            if copy.mark in text:
                text = text.replace(
                    copy.mark, written(_of_copy(tools, copy), copy.text, copy.listed)
                )
        return text

    def _check_others(self, part: Conversation) -> None:
        """Checks that no text describes a tool in another form that is otherwise now."""
        shown = {tool.source: tool.function for tool in part.tools if tool.source is not None}
        changed = [
            tool.function
            for tool in self._tools
            if tool.source not in shown or not _same_but_name(tool.function, shown[tool.source])
        ]
        renamed = [
            tool.function
            for tool in self._tools
            if tool.source in shown and tool.function["name"] != shown[tool.source]["name"]
        ]
        added = any(tool.source is None for tool in part.tools)
        for message in self.marked.messages if changed or renamed or added else ():
            if message.role not in LISTING:
                continue
            described = self._lists.described(message.text)
            stale = changed if message.role == "system" else [*changed, *renamed]
            for function in stale:
                if function["name"] in described:
                    raise NotApplicable(f"a text describes {function['name']} as it was {_FORM}")
            if added and len(described) == len(self._tools):
                raise NotApplicable(f"a text lists the tools {_FORM}")


_FORM = "in a form that cannot be written along"


class Descriptions:
    """Finds the tools of a list in texts that describe them.

    Args:
        functions: the tools.
    """

    def __init__(self, functions: Sequence[Mapping[str, Any]]) -> None:
        self._functions = {str(function["name"]): function for function in functions}
        params = {name: _params(function) for name, function in self._functions.items()}
        self._names = ToolNames(frozenset(params), params)
        self._any = _declaring(param for own in params.values() for param in own)
        self._declared = {name: _declaring(own) for name, own in params.items()}

    def described(self, text: str) -> frozenset[str]:
        """The tools that a text describes: word for word, or with a parameter."""
        names = [name for name in self._functions if name in text]
        if not names:
            return frozenset()
        heads = sorted(
            (start, name)
            for name in (names if self._any.search(text) else ())
            for start in self._names.places(text, name, self._names.anywhere)
        )
        ends = [*(start for start, _ in heads[1:]), len(text)]
        found = {
            name
            for (start, name), end in zip(heads, ends, strict=False)
            if self._declared[name].search(text, start + len(name), end)
        }
        for name in names:
            told = self._functions[name].get("description")
            if isinstance(told, str) and len(told) >= MIN_DESCRIPTION and told in text:
                found.add(name)
        return frozenset(found)

    def stand_in(self, text: str) -> bool:
        """Whether a text describes any of the tools, or may list them in JSON."""
        return any(name in text for name in self._functions) and (
            _may_list(text) or bool(self.described(text))
        )


def _declaring(params: Iterable[str]) -> re.Pattern[str]:
    """Finds a declared parameter: `city: str`, `unit?: "c"`, `"city": {`, `city (text)`."""
    some = "|".join(map(re.escape, params)) or r"(?!)"
    return re.compile(
        rf"(?<![\w.])(?:{some})(?!\w)(?:[\"']\s*:\s*\{{|[`*]*(?:\??\s*:(?!\w)|\s+\())"
    )


def _may_list(text: str) -> bool:
    """Whether a text may list tools in JSON; most do not, and that is cheap to see."""
    return '"name"' in text and ('"description"' in text or '"parameters"' in text)


def _plain(function: Mapping[str, Any]) -> dict[str, Any]:
    """A tool without what only tells its protocol, and without an empty description."""
    return {key: value for key, value in function.items() if key != "strict" and value != ""}


def _same_but_name(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two tools differ in nothing but their names."""
    return {**one, "name": ""} == {**other, "name": ""}


def _params(function: Mapping[str, Any]) -> list[str]:
    """The parameters of a tool."""
    schema = function.get(PARAMETERS)
    known = schema.get("properties") if isinstance(schema, Mapping) else None
    return list(known) if isinstance(known, Mapping) else []


def _of_copy(tools: Sequence[ToolShown], copy: _Copy) -> list[ToolShown]:
    """The tools that a list in a text has now, by their places in it."""
    places = {source: place for place, source in enumerate(copy.sources)}
    return [
        msgspec.structs.replace(tool, source=places.get(tool.source))  # type: ignore[arg-type]
        for tool in tools
        if tool.source in places or (tool.source is None and copy.whole)
    ]
