"""Reads bounds: "at most 8" says the value itself only where such a bound is asked for."""

from __future__ import annotations

import re

_I = re.IGNORECASE
_BOUNDS = {
    "most": r"at (?:the )?(?:most|maximum)|(?:no|not) more than|as (?:many|much) as|within|up to|"
    r"(?:an? |the )?max(?:imum|\.)?(?: of)?",
    "least": r"at (?:the )?(?:least|minimum)|(?:no|not) (?:less|fewer) than|as (?:low|few) as|"
    r"starting (?:at|from)|(?:(?:starts?|ranges?) )?from|upwards? of|"
    r"(?:an? |the )?min(?:imum|\.)?(?: of)?",
    "below": r"less than|fewer than|under|below",
    "above": r"more than|greater than|over|above|exceed(?:s|ing)",
    "before": r"before|earlier than",
    "after": r"after|(?<!no )(?<!not )later than|past",
}
_STANDS = {kind: re.compile(rf"(?<![\w'])(?:{words})$", _I) for kind, words in _BOUNDS.items()}
_ASKED = {
    kind: re.compile(rf"\b(?:{words}) (?:the )?(?:how|which|what)\b", _I)
    for kind, words in _BOUNDS.items()
}
_NAMED = {
    "most": re.compile(
        r"\b(?:at (?:the )?most|max(?:imum)?|limit|capacity|may (?:I|we|one|they)|"
        r"(?:am I|are we|is) allowed|(?:days|weeks|months|hours|long) do (?:I|we) have)\b"
        r"(?!(?: \w+)? ?\d)",
        _I,
    ),
    "least": re.compile(r"\b(?:at (?:the )?least|min(?:imum)?)\b(?!(?: \w+)? ?\d)", _I),
}
"""What a question has that asks for a bound, and no bound of its own (a figure)."""
_CLAUSE = re.compile(r"[^.?!;\n]+")
_QUESTION = re.compile(r"\b(?:how|what|which|when|whats|tell me)\b", _I)


def asks_bound(bound: str, request: str) -> bool:
    """Whether a request asks for just this bound ("at most", "Up to"): the most, or the least.

    "Within how many days ...?" and "What is the maximum?" are met by "within 30 days" and "at most
    8"; that "under 8" is less than the most is kept apart.
    """
    words = " ".join(bound.split())
    kind = next((kind for kind, sign in _STANDS.items() if sign.search(words)), "")
    clauses = (part[0] for part in _CLAUSE.finditer(request) if _QUESTION.search(part[0]))
    return bool(kind) and any(_kind_asked(clause) == kind for clause in clauses)


def _kind_asked(question: str) -> str:
    """The kind of bound that a question asks for; "" for none."""
    for signs in (_ASKED, _NAMED):
        for kind, sign in signs.items():
            if sign.search(question):
                return kind
    return ""
