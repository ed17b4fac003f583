"""Whether an answer says yes or no: by the word, or by what was asked, stated or denied.

Without the word, a clause counts that has the predicate of the question (`predicate`). Where
none has, one that repeats most of what was asked and adds nothing of its own:
"Berth 3 is free" to "Is berth 3 free?", and not "Berth 3 is occupied".
"""

from __future__ import annotations

import re

from toolshift.reading.answers.predicate import question_in, says_predicate
from toolshift.reading.answers.stated import without, words_of
from toolshift.reading.quantity import RequestContext

_I = re.IGNORECASE
_LEAD = (
    r"(?:^|[.!?;:=\n、。—–]\s*|,\s+(?:so|then|and|but)\s+|:\s*|"
    r"\b(?:is|est|ist|es|è)\s+)[\"'(*]*"
)
_YES = re.compile(
    _LEAD + r"(?:yes|yep|yeah|true|correct|indeed|certainly|absolutely|definitely|sure|of course|"
    r"ja|jawohl|doch|oui|si|sí|sì|claro|sim|tak|да|evet|kyllä|igen|はい|ええ|是的?|네)"
    r"(?!\s*(?:and|or|/|,)\s*no\b)(?!\s+not)(?!\w)",
    _I,
)
_NO = re.compile(
    _LEAD + r"(?:(?:unfortunately|sorry|i'm afraid|hélas|leider)?,?\s*)(?:no|nope|false|nein|"
    r"non|não|nee|nej|nei|nie|нет|hayır|ei|nem|いいえ|不是?|아니요)(?=\s*(?:$|[.,!;:\n—–-]))|"
    r"\b(?:unfortunately|sorry|of course|certainly|leider|hélas|helaas)[, ]+"
    r"(?:not|nicht|non|niet)\b|" + _LEAD + r"not (?:yet|really|at all)(?=\s*(?:$|[.,!;:\n—–-]))",
    _I,
)
_BOTH = re.compile(
    r"\byes\b[^.!?]{0,12}\bno\b(?!\s+\w)|\bno\b[^.!?]{0,12}\byes\b|\bmaybe\b|\bperhaps\b", _I
)
_TAKEN_BACK = re.compile(
    r"\byes\b[,;.:]?\s+(?:but|although|though|however),?\s(?!i\b|we\b)(?P<rest>)"
    r"(?:(?!\bbut\b)[^.!?;\n]){0,60}?(?:\b(?:not|never|no|nobody|none|nothing|cannot)\b|n['’]t\b)",
    _I,
)
_BARE_DENIAL = re.compile(
    r"(?:nothing|nobody|no one|none|never)\b|"
    r"not\s+(?:yet|in full|fully|completely|really|at all|all)\b|"
    r"(?:it|that|this|he|she|they)\s+(?:\w+\s+not|\w+n['’]t)\W*$",
    _I,
)
"""A denial that leaves out what was asked."""
_NO_THING = re.compile(r"no\s+(\w+)", _I)
_CLAUSE = re.compile(r"[.!?;\n]+\s*|,\s+|\s(?:but|because|aber|mais|pero)\s", _I)
_DENIES = re.compile(
    r"\b(?:not|never|no|nobody|none|cannot|nicht|kein\w*|pas|non|no|não|niet|geen|inte|ikke|nie|не)\b|"
    r"n['’]t\b|\bn['’](?=\w)",
    _I,
)
_HEDGES = re.compile(r"\b(?:if|might|could|maybe|perhaps|doubt|probably|unsure|whether)\b", _I)
_SMALL = words_of(
    "does have could will would there that this with from still also right already very currently "
    "your been here then isn't doesn't won't hasn't"
)
"""Words that add nothing to a statement, of four letters and more."""
_ELLIPSIS = re.compile(
    r"\b(?:is|are|was|were|does|do|did|has|have|had|can|could|will|would)(n['’]t| not)?[.! ]*$", _I
)
"""A statement that leaves out what was asked: "It does." """


def says_yes(text: str, context: RequestContext) -> bool | None:
    """Whether a text says yes (True), no (False), or neither, or both (None)."""
    text = text.strip()
    yes, no = bool(_YES.search(text)), bool(_NO.search(text))
    if _BOTH.search(text) or _HEDGES.search(text) or text.endswith("?"):
        return None
    stated = says_predicate(text, context)
    if yes != no:
        return yes if stated in (None, yes) and not is_taken_back(text, context) else None
    if yes and no:
        return None
    return _by_repeating(text, context.request) if stated is None else stated


def is_taken_back(text: str, context: RequestContext) -> bool:
    """Whether a yes is followed by a denial of what was asked: "Yes, but nothing came".

    A denial of something else is none: "Yes, but no receipt was issued" to "Has it been paid?".
    """
    found = _TAKEN_BACK.search(text)
    if found is None:
        return False
    rest = re.split(r"[.!?;\n]", text[found.start("rest") :], maxsplit=1)[0].strip()
    if says_predicate(rest, context) is False or _BARE_DENIAL.match(rest):
        return True
    thing, question = _NO_THING.match(rest), question_in(context.request)
    if thing is None or question is None:
        return False
    predicate = [word for word, opens in zip(question.words, question.opens, strict=True) if opens]
    return any(thing[1].lower().startswith(_stem(word)) for word in predicate)


def _stem(word: str) -> str:
    """What a verb shares with its noun: "paid" and "payment", "delivered" and "delivery"."""
    bare = re.sub(r"(?<=a)id$", "y", word.lower())
    bare = re.sub(r"(?:ed|ing|s)$", "", bare)
    return bare if len(bare) > 2 else word.lower()


def _by_repeating(text: str, request: str) -> bool | None:
    """What the clauses say that repeat what was asked."""
    asked = without(words_of(request), _SMALL)
    if not asked:
        return None
    said = set[bool]()
    for clause in _CLAUSE.split(text):
        if left_out := _ELLIPSIS.search(clause):
            said.add(not left_out[1])
            continue
        words = without(words_of(clause), _SMALL)
        repeated = len(asked) - len(without(asked, words))
        if repeated >= 0.6 * len(asked) and not without(words, asked):
            said.add(not _DENIES.search(clause))
    return said.pop() if len(said) == 1 else None
