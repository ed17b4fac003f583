"""What tools say about their effect, and whether two of them say something different.

Texts are compared by the words that only one of them has. Two texts **contradict** each other where
such words are opposites ("open" and "close", "lock" and "unlock"), or one denies what the other
says. They are **substituted** where both have words of their own that tell something: "logs of the
dev servers" and "logs of the prod servers" share most of their words.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace

from toolshift.interop.tools import Source
from toolshift.reading.words import NEGATIVE, OPPOSITES
from toolshift.shifts.release.match import said_effect, words

_OPPOSITES: dict[str, set[str]] = defaultdict(set)
for _one, _other in OPPOSITES:
    _OPPOSITES[_one].add(_other)
    _OPPOSITES[_other].add(_one)
_PREFIXES = ("un", "de", "dis", "in", "non", "im", "anti")
_EXCLUDES = frozenset(("no", "non", "except", "excluding"))
_NEGATIONS = _EXCLUDES | {*NEGATIVE} - {"neither", "nothing", "nobody"}
"""Words that turn what a tool says of its effect; "returns nothing" turns nothing."""
_DENIALS = _NEGATIONS - {"nor", "cannot"} | {"isn", "don", "doesn", "t"}
"""The same for words that are split at apostrophes: "don't" is "don" and "t"."""
_EFFECTS = tuple(
    frozenset(words(each))
    for each in (
        "delete remove destroy erase purge wipe drop trash expunge",
        "archive keep retain store save hide hold authorize authorise suspend freeze",
        "try preview validate simulate check verify estimate quote draft plan test stage rehearse",
        "send post publish submit deliver mail dispatch broadcast deploy apply execute run",
        "capture charge settle collect",
    )
)
"""Verbs by effect: delete, keep, only try, send out, or charge. Two of
one set may say the same; two of different sets do not."""
_SCOPE = frozenset(
    words(
        "all every bulk batch hard soft force forced permanent permanently recursive dry "
        "simulate simulated mock sandbox dev stage staging prod production live eu us"
    )
)
"""Words of a name that say how far a call reaches, how thorough it is or where it acts."""

_ENDINGS = ("s", "es", "d", "ed", "r", "er", "ing")
SHORTEST = 4
"""The least letters of a word that may be a form of another one."""
_UNITS = frozenset(
    words(
        "eur usd gbp jpy chf cny cents cent euro euros dollar dollars km m cm mm metre metres "
        "meter meters c f "
        "mile miles feet minute minutes min second seconds sec s ms millisecond milliseconds hour "
        "hours "
        "day days week weeks month months kg g gram grams kilogram kilograms mg mcg microgram "
        "micrograms milligram milligrams lb pound pounds ounce ounces percent fraction celsius "
        "fahrenheit kelvin bytes kb mb gb"
    )
)
_FILLING = frozenset(
    words(
        "a an the of one for to in on by with and or at as is are it its this that these those "
        "from "
        "given some any be which will can may using use returns return"
    )
)
_SIDE_EFFECT = re.compile(
    r"(?<![a-z])(remov|delet|eras|wip|purg|consum|increment|decrement|dispens|pop(?![a-z])|"
    r"tak(e|es|ing) (it|them|one)(?![a-z])|check[s_ -]*out|one[- ]?time|single[- ]use|each call|"
    r"next (free )?number|"
    r"next[_ ]number|reserv(es|ing|ed)|charg|issu(e|es|ing) a|generat|"
    r"creat|updat|writ|sav|send|publish|insert|overwrit|reset|mark(s|ed)? (it|them|as)|then )",
    re.IGNORECASE,
)


def only_reads(source: Source) -> bool:
    """Whether a tool is read-only by its hints, or by its name if nothing contradicts it."""
    effect, hinted = said_effect(source)
    if effect != "read" or hinted:
        return effect == "read"
    spoken = f"{' '.join(words(source.tool.name))} {source.tool.description}"
    return _effect_told(source) != "write" and not _SIDE_EFFECT.search(spoken)


def _effect_told(source: Source) -> str | None:
    """The effect by the description alone."""
    return said_effect(replace(source, raw={}, tool=source.tool.with_(name="")))[0]


def opposed(was: Source, now: Source) -> bool:
    """Whether a tool does something else than another one, or may do more harm."""
    first, second = said_effect(was)[0], said_effect(now)[0]
    was_said, now_says = _effect_told(was), _effect_told(now)
    if {"read", "write"} <= {first, second} or {"read", "write"} <= {was_said, now_says}:
        return True
    if _destroys(was) is False and _destroys(now) is True:
        return True
    mine, theirs = (f"{source.tool.name} {source.tool.description}" for source in (was, now))
    if contradict(mine, theirs) or contradict(was.tool.name, now.tool.name):
        return True
    reads = only_reads(was) and only_reads(now)
    return not reads and names_another_effect(was.tool.name, now.tool.name)


def _destroys(source: Source) -> bool | None:
    """Whether a tool says that it is destructive; None if it does not say."""
    hints = source.raw.get("annotations")
    hint = hints.get("destructiveHint") if isinstance(hints, Mapping) else None
    return hint if isinstance(hint, bool) else None


def names_another_effect(one: str, other: str) -> bool:
    """Whether two names of tools speak of different effects, by the words that only one has."""
    mine, theirs = _own_words(one, other)
    does, did = ({n for n, verbs in enumerate(_EFFECTS) if verbs & own} for own in (mine, theirs))
    if does and did and not does & did:
        return True
    if not {*words(one)} & {*words(other)}:
        return False
    grows = not (mine and theirs)
    return bool((mine | theirs) & _SCOPE) or (grows and bool(does | did))


def contradict(one: str, other: str) -> bool:
    """Whether words that only one of two texts has are opposites, or deny what the other says."""
    mine, theirs = _own_words(one, other)
    if (mine & _DENIALS) != (theirs & _DENIALS):
        return True
    my_words, their_words = (_with_stems(words(text)) for text in (one, other))
    return _opposite(_with_stems(mine) - their_words, _with_stems(theirs) - my_words)


def differently_meant(one: str, other: str) -> bool:
    """Whether two texts about a value are of opposite things, or in other units."""
    mine, theirs = _own_words(one, other)
    return bool((mine | theirs) & _UNITS) or contradict(one, other)


def in_other_units(one: str, other: str) -> bool:
    """Whether two names each end in a unit, and these are not the same: `heat_c` and `heat_f`."""
    last = [each[-1:] for each in (words(one), words(other))]
    return last[0] != last[1] and all(_UNITS.issuperset(each) and each for each in last)


def substituted(one: str, other: str) -> bool:
    """Whether each of two texts has content words that the other lacks."""
    mine, theirs = _own_words(one, other)
    return bool(mine - _FILLING) and bool(theirs - _FILLING)


def _own_words(one: str, other: str) -> tuple[set[str], set[str]]:
    mine, theirs = {*words(one)}, {*words(other)}
    return mine - theirs, theirs - mine


def _opposite(mine: Set[str], theirs: Set[str]) -> bool:
    """Whether a word of one set is the opposite of one of the other, or denies it ("unlock")."""
    return (
        any(_OPPOSITES[word] & theirs for word in mine if word in _OPPOSITES)
        or _denied(mine, theirs)
        or _denied(theirs, mine)
    )


def _denied(some: Set[str], others: Set[str]) -> bool:
    return any(prefix + word in others for word in some if len(word) > 2 for prefix in _PREFIXES)


def _with_stems(some: Iterable[str]) -> set[str]:
    """Words, and what they may be forms of: "enable" beside "enabled"."""
    return {
        word.removesuffix(ending)
        for word in some
        for ending in ("", *(_ENDINGS if len(word) > SHORTEST else ()))
    }
