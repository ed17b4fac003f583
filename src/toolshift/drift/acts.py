"""What is done, by the verbs that names and texts say: which two of them are one act.

Two acts are the same by what is known: the same word in another form, two verbs of reading, or two
that mean the same whatever they are about (`shifts.described_names`). A word that nothing is known
of may be any act.
"""

from __future__ import annotations

from functools import lru_cache

from toolshift.core.tool import Effect
from toolshift.reading.words import singular
from toolshift.shifts.described_names import SYNONYMS
from toolshift.shifts.release.match import verb, words

READS = "read"
"""The act of all verbs of reading."""
THINGS = frozenset(
    words(
        "book check count file list move order patch place post query scan search show store "
        "transfer update upload view"
    )
)
"""Known verbs that are things as often: to order, and an order."""
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
