"""Reads messages in Harmony, the format of gpt-oss, that a server passes on unparsed.

A reply is a row of messages, `<|channel|>analysis<|message|>...<|end|><|start|>assistant` and then
`<|channel|>final<|message|>...<|return|>`. What is for the user stands in the channel `final`; a
call has a recipient, `to=functions.NAME`. Decoders that leave special tokens out make
"analysis...assistantfinal..." of it.
"""

from __future__ import annotations

import json
import re

import msgspec

_HEADER = re.compile(
    r"(?:<\|start\|>([^<]{0,200}))?<\|channel\|>([^<]{0,200})(?:<\|constrain\|>[^<]{0,40})?"
    r"(?:(<\|message\|>)|(?:<[^<>]{0,12})?\Z)"
)
_NEXT = re.compile(r"<\|(?:end|return|call|start|channel)\|>|\Z")
_DECODER = json.JSONDecoder()
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_BARE = re.compile(r"\A(?:analysis(?=[A-Z\"'*(])|commentary(?= to=functions\.))")
_BARE_NEXT = re.compile(
    r"assistant(analysis|final|commentary)((?: to=functions\.[\w.-]+)?)(?: ?(?:json|code)(?=\{))?"
)


class Message(msgspec.Struct, frozen=True):
    """One message of a reply.

    Attributes:
        channel: `analysis`, `commentary` or `final`.
        to: the name of the tool that it calls; "" for none.
        text: what it says, or the arguments of the call.
    """

    channel: str
    to: str
    text: str


def messages_of(text: str) -> list[Message]:
    """The messages of a reply in Harmony."""
    if "<|channel|>" not in text:
        text = _with_tags(text)
    opening = _HEADER.search(text)
    before = text[: opening.start()].strip() if opening else "none"
    if before and not before.endswith("<|end|>"):  # it quotes such a message
        return []
    messages: list[Message] = []
    while opening:
        role, channel, whole = opening.groups()
        to = _RECIPIENT.search(f"{channel} {role or ''}")
        name = to[1].removeprefix("functions.") if to else ""
        name = "" if name in ("user", "all") else name
        first = channel.split()[0] if channel.split() else ""
        end = _end_of(text, opening.end(), bool(name))
        if whole or name:
            messages.append(Message(first, name, text[opening.end() : end].strip()))
        opening = _HEADER.search(text, end)
    return messages


def _end_of(text: str, start: int, called: bool) -> int:
    """Where the content of a message ends; a token within the arguments of a call is none."""
    if called:
        begin = len(text) - len(text[start:].lstrip())
        try:
            end = _DECODER.raw_decode(text, begin)[1]
        except (ValueError, RecursionError):
            end = -1
        if end >= 0 and re.compile(rf"\s*(?:{_NEXT.pattern})").match(text, end):
            return end
    following = _NEXT.search(text, start)
    return following.start() if following else len(text)


def for_the_user(text: str) -> str:
    """The words for the user in a Harmony reply; any other text unchanged."""
    messages = messages_of(text)
    if not messages:
        return text
    finals = [one.text for one in messages if one.channel == "final"]
    asides = [one.text for one in messages if one.channel == "commentary" and not one.to]
    return finals[-1] if finals else "\n".join(asides)


def _with_tags(text: str) -> str:
    """Restores the special tokens that a decoder left out; any other text unchanged."""
    opening = _BARE.match(text)
    if not opening or not (text.startswith("commentary") or _BARE_NEXT.search(text)):
        return text
    tagged = _BARE_NEXT.sub(r"<|end|><|channel|>\1\2<|message|>", f"assistant{text}")
    return tagged.removeprefix("<|end|>")
