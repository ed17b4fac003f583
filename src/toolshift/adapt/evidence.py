"""What a refusal or a claim of success rests on, as far as the conversation shows it.

An ending is **unsupported** where nothing in the conversation speaks for it:

service_failure   no call has failed
tool_unavailable  every tool of the lock is on offer, and no call found its tool missing
not_found         no tool was called
an answer         the last call failed and nothing has worked since; or it states an identifier that
                  stands in no result and in nothing that the user or the system prompt said

Numbers and words may be worked out, so an identifier is a word of at least four signs with a letter
and a digit in it. A refusal because the request contradicts itself needs no result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolshift.adapt.conversation import Conversation
from toolshift.core.calls import ToolCall
from toolshift.core.message import FINAL_ANSWER, REFUSE, Reply
from toolshift.reading.prose import read_prose
from toolshift.reading.text import fold

_IDENTIFIER = re.compile(r"(?=[\w-]*[^\W\d_])(?=[\w-]*\d)\w[\w-]{2,}\w")
_MISSING = re.compile(r"unknown.?tool|no (such )?tool|tool not found|not available", re.IGNORECASE)
REFUSAL, ANSWER, CLAIM = "refusal", "answer", "none"
"""As prose is read; a claim ("The total is 5.") is an answer that states no code."""


def unsupported(reply: Reply, talk: Conversation, missing: Iterable[str]) -> str:
    """The evidence that an ending lacks."""
    kind, text = _ending(reply, talk)
    if kind == REFUSAL:
        return _refusal_lacks(text, talk, missing)
    return _answer_lacks(text, talk) if kind == ANSWER else ""


def _ending(reply: Reply, talk: Conversation) -> tuple[str, str]:
    """Whether a reply refuses or answers; the reason of a refusal, the words of an answer."""
    if not reply.calls:
        if not reply.text:
            return "", ""
        request = _texts(talk, ("user",))
        kind, reason = read_prose(reply.text, _texts(talk, ("tool",)), request)
        return (ANSWER if kind == CLAIM else kind), (reason if kind == REFUSAL else reply.text)
    call = reply.calls[0]
    if not isinstance(call, ToolCall) or len(reply.calls) > 1:
        return "", ""
    if call.name == REFUSE:
        return REFUSAL, str(call.arguments.get("reason", ""))
    if call.name == FINAL_ANSWER:
        return ANSWER, str(call.arguments.get("answer", ""))
    return "", ""


def _texts(talk: Conversation, roles: tuple[str, ...]) -> str:
    return "\n".join(_content(one) for one in talk.shown if one.get("role") in roles)


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else str(content or "")


def _refusal_lacks(reason: str, talk: Conversation, missing: Iterable[str]) -> str:
    made = talk.made[talk.request :]
    failures = [call.failure for call in talk.made if call.failure]
    if reason == "service_failure" and not failures:
        return "no call in this conversation has failed"
    if reason == "not_found" and not made:
        return "no tool was called to look for it"
    met = any(map(_MISSING.search, failures))
    if reason == "tool_unavailable" and not met and not any(missing):
        return "every tool that you know is on offer"
    return ""


def _answer_lacks(answer: str, talk: Conversation) -> str:
    if talk.failed and talk.last_made:
        call, failure = talk.failed[-1]
        return f'the last call of {call.tool} failed ("{failure[:200]}"), and none has worked since'
    shown = fold(_texts(talk, ("tool", "user", "system"))).lower()
    unseen = [one for one in _IDENTIFIER.findall(fold(answer)) if one.lower() not in shown]
    if unseen:
        return f"{unseen[0]} stands in no result, and nobody has said it"
    return ""


def question_of(lacks: str, reply: Reply) -> str:
    """The question that the agent is asked."""
    refuses = bool(reply.calls) and reply.calls[0].name == REFUSE
    what = "refuse" if refuses else "answer"
    return (
        f"Before you {what}: {lacks}. Check it with the tools. If you are sure, say the same again."
    )
