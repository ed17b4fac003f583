"""Reads messages in Harmony, the format of gpt-oss, that a server passes on unparsed.

A reply is a row of messages, `<|channel|>analysis<|message|>...<|end|><|start|>assistant` and then
`<|channel|>final<|message|>...<|return|>`. What is for the user stands in the channel `final`; a
call has a recipient, `to=functions.NAME`. Decoders that leave special tokens out make
"analysis...assistantfinal..." of it.
"""

from __future__ import annotations

import re

import msgspec

_MESSAGE = re.compile(
    r"(?:<\|start\|>([^<]{0,200}))?<\|channel\|>([^<]{0,200})(?:<\|constrain\|>[^<]{0,40})?<\|"
    r"message\|>"
    r"(.*?)(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.DOTALL,
)
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
    opening = _MESSAGE.search(text) if "<|message|>" in text else None
    before = text[: opening.start()].strip() if opening else "none"
    if before and not before.endswith("<|end|>"):  # it quotes such a message
        return []
    messages = []
    for role, channel, content in _MESSAGE.findall(text):
        to = _RECIPIENT.search(f"{channel} {role}")
        name = to[1].removeprefix("functions.") if to else ""
        first = channel.split()[0] if channel.split() else ""
        messages.append(Message(first, "" if name in ("user", "all") else name, content.strip()))
    return messages


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
