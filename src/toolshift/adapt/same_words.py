"""Whether two names are the same words: the only ground on which the layer may move a call.

    same_words("getOrder", "orders.get")       # True
    same_words("pause_job", "kill_job")        # False: a word is another one
    same_spelling("orderRef", "order_ref")     # True

No list of words is behind it: a name is split into its words in any script, and every word has to
be there on both sides. What is not a letter, a digit or a separator is a word too, so `price_$` is
not `price_€`. What is not plainly the same is another name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_SEPARATORS = frozenset("_-./: \u2010\u2011")
_SCOPES = frozenset("./:")
"""What stands between a thing and what is done with it: `orders.get`."""
_VERSION = re.compile(r"v\d+")
_SHORTEST = 3
"""The least letters of a word that may have a plural: `ms` is no plural of `m`."""
_SHORT = 2
"""Up to this length the case of a word may matter: `MB` and `Mb`, `mg` and `Mg`."""


def same_words(one: str, other: str, of_tools: bool = True) -> bool:
    """Whether two names are the same words, whatever their case, separators and plurals.

    Of tools a version may differ too, and the first word may stand at the end where one of them has
    it behind a dot or a slash (`get_order`, `orders.get`). Any other order may say something else
    (`usd_eur`, `eur_usd`).
    """
    mine, theirs = ([word.lower() for word in _words(name)] for name in (one, other))
    if of_tools:
        mine, theirs = _without_version(mine, theirs), _without_version(theirs, mine)
    if not mine or len(mine) != len(theirs):
        return False
    orders = [mine]
    if of_tools and bool(_SCOPES & set(one)) != bool(_SCOPES & set(other)):
        orders += [[*mine[1:], mine[0]], [mine[-1], *mine[:-1]]]
    return any(all(map(_same_word, order, theirs)) for order in orders)


def same_spelling(one: str, other: str) -> bool:
    """Whether two names differ in nothing but case and separators."""
    mine, theirs = _words(one), _words(other)
    return len(mine) == len(theirs) > 0 and all(
        word == other_word if len(word) <= _SHORT else word.lower() == other_word.lower()
        for word, other_word in zip(mine, theirs, strict=True)
    )


def spoken(name: str) -> str:
    """A name as its words, with spaces between them."""
    return " ".join(_words(name))


def _words(name: str) -> list[str]:
    """The words of a name; a capital that only begins a word inside of one is written small."""
    words: list[str] = []
    word = ""
    text = unicodedata.normalize("NFC", name)
    for place, sign in enumerate(text):
        before, after = text[place - 1 : place], text[place + 1 : place + 2]
        if _is_letter(sign):
            begins = bool(word) and _begins(before, sign, after)
            if begins:
                words.append(word)
                word = ""
            small = begins and not after.isupper()
            word += sign.lower() if small else sign
            continue
        words += [word] if word else []
        word = ""
        if sign not in _SEPARATORS or (sign == "-" and not _is_letter(before) and after.isdigit()):
            words.append(sign)  # a symbol says something, and so does the sign of a number
    return [*words, word] if word else words


def _is_letter(sign: str) -> bool:
    """Whether a sign is a part of a word: letters, their marks, and digits of any script."""
    return bool(sign) and unicodedata.category(sign)[0] in "LMN"


def _begins(before: str, sign: str, after: str) -> bool:
    """Whether a capital begins a word: `getOrder`, `HTTPServer`."""
    if not sign.isupper():
        return False
    return not before.isupper() or after.islower()


def _same_word(one: str, other: str) -> bool:
    """Whether two words are the same but for an English plural."""
    return one == other or one in _plurals(other) or other in _plurals(one)


def _plurals(word: str) -> tuple[str, ...]:
    """What the plural of a word may be; none for words of other scripts and very short ones."""
    if len(word) < _SHORTEST or not (word.isascii() and word.isalpha()):
        return ()
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return (f"{word}es",)
    return (f"{word}s", f"{word[:-1]}ies") if word.endswith("y") else (f"{word}s",)


def _without_version(words: list[str], others: Sequence[str]) -> list[str]:
    """A name without the word that only says its version, where the other name has no number."""
    if any(sign.isdigit() for word in others for sign in word):
        return words
    kept = [word for word in words if not _VERSION.fullmatch(word)]
    if len(kept) > 1 and kept[-1].isdecimal():
        kept.pop()
    return kept
