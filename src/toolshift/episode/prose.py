"""Reads what an agent says outside the protocol."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from toolshift.core.message import CODE

if TYPE_CHECKING:
    pass


_REFUSAL = re.compile(
    r"\b(cannot|can't|can not|could not|couldn't|unable to|not able to|impossible|"
    r"(is not|isn't) (possible|registered)|no longer|not available|unavailable|"
    r"(does not|doesn't|do not|don't) (exist|have)|no such|there is no|there's no|nothing to|"
    r"contradict\w*|permanently|decommissioned|failed|sorry|unfortunately|regrettably)\b",
    re.IGNORECASE,
)


_REASON_MARKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("contradictory_request", re.compile(r"contradict|conflict|both|incompatib|inconsisten", re.I)),
    (
        "tool_unavailable",
        re.compile(
            r"no tool|tool.*(missing|unavailable|not available|no longer|removed)|a (tool|way) "
            r"(to|for)|toolbox|\bremoved|no longer exist",
            re.I,
        ),
    ),
    (
        "not_found",
        re.compile(
            r"not (be )?f(ou|i)nd|n't be found|no (such|record|match|result)|n(o|')t exist|find|"
            r"there is no (?!way)|n(o|')t (in|registered)\b",
            re.I,
        ),
    ),
    (
        "service_failure",
        re.compile(r"error|fail|outage|down|unavailable|broken|perman|decommission|overload", re.I),
    ),
)


_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


_POLITE = re.compile(r"(anything|something) else|can i (help|assist)|help you (with|further)", re.I)


_OFFER = re.compile(r"(would you like|do you want me|shall i|should i|can i|may i)\b", re.I)


_REQUEST = re.compile(
    r"\bplease (provide|specify|clarify|confirm|tell me|give me)\b|without knowing\b|"
    r"\blet me know the\b|\b(let me know|tell me) (which|what|who|when|whether|how)\b|"
    r"\bI(?:'ll| will)?(?: first| still)? (need|require) (to know|the|your|more)\b",
    re.IGNORECASE,
)


def read_prose(text: str, shown: str = "") -> tuple[Literal["question", "refusal", "answer"], str]:
    """Reads a message that ends a turn in prose instead of through the protocol.

    The rule, in this order: a message that states a code which was shown in the episode is an
    answer; one that ends in a question, or asks for a detail ("please provide ..."), is a question,
    unless it only offers something; one that says the task cannot be done ("cannot", "no such",
    "failed", ...) is a refusal, its reason the first of contradiction, missing tool, not found and
    failure whose words appear; one that ends in an offer, other than of any more help, is a
    question; anything else is an answer. `studies/prose_finishes` measures it.

    Args:
        text: the message.
        shown: the results that the agent has seen.

    Returns:
        The kind, and the refusal's reason ("" where none can be read).
    """
    if any(code in shown for code in CODE.findall(text.upper())):
        return "answer", ""
    text = text.replace("\u2019", "'").strip()
    sentences = _SENTENCE.split(text)
    last = sentences[-1]
    ends_asking = last.endswith("?") and not _POLITE.search(last)
    offers = _OFFER.match(last) is not None
    if (ends_asking and not offers) or any(map(_asks_detail, sentences)):
        return "question", ""
    if _REFUSAL.search(text):
        return "refusal", next((name for name, mark in _REASON_MARKS if mark.search(text)), "")
    return ("question" if ends_asking else "answer"), ""


def _asks_detail(sentence: str) -> bool:
    """Whether a sentence asks the user for something without a question mark."""
    return bool(_REQUEST.search(sentence)) and not re.search(r"\bif\b", sentence, re.IGNORECASE)
