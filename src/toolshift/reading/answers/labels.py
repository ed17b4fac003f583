"""Whether an answer gives the expected value to another label or subject than the requested one.

"Net EUR 1,250.00, gross EUR 1,465.55" has the figure that was asked for, and calls it the net
amount. The labels are the names under which results show values of its kind, so they are no list
of words; and what the request names. Three signs, each in the words of the answer itself:

- the label of the value is one under which a result shows another value of its kind;
- the requested label stands in another clause, with something else, and the value has one too;
- another value of its kind has the requested subject, or noun, and this one has another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from toolshift.reading.answers.evidence import Shown, shown_in
from toolshift.reading.answers.stated import DENIES, alike
from toolshift.reading.quantity import RequestContext, is_other_quantity
from toolshift.reading.text import fold
from toolshift.reading.values import Value, value_of, values_in
from toolshift.reading.words import singular

_I = re.IGNORECASE
Span = tuple[int, int]
_REACH = 400
"""How far from a mention, in characters, other values and clauses are read."""
_BREAK = re.compile(
    r"[.!?;](?=\s|$)|\n|,(?=\s)|\s[-–—]\s|[()]|\s(?:and|but|while|whereas|so)\s", _I
)
_STOP = re.compile(r"[.!?;](?=\s|$)|\n|,(?=\s)|\s(?:and|but|while|whereas)\s", _I)
_WORD = re.compile(r"[^\W\d_]{2,}")
_BESIDE = re.compile(
    r"\b(?:with|without|including|excluding|incl|plus|minus|after|before|for|per|by|on|in|of|from)"
    r"\s+(?:the |an? |its |their |your )?$",
    _I,
)
"""What makes a name in front of a value something beside it: "with VAT it comes to 25"."""
_PRONOUN = re.compile(
    r"\b(?:it|its|he|his|him|she|her|they|their|them|this|that|these|those|there|then|which|who)\b|"
    r"\bit's\b",
    _I,
)
_VERB = re.compile(r"\b(?:is|are|was|were|has|have|had|will|does|do|did|goes|belongs)\b", _I)
_SAYS_LITTLE = (
    "the an is are was were be been has have had do does did will of on at in by for to from with "
    "and or as it its he she they this that there your our my me you we what which who whom whose "
    "when where how many much please currently now still also only yes no not so about eur usd gbp "
    "chf"
)
_SMALL = frozenset(_SAYS_LITTLE.split())
_RANGE = re.compile(r"\s*(?:-|–|—|to|until|till|through|thru)\s*(?:the )?", _I)
_HOW_MANY = re.compile(
    r"\bhow many ((?:[^\W\d_]+ ){1,3}?)(?:\([^)]*\) )?(?:is|are|was|were|do|does|did|can|could|"
    r"has|have|had|will|of|in|on)\b",
    _I,
)


class _Names(msgspec.Struct, frozen=True):
    """The words by which the results name values.

    Attributes:
        own: of the expected value, without those that name others too.
        asked: those of the request that name it.
        foreign: of other values of its kind, which neither the request nor its own names have.
    """

    own: frozenset[str]
    asked: frozenset[str]
    foreign: frozenset[str]


def is_of_another_label(
    text: str, span: Span, wanted: Value | None, said: str, context: RequestContext
) -> bool:
    """Whether a mention of the expected value goes by another name or subject than was asked for.

    What is expected is the value `wanted`, or where that is None the text `said`.
    """
    near = [value for value in _values(text) if abs(value.start - span[0]) < _REACH]
    if wanted is not None and wanted.kind == "number":
        numbers = [value for value in near if value.kind == "number"]
        if _counts_another(text, span, numbers, context):
            return True
    names = _names(wanted, said, context)
    if names is None:
        return False
    if wanted is not None:
        values = [value for value in near if value.kind == wanted.kind]
        if _has_foreign_name(text, span, values, names):
            return True
        if _has_foreign_subject(text, span, values, context):
            return True
    return _is_asked_elsewhere(text, span, names, context)


def is_end_of_asked_range(text: str, value: Value, other: Value, context: RequestContext) -> bool:
    """Whether two values are the ends of a range, of which the request asks for this one.

    The results show each end under a name of its own, and the request has the name of this one.
    """
    first, last = sorted((value, other), key=lambda either: either.start)
    if not _RANGE.fullmatch(text[first.end : last.start]):
        return False
    facts = shown_in(fold(context.shown))
    mine = {word for fact in facts if _is(fact, value) for word in _key_words(fact)}
    theirs = {word for fact in facts if _is(fact, other) for word in _key_words(fact)}
    asked = {singular(word) for word in _content(context.request)}
    return bool(theirs) and bool((mine - theirs) & asked)


def _is(fact: Shown, value: Value) -> bool:
    return any(value.same(other) for other in value_of(fact.text))


def _key_words(fact: Shown) -> list[str]:
    return [singular(word) for word in _WORD.findall(fact.key.replace("_", " "))]


def _content(text: str) -> list[str]:
    """The telling words of a text."""
    words = (word.lower() for word in _WORD.findall(text.replace("_", " ")))
    return [word for word in words if word not in _SMALL]


def _has(words: Iterator[str] | list[str], others: frozenset[str] | set[str]) -> bool:
    """Whether two sets share a word, in whatever ending of it."""
    return any(singular(one) == other or alike(one, other) for one in words for other in others)


@lru_cache(maxsize=64)
def _values(text: str) -> tuple[Value, ...]:
    """The values of an answer; kept, for each mention asks again."""
    return tuple(values_in(text))


@lru_cache(maxsize=256)
def _names(wanted: Value | None, said: str, context: RequestContext) -> _Names | None:
    """How the results name the expected value and others of its kind; None where they do not."""
    facts = shown_in(fold(context.shown))
    folded = said.casefold()
    mine, others = list[Shown](), list[Shown]()
    for fact in facts:
        values = value_of(fact.text)
        if wanted is None:
            same, comparable = fact.text.casefold() == folded, not values
        else:
            same = any(wanted.same(value) for value in values)
            comparable = any(value.kind == wanted.kind for value in values)
        if same:
            mine.append(fact)
        elif comparable:
            others.append(fact)
    if not mine:
        return None
    own = {word for fact in mine for word in _key_words(fact)}
    theirs = {word for fact in others for word in _key_words(fact)}
    request = [singular(word) for word in _content(context.request)]
    telling = {word for word in own if not _has([word], theirs)}
    asked = {word for word in request if _has([word], telling or own)}
    foreign = {word for word in theirs if not _has([word], own) and not _has([word], {*request})}
    return _Names(frozenset(telling or own), frozenset(asked), frozenset(foreign - _SMALL))


def _segment(text: str, span: Span, values: list[Value]) -> Span:
    """What belongs to a mention: up to the next value of its kind, and the next break."""
    least, most = max(0, span[0] - _REACH), min(len(text), span[1] + _REACH)
    breaks = [match.end() for match in _BREAK.finditer(text, least, span[0])]
    start = max(breaks, default=least)
    closing = _BREAK.search(text, span[1], most)
    end = closing.start() if closing else most
    start = max([start, *(v.end for v in values if v.end <= span[0])])
    return start, min([end, *(v.start for v in values if v.start >= span[1])])


def _has_foreign_name(text: str, span: Span, values: list[Value], names: _Names) -> bool:
    """Whether the name of a mention is one of another value of its kind."""
    start, end = _segment(text, span, values)
    before = text[start : span[0]]
    lead = [match for match in _WORD.finditer(before) if match[0].lower() not in _SMALL]
    behind = _content(text[span[1] : end])[:1]
    around = [match[0] for match in lead] or behind
    if _has(around, names.own | names.asked) or _has(behind, names.own | names.asked):
        return False
    if not lead:
        return _has(behind, names.foreign) and not text[span[1] : end].lstrip().startswith("(")
    foreign = [match for match in lead if _has([match[0]], names.foreign)]
    return any(not _BESIDE.search(before[: match.start()]) for match in foreign)


def _has_foreign_subject(
    text: str, span: Span, values: list[Value], context: RequestContext
) -> bool:
    """Whether a mention is said of what the request does not name, and a rival of what it does.

    The rival has the same unit: "The hammer weighs 14.5 kg, the drill 7.2 kg."
    """
    request = {singular(word) for word in _content(context.request)}
    mine, unit = _lead(text, span, values), _unit_behind(text, span)
    if not unit or not _content(mine) or _PRONOUN.search(mine) or _has(_content(mine), request):
        return False
    for value in values:
        other = value.start, value.end
        lead = _content(_lead(text, other, values))
        is_rival = other != span and lead and _unit_behind(text, other) == unit
        if is_rival and all(_has([word], request) for word in lead):
            return True
    return False


def _lead(text: str, span: Span, values: list[Value]) -> str:
    return text[_segment(text, span, values)[0] : span[0]]


def _unit_behind(text: str, span: Span) -> str:
    """The word in or behind a value that says what it measures; "" for none."""
    found = re.search(r"[^\W\d_]+$", text[span[0] : span[1]]) or re.match(
        r"\s?([^\W\d_]+)", text[span[1] :]
    )
    word = found[0].strip().lower() if found else ""
    return "" if word in _SMALL else singular(word)


def _clauses(text: str) -> Iterator[Span]:
    start = 0
    for stop in _STOP.finditer(text):
        if stop[0] != "?":
            yield start, stop.start()
        start = stop.end()
    yield start, len(text)


def _is_asked_elsewhere(text: str, span: Span, names: _Names, context: RequestContext) -> bool:
    """Whether another clause has the requested name, with another subject or value.

    "Lena is the customer; Omar is assigned." says of Omar what was asked, and of Lena another
    thing. A clause with a pronoun goes on with what was said before.
    """
    if not names.asked:
        return False
    here = next(((a, b) for a, b in _clauses(text) if a <= span[0] and span[1] <= b), None)
    if here is None:
        return False
    own = f"{text[here[0] : span[0]]} {text[span[1] : here[1]]}"
    request = {singular(word) for word in _content(context.request)}
    new = [word for word in _content(own) if not _has([word], request)]
    if not new or _PRONOUN.search(own) or _has(_content(own), names.own | names.asked):
        return False
    for start, end in _clauses(text):
        clause = text[start:end]
        told = _content(clause)
        if (start, end) == here or _PRONOUN.search(clause) or not _VERB.search(clause):
            continue
        if DENIES.search(clause):
            continue
        if text[span[0] : span[1]].casefold() in clause.casefold():
            continue
        if _has(told, names.asked) and text[end : end + 1] not in ("?", ":"):
            return True
    return False


def _counts_another(text: str, span: Span, numbers: list[Value], context: RequestContext) -> bool:
    """Whether a number has another unit than the request, or a rival has the requested noun."""
    counted = _HOW_MANY.search(context.request)
    value = next((v for v in numbers if (v.start, v.end) == span), None)
    if counted and value and is_other_quantity(text, value, RequestContext(counted[1])):
        return True  # "9 days", where grinders are counted
    asked = {singular(word) for word in _content(counted[1])} if counted else set[str]()
    if not asked or _noun_is(text, span[1], asked) is not False:
        return False
    others = [v for v in numbers if (v.start, v.end) != span]
    request = {singular(word) for word in _content(context.request)}
    return any(
        _noun_is(text, other.end, asked)
        and all(
            _has([word], request)
            for word in _content(_STOP.split(text[other.end : other.end + _REACH])[0])
        )
        for other in others
    )


def _noun_is(text: str, end: int, asked: set[str]) -> bool | None:
    """Whether the noun behind a number is the requested one; None where none stands there."""
    behind = re.match(r"(?:\s[^\W\d_]+){1,3}", text[end : end + 60])
    words = _content(behind[0]) if behind else []
    if not words:
        return None
    if _has(words, asked):
        return all(_has([word], asked) for word in words[: len(asked)])
    return False if words[0].endswith("s") or words[-1].endswith("s") else None
