"""Whether an answer says yes or no: by the word, or by what was asked, stated or denied."""

from __future__ import annotations

import re

from toolshift.reading.answers.stated import without, words_of

_I = re.IGNORECASE
_LEAD = r"(?:^|[.!?;:=\n、。—–]\s*|,\s+(?:so|then|and|but)\s+|:\s*|\b(?:is|est|ist|es|è)\s+)[\"'(*]*"
_YES = re.compile(
    _LEAD + r"(?:yes|yep|yeah|true|correct|indeed|certainly|absolutely|definitely|sure|of course|"
    r"ja|jawohl|doch|oui|si|sí|sì|claro|sim|tak|да|evet|kyllä|igen|はい|ええ|是的?|네)"
    r"(?!\s*(?:and|or|/|,)\s*no\b)(?!\s+not)(?!\w)",
    _I,
)
_NO = re.compile(
    _LEAD + r"(?:(?:unfortunately|sorry|i'm afraid|hélas|leider)?,?\s*)(?:no|nope|false|nein|non|não|"
    r"nee|nej|nei|nie|нет|hayır|ei|nem|いいえ|不是?|아니요)(?=\s*(?:$|[.,!;:\n—–-]))|"
    r"\b(?:unfortunately|sorry|of course|certainly|leider|hélas|helaas)[, ]+(?:not|nicht|non|niet)\b",
    _I,
)
_BOTH = re.compile(r"\byes\b[^.!?]{0,12}\bno\b(?!\s+\w)|\bno\b[^.!?]{0,12}\byes\b|\bmaybe\b|\bperhaps\b", _I)
_CLAUSE = re.compile(r"[.!?;\n]+\s*|,\s+|\s(?:but|because|aber|mais|pero)\s", _I)
_DENIES = re.compile(
    r"\b(?:not|never|no|nobody|none|cannot|nicht|kein\w*|pas|non|no|não|niet|geen|inte|ikke|nie|не)\b|"
    r"n['’]t\b|\bn['’](?=\w)",
    _I,
)
_HEDGES = re.compile(r"\b(?:if|might|could|maybe|perhaps|doubt|probably|unsure|whether)\b", _I)
_ASKING = words_of("is are was were does did has have had can could will would the and for there any")


def says_yes(text: str, request: str) -> bool | None:
    """Whether a text says yes (True), no (False), or neither, or both (None)."""
    text = text.strip()
    yes, no = bool(_YES.search(text)), bool(_NO.search(text))
    if _BOTH.search(text) or _HEDGES.search(text) or text.endswith("?"):
        return None
    if yes != no:
        return yes
    if yes and no:
        return None
    return _by_predicate(text, request)


def _by_predicate(text: str, request: str) -> bool | None:
    """What was asked, repeated: the clause with most of the words that the question ends in."""
    asked = without(words_of(request), _ASKING)
    if not asked:
        return None
    said: set[bool] = set()
    best = 0
    for clause in _CLAUSE.split(text):
        words = words_of(clause)
        hits = len(asked) - len(without(asked, words))
        if hits > best:
            best, said = hits, set()
        if hits and hits == best:
            said.add(not _DENIES.search(clause))
    enough = best >= 2 or (best == 1 and len(asked) <= 2)
    return said.pop() if enough and len(said) == 1 else None
