"""Keys and values of results that a text says as they came before.

An answer that says "`order_state` is shipped" follows from its result no longer where that has
another key. What a text means by it cannot always be told, so nothing in it is changed: the shift
is not applicable, as with values of parameters (`value_mentions`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolshift.core.shift import NotApplicable
from toolshift.data.conversation import PARAMETERS, Conversation, Message, data_of
from toolshift.shifts.surface import mentions

MIN_VALUE = 2
"""Shorter values, such as `5`, stand in a text for other reasons."""


def check_results(before: Conversation, said: Iterable[Message]) -> None:
    """Checks that no learned text cites what results say no longer."""
    after = list(said)
    keys, values = _gone(before, after)
    if not (keys or values):
        return
    params = frozenset(_params(before))
    came = next((place for place, one in enumerate(after) if one.role == "tool"), len(after))
    for message in (m for n, m in enumerate(after) if n > came or m.role == "system"):
        # What a prompt says of a parameter is no key of a result.
        own = keys.keys() - params if message.role == "system" else keys.keys()
        told = values if message.role == "assistant" else ()
        for text in (message.text, message.thought) if _speaks(message) else ():
            for key in (key for key in own if key in text and _cites(text, key, keys[key])):
                raise NotApplicable(f"a text says {key}, a key that results have no longer")
            for value in (value for value in told if _stands(value, text)):
                raise NotApplicable(f"a text says {value[:80]}, which results say otherwise now")


def _gone(before: Conversation, after: list[Message]) -> tuple[dict[str, Any], set[str]]:
    """The keys that results had, with the first value of each, and the values that they had."""
    now = [message.text for message in after if message.role == "tool"]
    came = [message.text for message in before.messages if message.role == "tool"]
    kept = "\n".join(
        (*now, *(message.text for message in after if message.role == "user"), *_given(after))
    )
    still = [pair for text in now for pair in _pairs(data_of(text))]  # most of it, found at once
    known, told = {key for key, _ in still}, {_said(value) for _, value in still}
    texts = ((message.text, message.thought) for message in after if _speaks(message))
    cited = "\n".join(text for pair in texts for text in pair)  # what is in none of them is no harm
    keys, values = dict[str, Any](), set[str]()
    for text in (text for text in came if text not in now):
        for key, value in _pairs(data_of(text)):
            if key and key not in known:
                known.add(key)
                if key in cited and not _stands(key, kept):
                    keys[key] = value
            if len(said := _said(value)) >= MIN_VALUE and said not in told:
                told.add(said)
                if _stands(said, cited) and not _stands(said, kept):
                    values.add(said)
    return keys, values


def _speaks(message: Message) -> bool:
    """Whether a message says what is learned, or what is told before that."""
    return message.role == "system" or (message.role == "assistant" and message.learned)


def _pairs(data: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Each key of data with what it holds, and each value that is in a list."""
    if isinstance(data, dict):
        for own, value in data.items():
            yield own, None if isinstance(value, dict | list) else value
            yield from _pairs(value) if isinstance(value, dict | list) else ()
    elif isinstance(data, list):
        for value in data:
            yield from _pairs(value) if isinstance(value, dict | list) else [("", value)]


def _said(value: Any) -> str:
    """A value as texts say it; "" for one that they say in other words."""
    return "" if value is None or isinstance(value, bool) else str(value)


def _stands(text: str, within: str) -> bool:
    """Whether a text stands in another, as it is or as JSON has it, and is no part of a word."""
    for one in {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}:
        if one in within and re.search(rf"(?<!\w){re.escape(one)}(?!\w)", within):
            return True
    return False


def _cites(text: str, key: str, value: Any) -> bool:
    """Whether a text says a key: by a name that is no plain word, marked, or with its value."""
    if mentions({key: ""}, plain=False).search(text):
        return True
    told = re.escape(_said(value))
    with_value = rf"(?<!\w){re.escape(key)}[\"'`*]*\s*[:=]+\s*[\"'`*]*{told}"
    return bool(told) and re.search(with_value, text) is not None


def _given(messages: Iterable[Message]) -> Iterator[str]:
    """The values of arguments."""
    for call in (call for message in messages for call in message.calls):
        yield from (_said(value) for _, value in _pairs(call.arguments))


def _params(conversation: Conversation) -> Iterator[str]:
    """The parameters of the tools."""
    for tool in conversation.tools:
        schema = tool.function.get(PARAMETERS)
        known = schema.get("properties") if isinstance(schema, Mapping) else None
        yield from known if isinstance(known, Mapping) else ()
