"""What a failed or incomplete result says: try again, never again, or use another tool."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from toolshift.core.render import NOTICE
from toolshift.reading.words import NO_THING, SETS_ASIDE, negation

_AGAIN = re.compile(
    r"\b(429|502|503|504|too many|rate.?limit\w*|throttl\w*|temporar\w+|transient|again|retry|"
    r"once more|time[d-]? ?out|overload\w*|busy|momentar\w+|later|shortly|hiccup|congest\w*)\b",
    re.IGNORECASE,
)
_NEVER = re.compile(
    r"\b(permanent\w*|for good|decommission\w*|no longer|any ?more|never|don't|"
    r"do(es)? not (retry|repeat)|cannot be (carried|fulfilled|completed)|no return|discontinued|"
    r"retired|removed|shut down|forbidden|unauthori[sz]ed|invalid|not found|unknown)\b",
    re.IGNORECASE,
)
_SENT_WRONG = re.compile(
    r"\b((?<!went )(?<!gone )(?<!goes )(?<!go )(?<!going )wrong|incorrect\w*|"
    r"not (the )?(correct|right)|mistyped|misspel\w*|malformed|expired|mismatch\w*|"
    r"(do(es)?|did)( not|n't) match|(check|correct|fix|change|adjust|verify) (your|the|its))\b",
    re.IGNORECASE,
)
"""Phrases that blame the call itself: the same call would fail again."""
_DENIED = re.compile(
    rf"{negation('no', *NO_THING, 'stop', 'avoid', 'useless', 'pointless')}(\s+[\w'-]+){{0,5}}\s*$",
    re.IGNORECASE,
)
"""What denies the words right behind it, in the same clause: "nobody will start it again"."""
_LATER = re.compile(r"again|retry|once more|later|shortly", re.IGNORECASE)
_DENIED_BEHIND = re.compile(
    r"\s+((is|are|was|will|would|can|could|does|do|has|may|might|make|makes|brings|of|it)\s+){1,3}"
    r"(not|no|nothing|never|useless|pointless|futile)\b|\s+(\w+n't|cannot|never)\b|"
    r"\s+(is|would be|will be)\s+(useless|pointless|futile|in vain)\b",
    re.IGNORECASE,
)
"""What denies such a word right before it, in the same clause: "a retry will not help"."""
_WAIT = re.compile(
    r"\b(?:retry|again|once more|wait)\b(?:[\s:-]*(?:after|in|for|about|at least|another)\b)*"
    r"[\s:]*(\d{1,9})\s*((?:s|m|h|d|sec|min|second|minute|hour|hr|day)s?\b)?",
    re.IGNORECASE,
)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST_WAIT = 60
"""Seconds: calls are made again at once, which is of no use where a longer wait is asked for."""
_ERROR = re.compile(
    r"\s*error(?!\s+(rate|code|log|count|budget|message|report)s?\b)(\s+[\w.'\"`()-]+){0,6}\s*:",
    re.IGNORECASE,
)
"""How a text begins that is an error: "Error: ...", "Error 503: ...", "Error calling x: ..."."""
_CLAUSE = re.compile(r"[.;:!?,()]|\s-+\s|[\u2013\u2014]")
_ALREADY_SO = re.compile(r"temporar|transient|momentar", re.IGNORECASE)
"""Said of the failure itself, so a denial stands beside it: "cannot be reached temporarily"."""
_BARRED = re.compile(
    r"\b(permission\w*|not permitted|not allowed|may not|denied|forbidden|unauthori[sz]ed|admin\w*|"
    r"privilege\w*|only for|scope|role)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    rf"({SETS_ASIDE}|\bavoid|\bno longer)(\s+\w+){{0,3}}\s*$",
    re.IGNORECASE,
)
_BLAMED_BEFORE = re.compile(
    r"\b(depends? on|relies on|requires?|needs?|because of|due to|wait(s|ing) (for|on)|upstream|"
    r"dependency|(error|failure|fault|exception|problem|outage)s? (in|of|at|from|with)|"
    r"(failed|unable|could not|couldn't|cannot|can't) (to )?(call|reach|run|load|query)( from)?)"
    r"\s+((the|tool|service|function|its|by)\s+)*[\"'`]?$",
    re.IGNORECASE,
)
_BLAMED_BEHIND = re.compile(
    r"[\"'`]?(\(\))?,?\s+((which|that|has|have|had|is|was|itself|also|still|currently)\s+)*"
    r"(fail(s|ed|ing|ure)?|down|unavailable|offline|unreachable|timed out|timeout|crash\w*|broken?|"
    r"errors?|errored|returned|refused|rejected|found|missing|could not|couldn't|cannot|can't|"
    r"did not|didn't|does not|doesn't|not)\b",
    re.IGNORECASE,
)
_BEFOREHAND = re.compile(r"\b(first|before(hand)?|prior to)\b", re.IGNORECASE)
"""What is called before the tool that failed does not stand for it."""


def failure_of(text: str) -> str:
    """The error text of a failed call."""
    body = text.partition(NOTICE)[0]
    if _ERROR.match(body):
        return body.strip()
    if '"error"' not in text[:200] and '"isError"' not in body:
        return ""
    try:
        data = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(data, dict):
        return ""
    fault = data.get("error") or (data.get("isError") is True and data.get("content", body))
    return " ".join(_words(fault)) if fault else ""


def incomplete_of(text: str) -> str:
    """The notice beside a result in which values are missing."""
    body, _, notice = text.partition(NOTICE)
    return notice if notice and re.search(r"(?<![\w\"])null(?![\w\"])", body) else ""


def _words(fault: Any) -> list[str]:
    """The texts of an error; of a part of a result of MCP, the text alone."""
    if isinstance(fault, dict):
        inner = (
            [fault["text"]] if fault.get("type") == "text" and "text" in fault else fault.values()
        )
        return [word for value in inner for word in _words(value)]
    if isinstance(fault, list):
        return [word for value in fault for word in _words(value)]
    return [str(fault)]


def says_again(failure: str) -> bool:
    """Whether a failure is said to be temporary."""
    hits, waits = _AGAIN.finditer(failure), _WAIT.finditer(failure)
    if any(int(wait[1]) * _SECONDS[(wait[2] or "")[:1].lower()] > LONGEST_WAIT for wait in waits):
        return False
    if any(not _is_denied(failure, hit) for hit in _SENT_WRONG.finditer(failure)):
        return False
    return not _NEVER.search(failure) and any(not _is_denied(failure, hit) for hit in hits)


def _is_denied(failure: str, hit: re.Match[str]) -> bool:
    clause = _CLAUSE.split(failure[max(0, hit.start() - 100) : hit.start()])[-1]
    if _ALREADY_SO.match(hit[0]):
        clause = " ".join(clause.split()[-2:])  # "not temporary", "not a temporary fault"
    behind = _LATER.fullmatch(hit[0]) and _DENIED_BEHIND.match(failure, hit.end())
    return bool(_DENIED.search(clause) or behind)


def is_of_rights(failure: str) -> bool:
    """Whether a failure is about permissions, so that another tool must not be used instead."""
    return bool(_BARRED.search(failure))


def named_tool(failure: str, tools: Iterable[str]) -> str:
    """The one tool that a failure names as a replacement."""
    if is_of_rights(failure):
        return ""
    hits = [
        (name, hit)
        for name in tools
        if name in failure and (hit := re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", failure))
    ]
    if len(hits) != 1:
        return ""
    name, hit = hits[0]
    before, behind = failure[: hit.start()], failure[hit.end() :]
    blamed = _BLAMED_BEFORE.search(before) or _BLAMED_BEHIND.match(behind)
    clause = f"{_CLAUSE.split(before)[-1]} {_CLAUSE.split(behind)[0]}"
    wrong = _NEGATED.search(before) or blamed or _BEFOREHAND.search(clause)
    return "" if wrong else name
