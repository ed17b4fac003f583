"""The texts of an interface, and whether what a shift writes into them is in their language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from toolshift.core.shift import NotApplicable
from toolshift.data.conversation import PARAMETERS, Conversation
from toolshift.data.language import ENGLISH, LANGUAGES, language_of


def in_english(functions: Iterable[Mapping[str, Any]]) -> bool:
    """Whether tools are described in English, or not at all."""
    return language_of_tools(functions) == ENGLISH


def is_in(language: str, function: Mapping[str, Any]) -> bool:
    """Whether a tool alone is taken to be described in a language; one word of it tells.

    A tool that nobody has described is told by its names.
    """
    texts = [*_described([function])] or [*_names([function])]
    return language_of(texts, ENGLISH) == language


LEAST = 3
"""So many common words tell that tools are described in another language than English."""


def language_of_tools(functions: Iterable[Mapping[str, Any]]) -> str:
    """The language that tools are described in; "" where it cannot be told."""
    return language_of(_described(functions), ENGLISH, LEAST)


def check_language(before: Conversation, parts: Sequence[Conversation]) -> None:
    """Checks that no shift speaks English in an interface that does not.

    Descriptions, notices and errors of shifts are in English; who reads tools in another language
    would meet them nowhere but here.
    """
    functions = [tool.function for tool in before.tools]
    language = language_of_tools(functions)
    if language == ENGLISH:
        return
    known = {*_described(functions), *_results(before)}
    said = _words(known)
    for part in parts:
        shown = [tool.function for tool in part.tools]
        names = said | _words(_names(shown))
        described = _added(set(_described(shown)) - known, names)
        sentences = _PROSE.findall("\n".join(set(_results(part)) - known))
        if any(
            language_of([text], ENGLISH) == ENGLISH
            for text in (*described, *_added(sentences, names))
        ):
            spoken = LANGUAGES.get(language, "another language than English")
            raise NotApplicable(f"the tools are described in {spoken}, and it would speak English")


_WORD = re.compile(r"[^\W\d_]+")
_PROSE = re.compile(r"[^\W\d_]+(?:[ ][^\W\d_]+)+")
"""Words of a result that stand in a row, as keys and values of data do not."""


def _words(texts: Iterable[str]) -> set[str]:
    return {word.lower() for text in texts for word in _WORD.findall(text)}


def _added(texts: Iterable[str], known: Set[str]) -> list[str]:
    """The words of each text that were not there, if any: few of them amid many are not lost."""
    left = ([w for w in _WORD.findall(text) if w.lower() not in known] for text in texts)
    return [" ".join(words) for words in left if words]


def _names(functions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The names of tools and of their parameters, which texts may have in any language."""
    for function in functions:
        yield str(function.get("name", ""))
        yield from _keys(function.get(PARAMETERS))


def _keys(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for one in node:
            yield from _keys(one)
    elif isinstance(node, Mapping):
        properties = node.get("properties")
        yield from map(str, properties) if isinstance(properties, Mapping) else ()
        for value in node.values():
            yield from _keys(value)


def _described(functions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The descriptions of tools and of their parameters."""
    for function in functions:
        yield from filter(None, [_text(function)])
        yield from _of_schema(function.get(PARAMETERS))


def _of_schema(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for one in node:
            yield from _of_schema(one)
    elif isinstance(node, Mapping):
        yield from filter(None, [_text(node)])
        for value in node.values():
            if isinstance(value, Mapping | list):
                yield from _of_schema(value)


def _text(node: Mapping[str, Any]) -> str:
    text = node.get("description")
    return text if isinstance(text, str) else ""


def _results(conversation: Conversation) -> Iterator[str]:
    return (said.text for said in conversation.messages if said.role == "tool")
