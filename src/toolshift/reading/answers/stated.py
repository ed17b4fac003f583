"""How a mention of a value stands in a text: stated plainly, denied plainly, or in doubt.

Only words of closed classes are looked for (negation, alternatives, conditions, bounds), and they
never make an answer right: what they touch is denied or in doubt.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import Literal

import msgspec

from toolshift.reading.text import fold

Standing = Literal["plain", "denied", "doubtful"]

_I = re.IGNORECASE
_END = re.compile(
    r"(?<=[.!?])[\"')*]*(?=\s|$)|[;\n。、，！？]|,(?=\s)|"
    r"\s(?=(?:and|but|while|whereas|though|so|with|against|und|aber|sondern|et|mais|y|pero|e|ma|mas|"
    r"maar|och|men|ale|и|а|но)\s)",
    _I,
)
"""Where one clause ends and another begins."""
DENIES = re.compile(
    r"\b(?:not|never|no|neither|nor|without|cannot|instead|rather|nicht|kein\w*|statt|pas|jamais|"
    r"non|ni|nunca|n[aã]o|niet|geen|inte|ikke|nie|не|нет|değil)\b(?!-)|n['’]t\b|\bau lieu\b",
    _I,
)
_DENIES_BEHIND = re.compile(
    r"\s*(?:\w+\s+){0,1}(?:nicht|niet|inte|ikke|değil)\b|\s*(?:では(?:ありません|ない)|"
    r"じゃ(?:ありません|ない)|(?:이|가)?\s?아닙|不是)",
    _I,
)
_DOUBTS = re.compile(
    r"\b(?:or|either|if|whether|maybe|perhaps|probably|possibly|might|could|unsure|doubt|guess|"
    r"about|around|approximately|roughly|nearly|almost|between|least|most|more|less|fewer|over|"
    r"under|before|after|until|till|above|below|later|earlier|past|one of|up to|may (?:be|have)|"
    r"will be|"
    r"must be(?! (?:\w{2,}(?:ed|en|id|ght)|back) (?:by|on|at|within)\b)|yet to|"
    r"supposed|used to|former\w*|previous\w*|prior|originally|outdated|"
    r"replaced|"
    r"oder|vielleicht|ob|falls|etwa|zirka|mindestens|höchstens|zwischen|vor|nach|ou|peut-être|"
    r"environ|avant|après|moins|quizás?|tal vez|antes|después|menos|más|forse|prima|dopo|circa|"
    r"meno|più|oppure|talvez|mais de|até|misschien|ongeveer|kanske|eller|może|lub|około|"
    r"или|может|около|veya|belki)\b|(?<=\s)[oó](?=\s)|[<>≤≥~±]\s?$|^\s?\+|または|たぶん",
    _I,
)
_SHORT_CLAUSE = re.compile(r",([^,.!?;\n]{1,30})(?=[.!?]|\n|$)")
_NO_LATER = re.compile(r"\bno later than\b", _I)
_LABELS = re.compile(r"\s*[\"']?\s*:[ \t]*(?!true\b|yes\b)[^\s]", _I)
"""What makes a name of the words before it: "shipped: false"."""
_INSTEAD = re.compile(r"\b(?:instead|rather than|statt|anstatt)\b|\bau lieu\b", _I)
"""What sets aside only the thing behind it."""
_FORMER = re.compile(
    r"\b(?:used to|former\w*|previous\w*|was|were|had|before|until|no longer|früher|vorher|bisher|"
    r"vorjahr|était|avant|ancien\w*|era|antes|anterior\w*|prima|precedente|voorheen)\b",
    _I,
)


class Clause(msgspec.Struct, frozen=True):
    """The clause around a span of a text.

    Attributes:
        before: what stands before the span, back to the clause's begin.
        after: what stands behind it, up to the clause's end.
        asks: whether the clause ends as a question.
        behind: a short clause that follows, as in "4, maybe".
    """

    before: str
    after: str
    asks: bool
    behind: str


@lru_cache(maxsize=64)
def _bounds(text: str) -> tuple[list[int], list[int]]:
    """Where what ends the clauses of a text begins, and where it ends."""
    found = [match.span() for match in _END.finditer(text)]
    return [begin for begin, _ in found], [end for _, end in found]


@lru_cache(maxsize=64)
def _without_bounds(text: str) -> str:
    """A text in which "no later than" is "by", at the same places."""
    return _NO_LATER.sub(lambda match: "by".ljust(len(match[0])), text)


def clause_of(text: str, start: int, end: int) -> Clause:
    """The clause that a span stands in."""
    begins, ends = _bounds(text)
    before, behind_it = bisect_right(ends, start), bisect_left(begins, end)
    first = ends[before - 1] if before else 0
    last = begins[behind_it] if behind_it < len(begins) else len(text)
    asks = text[first:last].rstrip(" \"')*").endswith(("?", "？")) or text[last : last + 1] == "？"
    behind = _SHORT_CLAUSE.match(text, last)
    short = behind is not None and len(behind[1].split()) <= 3
    return Clause(text[first:start], text[end:last], asks, behind[1] if behind and short else "")


def standing(text: str, start: int, end: int) -> Standing:
    """Whether the words around a mention state it, deny it, or leave it in doubt."""
    text = _without_bounds(text)
    clause = clause_of(text, start, end)
    if _LABELS.match(text, end):
        return "doubtful"
    if clause.asks or any(map(_DOUBTS.search, (clause.before, clause.after, clause.behind))):
        return "doubtful"
    denial = next(iter([*DENIES.finditer(clause.before)][-1:]), None)
    if denial:
        between = clause.before[denial.end() :]
        near = len(between.split()) <= 3
        if not re.search(r"[:(]", between):
            # A bare "no" negates only the word behind it, and in Portuguese it is "in the".
            own = denial[0].casefold() != "no" or not between.strip()
            return "denied" if near and own else "doubtful"
    if _DENIES_BEHIND.match(clause.after):
        return "denied"
    return "doubtful" if DENIES.search(_INSTEAD.split(clause.after)[0]) else "plain"


def is_set_aside(text: str, start: int, end: int) -> bool:
    """Whether a mention is denied, or said of an earlier time: it is no rival."""
    clause = clause_of(text, start, end)
    return bool(
        standing(text, start, end) == "denied"
        or DENIES.search(clause.before[-24:])
        or _FORMER.search(clause.before)
        or _FORMER.match(clause.after.lstrip())
    )


def is_former(text: str, start: int, end: int) -> bool:
    """Whether the clause of a mention speaks of an earlier time."""
    clause = clause_of(text, start, end)
    return bool(_FORMER.search(clause.before))


def words_of(text: str, shortest: int = 4) -> frozenset[str]:
    """The words of a text for comparing, without case, accents, figures and short words."""
    bare = unicodedata.normalize("NFKD", fold(text).casefold())
    plain = "".join(sign for sign in bare if not unicodedata.combining(sign))
    words = re.findall(rf"[^\W\d_]{{{shortest},}}|[^\W\d_a-z]{{2,}}", plain)
    return frozenset(words) | frozenset(
        part for word in words if not word.isascii() for part in _pairs(word)
    )


def _pairs(word: str) -> list[str]:
    """Pairs of signs, of a script that writes no spaces."""
    if not re.search(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]", word):
        return []
    return [word[n : n + 2] for n in range(len(word) - 1)]


def shared(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two sets share a word, in whatever ending of it."""
    return any(alike(one, other) for one in words for other in others)


def without(words: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    """The words that have no like among others."""
    return frozenset(word for word in words if not any(alike(word, other) for other in others))


def alike(one: str, other: str) -> bool:
    """Whether two words are the same but for their endings."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    size = max(4, round(0.7 * len(short)))
    return len(short) >= 4 and short[:size] == long[:size]
