"""The texts of an interface, and whether what a shift writes into them is in their language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolshift.core.shift import NotApplicable
from toolshift.data.conversation import PARAMETERS, Conversation
from toolshift.data.language import ENGLISH, LANGUAGES, language_of


def in_english(functions: Iterable[Mapping[str, Any]]) -> bool:
    """Whether tools are described in English, or not at all."""
    return _language(functions) == ENGLISH


LEAST = 3
"""So many common words tell that tools are described in another language than English."""


def _language(functions: Iterable[Mapping[str, Any]]) -> str:
    return language_of(_described(functions), ENGLISH, LEAST)


def check_language(before: Conversation, parts: Sequence[Conversation]) -> None:
    """Checks that no shift speaks English in an interface that does not.

    Descriptions, notices and errors of shifts are in English; who reads tools in another language
    would meet them nowhere but here.
    """
    functions = [tool.function for tool in before.tools]
    language = _language(functions)
    if language == ENGLISH:
        return
    known = {*_described(functions), *_results(before)}
    for part in parts:
        described = set(_described(tool.function for tool in part.tools)) - known
        results = set(_results(part)) - known
        if any(language_of([text], ENGLISH) == ENGLISH for text in described) or any(
            language_of([text]) == ENGLISH for text in results
        ):
            spoken = LANGUAGES.get(language, "another language than English")
            raise NotApplicable(f"the tools are described in {spoken}, and it would speak English")


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
