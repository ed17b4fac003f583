"""Which of some things became which: the same name first, then likeness.

The likeness of two tools, from 0 to 1, is the weighted mean of

    names          0.4   the best of shared words and shared runs of letters
    descriptions   0.4   shared words
    parameters     0.2   shared names and types

where a part in which both are empty is left out. A word of a name counts the less the more tools
have it, for a server's own name stands before all of its tools. Of all pairings the one with the
greatest sum is taken. A pair at `SURE` or above, and clear of the next best by `CLEAR`, is taken as
it is; one below `POSSIBLE` is no pair; what lies between is asked.

A tool that reads has never become one that writes, nor the other way, where both say so
(`readOnlyHint`, `destructiveHint`). Where only their verbs say so it is asked, and never guessed.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy  # type: ignore[import-untyped, unused-ignore]  # parts load at their first use

from toolshift.core.tool import Effect, Param, Tool
from toolshift.core.values import as_mapping
from toolshift.interop.parts import kinds_of
from toolshift.interop.tools import Source
from toolshift.reading.words import singular

SURE = 0.65
CLEAR = 0.1
POSSIBLE = 0.35
CLOSE_PARAMS = 0.62
"""A parameter is likely from here on; how often that is right stands in `studies/real_drift`."""
BEGINNING = 4
"""Letters by which two words begin alike."""
LONGEST_NAME = 200
"""Letters of a name whose likeness is looked at: the comparison is quadratic."""


@dataclass(frozen=True)
class Guess:
    """The likeliest successor of something, and how sure that is."""

    old: str
    new: str
    likeness: float
    sure: bool


def words(text: str) -> list[str]:
    """The words of a name or a sentence, in lower case; `getUser_id` has three."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return re.findall(r"[a-z0-9]+", spaced.lower())


# Every tool that has gone is held against every one that has come: 176,400 pairs of 420 and 420.
# What is of one of the two alone is worked out once.


@lru_cache(maxsize=8192)
def known_words(text: str) -> tuple[str, ...]:
    """The words of a name or a description, kept."""
    return tuple(words(text))


@lru_cache(maxsize=8192)
def _word_set(text: str) -> frozenset[str]:
    return frozenset(known_words(text))


@lru_cache(maxsize=8192)
def _name_words(name: str) -> frozenset[str]:
    """The words of a name in their singular: `list_invoices` and `invoice_list` are the same."""
    return frozenset(map(singular, known_words(name)))


@lru_cache(maxsize=8192)
def _signature(tool: Tool) -> frozenset[tuple[str, str]]:
    """The names and types of the parameters of a tool."""
    return frozenset((p.name, str(p.schema.get("type"))) for p in tool.params)


def weights_of(names: Iterable[str]) -> dict[str, float]:
    """What each word of some names is worth: inverse document frequency, log(1 + n / df)."""
    each = [_name_words(name) for name in names]
    counts = Counter(word for some in each for word in some)
    return {word: math.log(1 + len(each) / count) for word, count in counts.items()}


def alike_names(one: str, other: str, weights: Mapping[str, float] | None = None) -> float:
    """The likeness of two names; a word that is not in `weights` counts 1."""
    first, second = known_words(one), known_words(other)
    if not (one.isascii() and other.isascii()):  # words are read of ASCII alone
        written, others = (_letters(each)[:LONGEST_NAME] for each in (one, other))
        return 1.0 if written == others else 0.9 * alike_letters(written, others)
    if first == second:
        return 1.0
    # In the same order another number says another thing: `get_order` and `get_orders`.
    as_one = [*map(singular, first)] != [*map(singular, second)]
    read = _name_words if as_one else _word_set
    mine, theirs = read(one), read(other)
    shared = _shared(mine, theirs, weights or {})
    written, others = ("".join(each)[:LONGEST_NAME] for each in (first, second))
    # Letters of words that they share count by what the words are worth, not by their length.
    worth = 1.0 if weights is None or not mine & theirs else _worth_of_shared(mine, theirs, weights)
    letters = alike_letters(written, others)
    return max(shared, letters * worth * 0.9)


def _letters(name: str) -> str:
    return "".join(sign for sign in name.casefold() if sign.isalnum())


def alike_letters(one: str, other: str) -> float:
    """The share of letters in common runs, as `difflib.SequenceMatcher.ratio` without junk has it.

    The longest common run first, then those left and right of it. Written out here because the
    substring search of `str` finds a run in a third of the time.
    """
    total = len(one) + len(other)
    return 2.0 * _in_common_runs(one, other) / total if total else 1.0


@lru_cache(maxsize=1 << 16)  # the names of a server share words, so pieces of them come again
def _in_common_runs(one: str, other: str) -> int:
    """How many letters are in common runs: of the longest ones the first in both counts."""
    letters = len(one)
    if letters < 2 or len(other) < 2:
        return int(bool(one and other) and (one in other or other in one))
    start = end = 0
    for place in range(letters):
        reach = place + end - start + 1
        if reach > letters:
            break
        while reach <= letters and one[place:reach] in other:
            start, end = place, reach
            reach += 1
    length = end - start
    if not length:
        return 0
    there = other.index(one[start:end])
    before = _in_common_runs(one[:start], other[:there])
    return length + before + _in_common_runs(one[end:], other[there + length :])


def _worth_of_shared(
    one: frozenset[str], other: frozenset[str], weights: Mapping[str, float]
) -> float:
    """From 0.5 to 1: how rare the words are that two names share, beside the rarest of them."""
    worth = [weights.get(word, 1.0) for word in one | other]
    shared = [weights.get(word, 1.0) for word in one & other]
    return 0.5 + 0.5 * max(shared) / max(worth)


def alike_texts(one: str, other: str) -> float:
    """The likeness of two descriptions."""
    return 1.0 if one == other else _shared(_word_set(one), _word_set(other), {})


def _shared(one: frozenset[str], other: frozenset[str], weights: Mapping[str, float]) -> float:
    """Dice's coefficient of two sets of words, weighted."""
    if not weights:
        total, shared = float(len(one) + len(other)), float(len(one & other))
    else:
        total = sum(weights.get(word, 1.0) for each in (one, other) for word in each)
        shared = sum(weights.get(word, 1.0) for word in one & other)
    return 2 * shared / total if total else 0.0


_READING = frozenset(
    words(
        "browse check count describe fetch find get inspect list look lookup query read resolve "
        "retrieve scan search show view"
    )
)
_WRITING = frozenset(
    words(
        "add append apply archive book buy cancel clear close create delete deploy drop edit "
        "insert merge modify move order patch pay post publish purge put register remove rename "
        "replace restore revoke save send set store submit transfer uninstall update upload "
        "upsert write"
    )
)


@lru_cache(maxsize=4096)
def said_effect(source: Source) -> tuple[Effect | None, bool]:
    """Whether a tool reads or writes, as far as it says so."""
    hints = source.raw.get("annotations")
    hints = as_mapping(hints)
    if hints.get("readOnlyHint") is True:
        return "read", True
    if hints.get("readOnlyHint") is False or hints.get("destructiveHint") is True:
        return "write", True
    named = {verb(word) for word in words(source.tool.name)} - {None}
    if len(named) == 1:
        return named.pop(), False
    first = words(source.tool.description)[:1]
    return (verb(first[0]) if first and not named else None), False


def verb(word: str) -> Effect | None:
    """Whether a word is a verb of reading or of writing; None where it is neither."""
    bare = {word, word.removesuffix("s"), word.removesuffix("es")}
    return "read" if bare & _READING else "write" if bare & _WRITING else None


def clashing(one: Source, other: Source) -> bool:
    """Whether one of two tools reads and the other writes, for all that is said."""
    (first, hinted), (second, told) = said_effect(one), said_effect(other)
    if first is None or second is None or first == second:
        return False
    both = _word_set(one.tool.name) & _word_set(other.tool.name)
    return (hinted and told) or not any(map(verb, both))  # the same verb outweighs a lone hint


def alike_tools(source: Source, target: Source, weights: Mapping[str, float]) -> float:
    """The likeness of two tools; see the module. 0 where their hints say that one writes."""
    if clashing(source, target) and said_effect(source)[1] and said_effect(target)[1]:
        return 0.0
    one, other = source.tool, target.tool
    parts = [(0.4, alike_names(one.name, other.name, weights))]
    if one.description or other.description:
        parts.append((0.4, alike_texts(one.description, other.description)))
    if one.params or other.params:
        mine, theirs = _signature(one), _signature(other)
        parts.append((0.2, 2 * len(mine & theirs) / (len(mine) + len(theirs))))
    return sum(w * value for w, value in parts) / sum(w for w, _ in parts)


def alike_params(one: Param, other: Param) -> float:
    """The likeness of two parameters: names 0.5, texts 0.3, types 0.2, whether required 0.05.

    Where neither has a text, that counts half and is nothing in common, and letters that begin no
    word make a name no more than possible: `page` and `package` share letters and a type, as most
    parameters do.
    """
    told, said = (str(p.schema.get("description") or "") for p in (one, other))
    names, has_text = alike_names(one.name, other.name), bool(told or said)
    parts = [
        (0.5, names if has_text or _begin_alike(one.name, other.name) else min(names, POSSIBLE)),
        (0.3, alike_texts(told, said)) if has_text else (0.15, 0.0),
        (0.2, float(one.schema.get("type") == other.schema.get("type"))),
        (0.05, float(one.required == other.required)),
    ]
    return sum(w * value for w, value in parts) / sum(w for w, _ in parts)


def _begin_alike(one: str, other: str) -> bool:
    """Whether two names share a word, or how one begins: `cust_id` and `customer`."""
    if not (one.isascii() and other.isascii()):  # words are read of ASCII alone
        return True
    mine, theirs = _name_words(one), _name_words(other)
    begins = {word[:BEGINNING] for word in mine if len(word) >= BEGINNING}
    return bool(mine & theirs or begins & {word[:BEGINNING] for word in theirs})


def may_be_turned(one: Param, other: Param) -> bool:
    """Whether a boolean may say the reverse of another: nothing but the same text tells it.

    `enabled` and `disabled`, `include_archived` and `exclude_archived` are as alike as a name and
    its new spelling.
    """
    kinds = [kinds_of(param.schema) - {"null"} for param in (one, other)]
    texts = [words(str(param.schema.get("description") or "")) for param in (one, other)]
    names = [[word for word in known_words(param.name) if word != "is"] for param in (one, other)]
    if kinds != [{"boolean"}] * 2 or (texts[0] and texts[0] == texts[1]):
        return False
    return names[0] != names[1]


def told_apart(one: Param, other: Param, rivals: Iterable[Param]) -> bool:
    """Whether more than a text that a rival has as well says that a parameter became another.

    `source` and `target` are both "Name of the environment.": only names tell what became what.
    """
    said = {_text_and_kinds(each) for each in (one, other)}
    shared = any(text and (text, kinds) in said for text, kinds in map(_text_and_kinds, rivals))
    return not shared or alike_names(one.name, other.name) >= CLOSE_PARAMS


def _text_and_kinds(param: Param) -> tuple[str, frozenset[str]]:
    return str(param.schema.get("description") or ""), frozenset(kinds_of(param.schema))


def pair(
    olds: Mapping[str, Any],
    news: Mapping[str, Any],
    alike: Callable[[Any, Any], float],
    possible: float = POSSIBLE,
) -> list[Guess]:
    """Pairs what has gone with what has come, where they are alike at all.

    Both hold only what is not settled by its name, by name. The same whatever their order.
    """
    if not olds or not news:
        return []
    rows, columns = sorted(olds), sorted(news)
    likeness = np.array([[alike(olds[old], news[new]) for new in columns] for old in rows])
    found = []
    for row, column in zip(*scipy.optimize.linear_sum_assignment(-likeness), strict=True):
        best = float(likeness[row, column])
        if best < possible:
            continue
        rivals = [*np.delete(likeness[row], column), *np.delete(likeness[:, column], row)]
        clear = best - max(map(float, rivals), default=0.0) >= CLEAR
        found.append(Guess(rows[row], columns[column], round(best, 3), best >= SURE and clear))
    return found
