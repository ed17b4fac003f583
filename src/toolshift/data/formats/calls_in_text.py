"""Calls that an assistant writes in its text: found, and written anew in the form that they had.

The readers are those of models' replies (`lm.call_texts`). What is written is read again, and
refused where it would be read as anything but the calls that are meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from toolshift.core.calls import MalformedCall
from toolshift.data.conversation import CALLS_HERE, Call, RowFault, encoded
from toolshift.lm.call_texts.format import DECODER
from toolshift.lm.call_texts.json_calls import NAME_KEYS, VALUE_KEYS
from toolshift.lm.call_texts.scan import scan
from toolshift.lm.call_texts.tools import Tools
from toolshift.lm.parse_reply import parse_reply


class Region(NamedTuple):
    """A part of a text that is calls and nothing else.

    Attributes:
        begin: of it in the text.
        end: of it in the text.
        calls: that it makes.
    """

    begin: int
    end: int
    calls: tuple[Call, ...]


Reader = Callable[[str, Tools], "list[Region]"]


def regions_of(text: str, tools: Tools) -> list[Region]:
    """The calls of a text, and where they stand."""
    found = scan(text, tools)
    if found.calls:
        known = iter(_sound(found.calls))
        return [
            Region(begin, end, tuple(next(known) for _ in range(number)))
            for begin, end, number in found.spans
        ]
    if not any(name in text for name in tools.names):
        return []
    reply = parse_reply(text, tools=tools.given)
    if not any(call.name in tools.names for call in reply.calls):
        return []
    begin, end = len(text) - len(text.lstrip()), len(text.rstrip())
    if reply.text:
        if not text[begin:].startswith(reply.text):
            raise RowFault("a call stands between prose, in a form without a mark")
        begin += len(reply.text)
        begin += len(text[begin:]) - len(text[begin:].lstrip())
    return [Region(begin, end, tuple(_sound(reply.calls)))]


def _sound(calls: Sequence[Any]) -> Iterator[Call]:
    for call in calls:
        if isinstance(call, MalformedCall):
            raise RowFault(f"a call in its text cannot be read: {call.text[:80]}")
        yield Call(call.name, call.arguments)


def marked(text: str, regions: list[Region]) -> str:
    """A text with a mark in place of each of its regions."""
    parts, kept = [], 0
    for region in regions:
        parts += [text[kept : region.begin], CALLS_HERE]
        kept = region.end
    return "".join((*parts, text[kept:]))


class Forms:
    """How the texts of a row write calls.

    Args:
        read: what finds calls in a text.
        tools: on offer now.
        usual: a region of the row, for calls that are added; "" for none.
    """

    def __init__(self, read: Reader, tools: Tools, usual: str) -> None:
        self._read, self._tools, self._usual = read, tools, usual

    def said(self, text: str, calls: tuple[Call, ...], before: list[tuple[str, Region]]) -> str:
        """A text with calls where its marks are; `before` is what stood there."""
        parts = text.split(CALLS_HERE)
        if not calls or len(parts) - 1 != len(before) or not before:
            whole = "".join(parts)
            added = self._written(self._usual, None, calls) if calls else ""
            return "\n".join(filter(None, (whole.rstrip() if added else whole, added)))
        counts = [len(region.calls) for _, region in before]
        if sum(counts) != len(calls):
            counts = [len(calls), *(0 for _ in counts[1:])]
        left = iter(calls)
        out = [parts[0]]
        for (said, region), count, following in zip(before, counts, parts[1:], strict=True):
            now = tuple(next(left) for _ in range(count))
            out += [self._written(said, region.calls, now), following]
        return "".join(out)

    def _written(self, said: str, before: tuple[Call, ...] | None, now: tuple[Call, ...]) -> str:
        """Calls as a region writes them; `before` is what it said, where that is known."""
        calls = tuple(Call(call.name, call.arguments) for call in now)
        if before == calls:
            return said
        if not said:
            raise RowFault("no call of the row shows how one is written")
        before = before or tuple(c for r in self._read(said, _ANY) for c in r.calls)
        for written in _ways(said, before, calls):
            if _still_named(written, before, calls):
                continue
            try:
                again = tuple(c for r in self._read(written, self._tools) for c in r.calls)
            except RowFault:
                continue
            if again == calls:
                return written
        names = ", ".join(call.name for call in calls)
        raise RowFault(f"calls of {names} cannot be said in the form that the text has for calls")


_ANY = Tools()


def _still_named(written: str, before: tuple[Call, ...], now: tuple[Call, ...]) -> bool:
    """Whether a tool that is called no more is named beside the values of arguments."""
    gone = {call.name for call in before} - {call.name for call in now}
    values = "".join(encoded(call.arguments) for call in now)
    return any(written.count(name) > values.count(name) for name in gone)


def _ways(said: str, before: tuple[Call, ...], now: tuple[Call, ...]) -> Iterator[str]:
    """Texts that may say calls as others are said: with other JSON, then with other words."""
    values = list(_values_in(said))
    if len(values) == 1 and isinstance(values[0][2], list):
        begin, end, listed = values[0]
        items = [_named(listed[min(n, len(listed) - 1)], call) for n, call in enumerate(now)]
        yield f"{said[:begin]}{encoded(items, said[begin:end])}{said[end:]}"
    if len(now) == len(before):
        if len(values) == len(now):
            yield _with_values(said, values, before, now)
        yield _in_words(said, before, now)
    elif len(before) == 1:
        each = [list(_ways(said, before, (call,))) for call in now]
        for ways in zip(*each, strict=False):
            yield "\n".join(ways)


def _values_in(said: str) -> Iterator[tuple[int, int, Any]]:
    """The objects and lists in JSON of a text, from left to right."""
    position = 0
    while match := re.compile(r"[\[{]").search(said, position):
        try:
            value, position = DECODER.raw_decode(said, match.start())
        except (ValueError, RecursionError):
            position = match.end()
            continue
        if isinstance(value, dict) or (value and all(isinstance(one, dict) for one in value)):
            yield match.start(), position, value


def _named(item: Mapping[str, Any], call: Call) -> dict[str, Any]:
    """An object that says a call, with another call in it."""
    if isinstance(item.get("function"), Mapping):
        return {**item, "function": _named(item["function"], call)}
    name = next((key for key in NAME_KEYS if isinstance(item.get(key), str)), "")
    if not name and len(item) == 1:  # {"get_rate": {"base": "USD"}}
        return {call.name: call.arguments}
    given = next((key for key in VALUE_KEYS if key in item), "arguments")
    before = item.get(given)
    said = encoded(call.arguments, before) if isinstance(before, str) else call.arguments
    return {**item, name: call.name, given: said}


def _with_values(
    said: str,
    values: list[tuple[int, int, Any]],
    before: tuple[Call, ...],
    now: tuple[Call, ...],
) -> str:
    """A text with other JSON; where that is the arguments alone, the name stands beside it."""
    out, kept = [], 0
    for (begin, end, value), old, new in zip(values, before, now, strict=True):
        alone = value == old.arguments
        beside = said[kept:begin]
        out += [_renamed(beside, {old.name: new.name}) if alone else beside]
        out += [encoded(new.arguments if alone else _named(value, new), said[begin:end])]
        kept = end
    return "".join((*out, said[kept:]))


def _in_words(said: str, before: tuple[Call, ...], now: tuple[Call, ...]) -> str:
    """A text with other names of tools and arguments."""
    names: dict[str, str] = {}
    for old, new in zip(before, now, strict=True):
        names[old.name] = new.name
        names |= zip(old.arguments, new.arguments, strict=False)
    return _renamed(said, names)


_BEFORE = r"(?<![\w\-])(?<!(?<!functions)\.)"
"""A name begins here; some templates put `functions.` before it."""


def _renamed(text: str, names: Mapping[str, str]) -> str:
    longest = sorted(filter(None, names), key=len, reverse=True)
    pattern = "|".join(map(re.escape, longest)) or r"(?!)"
    return re.sub(rf"{_BEFORE}(?:{pattern})(?![\w\-])", _by(names), text)


def _by(names: Mapping[str, str]) -> Callable[[re.Match[str]], str]:
    return lambda match: names[match[0]]
