"""Texts of tools that instruct the model instead of describing the tool: tool poisoning.

Only what is new is looked at: a sentence that stood in the old list already was seen then. The
signs are rules, so they are evidence and no proof in either direction.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

_TOLD = ("description", "title", "default", "examples", "enum", "const")
_ANY = r"[^.!?\n]{0,60}?"
SIGNS: Mapping[str, tuple[str, re.Pattern[str]]] = {
    name: (what, re.compile(pattern, re.IGNORECASE))
    for name, what, pattern in (
        (
            "override",
            "it sets other instructions aside",
            rf"\b(?:ignore|disregard|forget|overrides?|supersedes?)\b{_ANY}\b(?:previous|prior|above"
            rf"|earlier|other|all|any|system|your)\b{_ANY}\b(?:instructions?|prompts?|rules|guidelines)",
        ),
        (
            "secrecy",
            "it asks to keep something from the user",
            rf"\b(?:do not|don't|never|without|avoid|no need to)\b{_ANY}\b(?:tell|telling|mention"
            rf"|mentioning|inform|informing|notify|notifying|reveal|disclose|alert)\w*\b{_ANY}"
            r"\b(?:user|users|human|operator|anyone|this|it)\b",
        ),
        (
            "credentials",
            "it names files or values that hold secrets",
            r"~?/?\.ssh\b|\bid_rsa\b|\bid_ed25519\b|/etc/(?:passwd|shadow)|\.aws/credentials"
            r"|\b(?:read|cat|open|attach|reveal|print|repeat)\b[^.!?\n]{0,60}?(?<![\w-])"
            r"(?:\.env\b|mcp\.json\b|private keys?\b|api keys?\b|access tokens?\b|passwords?\b"
            r"|system prompt\b)",
        ),
        (
            "exfiltration",
            "it asks to send data to an address",
            rf"\b(?:send|forward|post|upload|copy|bcc|cc|transmit|exfiltrate)\b{_ANY}"
            r"(?:https?://|\b[\w.+-]+@[\w-]+\.\w)",
        ),
        (
            "markup",
            "it is dressed as a system message",
            r"</?\s*(?:important|system|secret|instructions?|assistant|admin)\s*>|\[/?INST\]"
            r"|<\|im_start\|>|^\s*(?:system|assistant)\s*:",
        ),
        (
            "takeover",
            "it tells the model to act beyond this tool",
            r"\b(?:you are now|from now on,? you|you must (?:always|first)"
            rf"|always (?:call|use) this tool(?: first| before|{_ANY}\bany other)"
            r"|before (?:using|calling|you use) (?:any|every)"
            r"(?: other)? tools?)\b",
        ),
    )
}
"""Signs by name, each with its meaning."""
HIDDEN = "hidden"
_ZERO = {"\u200b", "\u2060", "\ufeff", "\u180e"}
_EXCERPT = 160


class Sign(msgspec.Struct, frozen=True):
    """A sign that a text instructs the model.

    Attributes:
        sign: one of `SIGNS`, or "hidden" for characters that nobody sees.
        what: the sign in words.
        text: where it stands, cut to 160 characters.
    """

    sign: str
    what: str
    text: str


def texts_of(document: Any, inside: bool = False) -> Iterator[str]:
    """Every text of a tool that a model reads: descriptions, titles, defaults, choices."""
    if isinstance(document, str):
        if inside:
            yield document
    elif isinstance(document, Mapping):
        for key, value in document.items():
            yield from texts_of(value, inside or key in _TOLD)
    elif isinstance(document, list):
        for value in document:
            yield from texts_of(value, inside)


def sentences_of(texts: Iterable[str]) -> frozenset[str]:
    """The sentences of texts, which `instructions_in` takes as known."""
    return frozenset(sentence for text in texts for sentence in _sentences(text))


def instructions_in(texts: Iterable[str], known: frozenset[str] = frozenset()) -> tuple[Sign, ...]:
    """The signs of instructions in texts."""
    signs: dict[str, Sign] = {}
    for sentence in (part for text in texts for part in _sentences(text)):
        for sign, what in _signs(sentence) if sentence not in known else ():
            signs.setdefault(sign, Sign(sign, what, sentence[:_EXCERPT]))
    return tuple(signs.values())


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.!?])\s+|\n+", text) if part.strip()]


def _signs(sentence: str) -> Iterator[tuple[str, str]]:
    if any(one in _ZERO or _is_hidden(one) for one in sentence):
        yield HIDDEN, "it holds characters that nobody sees"
    for name, (what, pattern) in SIGNS.items():
        if pattern.search(sentence):
            yield name, what


def _is_hidden(one: str) -> bool:
    """Tags and marks that turn a text around are; the joiners that scripts need are not."""
    return (
        not one.isascii()
        and unicodedata.category(one) == "Cf"
        and one not in ("\u200c", "\u200d", "\u00ad")
    )
