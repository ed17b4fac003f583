"""Whether a text that was edited may mean something else.

An edit is harmless by what is known of it, never by what is not: nothing but spelling, in any
script, or an English text of which all words that tell something stand there still, in their order.
Words that tell nothing are articles, forms of "be" and their like. A word may stand in its plural,
the verb that a sentence begins with may be another one of the same act ("gets", "fetches"), and
examples and hints may come and go where they tell of no act. At the end of a sentence another thing
may stand for the last one (", or a selector"), for that takes nothing away.

Everything else may mean something else: that it does is not said.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator

from toolshift.drift.acts import READS, act_of, begins_as_verb, effect_of, plain_form
from toolshift.drift.tokens import tokens
from toolshift.reading.words import NEGATIVE
from toolshift.shifts.release.conversions import units_in
from toolshift.shifts.release.match import verb, words

_EMPTY = frozenset(
    words(
        "a an the one this that these those which of for it its is are be been given specified "
        "provided please also"
    )
)
"""Words that tell nothing: what stands there means the same without them."""
_TELLS = frozenset(("return", "give", "provide"))
"""Verbs of a text that say what a tool that reads does; as names of tools they are acts."""
_OTHER_RESULTS = frozenset(("count", "check"))
"""Verbs of reading of which the result is no record: one that counts does not list."""
_ENGLISH = frozenset(
    words(
        "the of and to for with by from this that which these those given a an is are be it its if "
        "when not returns return using use all any as or one each"
    )
)
_HINTS = re.compile(r"\W*(?:examples?|useful|prefer|recommended|use (?:this|it|when|if))\b", re.I)
"""How a sentence begins that gives an example, or says when a tool is of use."""
_DENIES = frozenset((*NEGATIVE, "no", "only", "except", "instead"))
_SHORTENED = re.compile(r"n['\u2019]t\b")
_OWNED = re.compile(r"(?<=\w)['\u2019]s\b")
_EXAMPLE = re.compile(r"\be\.g\.|\bfor (?:example|instance)\b", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_BELOW_ZERO = re.compile(r"(?<![\w.,-])[-\u2212](?=\d)")
_PART = re.compile(r"(?<=[.!?;])\s+|\n+|[()]")
_WIDER = re.compile(r",? or an?(?: [\w-]{1,40}){1,5}(?=[.;)]|$)")
"""A thing that may stand there as well: what was right before is right still."""
_SYMBOL = re.compile(r"(?:\d\s*|\bin\s+|\((?=\w{1,3}\)))([A-Za-z\u03a9\u03bc]{1,3})(?![\w-])")
"""A short word where a unit stands: behind a number, behind "in", or alone in brackets."""
_SHARES = frozenset("%\u2030\u2031\u00b0")
"""Percent and its kin, and the degree: signs that Unicode counts among dots and commas."""


def says_otherwise(before: str, after: str) -> bool:
    """Whether a text that was edited may mean something else, however few of its words changed."""
    before, after = _spelled(before), _spelled(after)
    first, second = tokens(before), tokens(after)
    if _signs(before) != _signs(after) or _other_case(before, after):
        return True
    if first == second:
        return False
    if not (_is_english(first) and _is_english(second)):
        return True
    mine, theirs = _parts(before), _parts(after)
    if _told(mine, theirs) == _told(theirs, mine):
        return False
    if not _DENIES.isdisjoint(second):
        return True  # where something is denied, one thing more takes something away
    wider = _WIDER.sub(lambda found: "" if _is_more(found[0], before) else found[0], after)
    theirs = _parts(wider)
    return _told(mine, theirs) != _told(theirs, mine)


def means_something_new(where: str, text: str) -> bool:
    """Whether a text that was added may say more than the name that stood there alone.

    That a tool reads is what a name may say as well; any other act, and a unit of a value that its
    name does not say, is more.
    """
    if not where:
        found = tokens(text)
        return next(_telling(text), "") != READS or any(map(_is_write, found))
    name = where.rpartition(".")[2].removesuffix("[]")
    return units_in("", text).items() - units_in(name, "").items() != set()


def _spelled(text: str) -> str:
    """A text in one spelling of signs, short forms and numbers."""
    text = _SHORTENED.sub(" not", unicodedata.normalize("NFKC", text))
    text = _THOUSANDS.sub("", _OWNED.sub("", text))
    return _BELOW_ZERO.sub("minus ", _EXAMPLE.sub("example", text))


def _is_english(text: tuple[str, ...]) -> bool:
    """Whether a text is English for all that can be seen: its letters, and one of its words."""
    return all(word.isascii() for word in text) and (
        not _ENGLISH.isdisjoint(text) or any(verb(word) for word in text)
    )


def _parts(text: str) -> dict[str, tuple[str, ...]]:
    """The sentences of a text, and what stands in brackets, each with the words that tell."""
    return {part: tuple(_telling(part)) for part in _PART.split(text) if part.strip()}


def _told(parts: dict[str, tuple[str, ...]], others: Collection[str]) -> list[str]:
    """The words that tell something, in their order, without the hints that only this text has.

    Where both texts have a hint of their own, one was edited, and is compared.
    """
    edited = any(_is_hint(part) for part in others if part not in parts)
    kept = (told for part, told in parts.items() if part in others or edited or not _is_hint(part))
    return [word for told in kept for word in told]


def _telling(part: str) -> Iterator[str]:
    """The words of a sentence that tell something; its verb as the act that it says."""
    found = tokens(part)
    lead = next((place for place, word in enumerate(found) if word not in _EMPTY), -1)
    for place, word in enumerate(found):
        if word in _EMPTY:
            continue
        plain = plain_form(word)
        is_act = place == lead and begins_as_verb(found[place:])
        if not is_act or plain in _OTHER_RESULTS:
            yield plain
        else:
            yield READS if plain in _TELLS else act_of(word)


def _is_hint(part: str) -> bool:
    """Whether a sentence gives an example or says when a tool is of use, and tells nothing else.

    An act, a denial, a number and a unit do.
    """
    if not _HINTS.match(part) or units_in("", part) or any(map(str.isdigit, part)):
        return False
    return not any(word in _DENIES or _is_write(word) for word in tokens(part))


def _is_more(thing: str, before: str) -> bool:
    return thing not in before and not any(map(_is_write, tokens(thing)))


def _is_write(word: str) -> bool:
    return effect_of(word) == "write"


def _signs(text: str) -> list[str]:
    """The signs of a text that tell something: a currency, a comparison, a percent, a degree."""
    return [sign for sign in text if unicodedata.category(sign) in ("Sc", "Sm") or sign in _SHARES]


def _other_case(before: str, after: str) -> bool:
    """Whether a unit stands in other letters of the same name: mW is not MW."""
    mine, theirs = ({*_SYMBOL.findall(text)} for text in (before, after))
    known = {symbol.lower() for symbol in theirs}
    return any(symbol.lower() in known for symbol in mine - theirs)
