"""Calls of FunctionGemma and Gemma 4: `call:name{key:value}`, with a mark of its own for quotes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from toolshift.core.calls import read_call
from toolshift.lm.call_texts.format import DECODER, Broken, Found, Text
from toolshift.lm.call_texts.tools import Tools, value_in

_HEAD = re.compile(r"\s*+(?:call:)?\s*+(?P<name>[\w.\-/:$]+)\s*+\{")
_QUOTE = re.compile(r"<\|\"\|>|<escape>")
_KEY = re.compile(
    r"(?:(?P<quote><\|\"\|>|<escape>|\")(?P<quoted>.*?)(?P=quote)|(?P<bare>[^:{}\[\],<\"]+?))\s*+:"
)
_BARE = re.compile(r"[^,}\]<]*")
_DEEPEST = 32


def gemma_calls(text: Text, mark: re.Match[str], tools: Tools) -> Found | None:
    """One call; Gemma writes several one after another, each behind a mark."""
    head = _HEAD.match(text.text, mark.end())
    if head is None:
        return None
    return _members_of(text, head.end(), tools.own(head["name"], "functions."), tools)


def after_name(text: Text, mark: re.Match[str], tools: Tools) -> Found | None:
    """The same behind a mark that names the tool, where a server has dropped marks and quotes."""
    if text.at(text.skip(mark.end() + 1), '"}'):  # it is JSON
        return None
    return _members_of(text, mark.end() + 1, mark["name"], tools)


def _members_of(text: Text, position: int, name: str, tools: Tools) -> Found:
    try:
        arguments, end = _items(text, position, "}", 0, partial(tools.value, name))
    except Broken:
        raise Broken(name) from None
    return Found((read_call(name, arguments, text=text.text[position - 1 : end]),), end)


def _untyped(_: str, text: str) -> Any:
    return value_in(text)


def _items(
    text: Text, position: int, closing: str, depth: int, typed: Callable[[str, str], Any]
) -> tuple[Any, int]:
    """The members of an object, or the values of a list, up to its bracket."""
    keys: list[str] = []
    values: list[Any] = []
    while True:
        position = text.skip(position)
        if text.at(position, closing):
            found = dict(zip(keys, values, strict=True)) if closing == "}" else values
            return found, position + 1
        if values:
            if not text.at(position, ","):
                raise Broken
            position = text.skip(position + 1)
        if closing == "}":
            key = _KEY.match(text.text, position)
            if key is None:
                raise Broken
            keys.append(key["quoted"] if key["bare"] is None else key["bare"].strip())
            position = text.skip(key.end())
        value, position = _value(text, position, depth)
        if isinstance(value, _Bare):
            value = typed(keys[-1] if keys else "", value.text)
        values.append(value)


class _Bare(NamedTuple):
    """A value without quotes."""

    text: str


def _value(text: Text, position: int, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise Broken
    quote = _QUOTE.match(text.text, position)
    if quote:
        return _quoted(text, quote)
    if text.at(position, "{["):
        closing = "}" if text.at(position, "{") else "]"
        return _items(text, position + 1, closing, depth + 1, _untyped)
    if text.at(position, '"'):
        try:
            return DECODER.raw_decode(text.text, position)
        except ValueError:
            raise Broken from None
    bare = _BARE.match(text.text, position)
    if bare is None or not text.at(bare.end(), ",}]"):
        raise Broken
    return _Bare(bare[0].strip()), bare.end()


def _quoted(text: Text, quote: re.Match[str]) -> tuple[str, int]:
    """A text up to the quote that a comma or a bracket follows."""
    end = text.text.find(quote[0], quote.end())
    while end >= 0:
        following = text.skip(end + len(quote[0]))
        if text.at(following, ",}]"):
            return text.text[quote.end() : end], end + len(quote[0])
        end = text.text.find(quote[0], end + 1)
    raise Broken
