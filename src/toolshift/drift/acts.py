"""What is done, by the verbs that names and texts say: which two of them are one act.

Two acts are the same by what is known: the same word in another form, two verbs of reading, or two
that mean the same whatever they are about (`shifts.described_names`). A word that nothing is known
of may be any act.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from toolshift.core.tool import Effect
from toolshift.drift.effects import contradict, names_another_effect
from toolshift.drift.tokens import tokens
from toolshift.interop.tools import Source
from toolshift.reading.words import singular
from toolshift.shifts.described_names import SYNONYMS
from toolshift.shifts.release.match import said_effect, verb, words

READS = "read"
"""The act of all verbs of reading."""
THINGS = frozenset(
    words(
        "book check count file list move order patch place post query scan search show store "
        "transfer update upload view"
    )
)
"""Known verbs that are things as often: to order, and an order."""
_BEFORE_THINGS = frozenset(words("a an the all any each every one this that these those"))
"""What tells that the word before it, which may be a thing, is a verb."""
_LINKS = frozenset(words("a an the of for to in on at by with and or as is"))
"""Words of a name that say no act."""
_LABEL = re.compile(r"^\W*([\w ]{1,40})[|:]\s")
"""What stands before all descriptions of a server: "Notion | Query a database"."""
_ACTS = {word: head for head, words in SYNONYMS.items() for word in words}


@lru_cache(maxsize=8192)
def act_of(word: str) -> str:
    """The act that a word says, where it is a known verb; its plain form otherwise."""
    plain = plain_form(word)
    head = _ACTS.get(plain, plain)
    return READS if "read" in (verb(plain), verb(head)) else head


def plain_form(word: str) -> str:
    """A noun in its singular, or a verb as it is called by: "deletes" is "delete"."""
    if len(word) <= 3:
        return word
    if word.endswith(("ches", "shes", "sses", "xes", "zzes")):
        return word[:-2]
    return word if word.endswith(("ss", "us", "is")) else singular(word)


def effect_of(word: str) -> Effect | None:
    """Whether a word in any of its forms is a verb of reading or of writing; None for others."""
    forms = {word, plain_form(word)}
    for ending in ("ed", "ing"):
        bare = word.removesuffix(ending)
        if bare != word and len(bare) > 2:
            forms |= {bare, f"{bare}e", bare[:-1]}
    found = {verb(act_of(form)) for form in forms}
    return "write" if "write" in found else "read" if "read" in found else None


def begins_as_verb(text: Sequence[str]) -> bool:
    """Whether the first of the words of a sentence is its verb, and no thing."""
    if not text or plain_form(text[0]) not in THINGS:
        return bool(text)
    return text[0].endswith("s") or not _BEFORE_THINGS.isdisjoint(text[1:2])


def same_act(was: Source, now: Source) -> bool:
    """Whether two tools do the same for all that their names say.

    What differs between the names must be no act: things behind a verb that both have, or verbs of
    one act. Where the verbs are others, both texts must begin with one of them. The rest of the
    likeness, such as a text and parameters, is what a reversed act shares as well.
    """
    if all(said_effect(source) == ("read", True) for source in (was, now)):
        return True
    mine, theirs = (_content(source.tool.name) for source in (was, now))
    differ = {*mine} ^ {*theirs}
    if contradict(was.tool.name, now.tool.name):
        return False
    if all(act_of(word) == READS for word in differ):
        return True
    said = _said_first(was, now)
    if {effect_of(one) for one in said} == {"read", "write"}:
        return False
    first, second = _leads(mine, theirs)
    reads = act_of(first) == act_of(second) == READS
    if not reads and names_another_effect(was.tool.name, now.tool.name):
        return False
    if any(effect_of(word) == "write" for word in differ - {first, second} - THINGS):
        return False
    same_said = bool(said[0]) and said[0] == said[1]
    if _grown(mine, theirs):
        return same_said
    if _is_known(first) and act_of(first) == act_of(second):
        acts = {act_of(one) for one in said}
        return THINGS.isdisjoint((first, second)) or acts == {act_of(first)}
    return same_said and said[0] in (first, second)


def same_thing(was: Source, now: Source) -> bool:
    """Whether the names of two tools have the same things, and only the verbs are others.

    `add_comment` and `create_comment` may be one tool; that one of them reads and the other writes,
    or that their verbs are opposites, says that they are not.
    """
    mine, theirs = (
        {word for word in _content(source.tool.name) if not _is_known(word)}
        for source in (was, now)
    )
    effects = {said_effect(was)[0], said_effect(now)[0]}
    opposite = effects == {"read", "write"} or contradict(was.tool.name, now.tool.name)
    return bool(mine) and mine == theirs and not opposite


def _content(name: str) -> tuple[str, ...]:
    """The words of a name that say an act or a thing, each in its plain form."""
    return tuple(plain_form(word) for word in tokens(name) if word not in _LINKS)


def _leads(mine: Sequence[str], theirs: Sequence[str]) -> tuple[str, str]:
    """The verbs of two names: behind what both begin with, as a server's name or a thing."""
    place = 0
    for one, other in zip(mine, theirs, strict=False):
        if one != other or _is_known(one):
            break
        place += 1
    first, second = (next(iter(each[place:]), "") for each in (mine, theirs))
    return first, second


def _is_known(word: str) -> bool:
    return word in _ACTS or verb(word) is not None


def _grown(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether one name, of several words, is the beginning of the other."""
    short, long = sorted((tuple(mine), tuple(theirs)), key=len)
    return len(short) > 1 and long[: len(short)] == short and all(map(str.isascii, long))


def _said_first(was: Source, now: Source) -> tuple[str, str]:
    """The verbs with which two descriptions begin, behind what a server puts before each."""
    texts = [source.tool.description for source in (was, now)]
    labels = [found[1] if (found := _LABEL.match(text)) else "" for text in texts]
    if labels[0] == labels[1] != "":
        texts = [_LABEL.sub("", text) for text in texts]
    first, second = map(tokens, texts)
    return (
        plain_form(first[0]) if begins_as_verb(first) else "",
        plain_form(second[0]) if begins_as_verb(second) else "",
    )
