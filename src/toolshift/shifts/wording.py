"""Words by pool: synonyms, noise, opaque names and slips of the finger.

Each pool has generators of its own, so that what a model has met in training cannot turn up in a
test. The tables are in `perception.toml`, and the name sets of tools in `names.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from toolshift.core.scene import Scene
from toolshift.core.tables import table_beside
from toolshift.core.world import POOLS

TABLES = table_beside(__file__, "perception.toml")
NAMES = table_beside(__file__, "names.toml")
NAME_SETS = 24
"""Name sets of a pool: up to four verbs, up to three nouns, and two orders of them."""


def form_of(tables: Mapping[str, Any], table: str, scene: Scene, rng: Random) -> Any:
    """A wording of the scene's pool; draws only where there is a choice."""
    forms = tables[table][scene.task.pool]
    return forms[0] if len(forms) == 1 else rng.choice(forms)


def _words(file: str) -> list[str]:
    """The words of a file; a line that begins with # is a comment."""
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    return [word for line in text.splitlines() if line[:1] != "#" for word in line.split()]


_PIECE = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_KEPT = re.compile(r"[`'\"][^`'\"]*[`'\"]|\b\w+ (?:references?|codes?|numbers?)\b|\w*[_\d]\w*")
"""What a paraphrase leaves alone: quotations, "listing reference" and its like, identifiers."""
_OBJECT = re.compile(r" (?:the|an?|all|every|each|one|units|items)\b")
"""What tells that the word before it, which may be a thing, is a verb."""


def pick(table: str, pool: str, rng: Random) -> str:
    """One form of a pool's list."""
    return str(rng.choice(TABLES[table][pool]))


# -- synonyms ----------------------------------------------------------------------------------


def synonym(word: str, pool: str, tables: tuple[str, ...]) -> str:
    """The word's synonym in a pool, in the same number and case; the word where none is known."""
    place, low = POOLS.index(pool), word.lower()
    for table in tables:
        known = TABLES[table]
        for stem, plural in _stems(low):
            if stem in known:
                found = known[stem][place]
                return _as_case(_plural(found) if plural else found, word)
    return word


def reword_name(name: str, pool: str) -> str:
    """A name with every known word replaced; the first is a verb before it is a thing."""
    first = _PIECE.search(name)

    def put(piece: re.Match[str]) -> str:
        leads = first is not None and piece.start() == first.start()
        return synonym(piece[0], pool, ("verbs", "nouns") if leads else ("nouns", "verbs"))

    return _PIECE.sub(put, name)


def reword_by_set(name: str, pool: str, number: int) -> str:
    """A tool's name in one of the `NAME_SETS` of a pool: other words, and perhaps the verb last.

    A word of which `names.toml` knows nothing has the one synonym of its pool.
    """
    pieces = list(_PIECE.finditer(name))

    def put(piece: re.Match[str]) -> str:
        tables = ("verbs", "nouns") if piece.start() == pieces[0].start() else ("nouns",)
        found = _of_set(piece[0], pool, number, tables)
        return found or synonym(piece[0], pool, tables)

    other = _PIECE.sub(put, name)
    verb, _, rest = name.partition("_")
    if number // 12 % 2 and rest and name == name.lower() and other != name:
        first = _of_set(verb, pool, number, ("verbs", "nouns")) or synonym(
            verb, pool, ("verbs", "nouns")
        )
        return f"{other.removeprefix(first).strip('_')}_{first}"
    return other


def verbs_of(word: str, pool: str) -> list[str]:
    """The verbs of a pool that say the same; none where the word is not known."""
    if word in NAMES["verbs"]:
        return list(NAMES["verbs"][word][pool])
    other = synonym(word, pool, ("verbs",))
    return [other] if other != word else []


def _of_set(word: str, pool: str, number: int, tables: tuple[str, ...]) -> str:
    """The word that a name set has for another; "" where it has none."""
    for table in tables:
        for stem, plural in _stems(word.lower()):
            if stem in NAMES[table]:
                forms = NAMES[table][stem][pool]
                found = forms[(number if table == "verbs" else number // 4) % len(forms)]
                return _as_case(_plural(found) if plural else found, word)
    return ""


def reword_param(name: str, pool: str) -> str:
    """A parameter's name in other words; one without a known word gets the pool's ending."""
    other = _PIECE.sub(lambda piece: synonym(piece[0], pool, ("nouns",)), name)
    return other if other != name else name + str(TABLES["endings"][pool])


def reword_text(text: str, pool: str) -> str:
    """A description in other words, without touching what names a reference or an identifier."""
    parts, place = [], 0
    for kept in _KEPT.finditer(text):
        parts += [_reword_prose(text[place : kept.start()], pool, place == 0), kept[0]]
        place = kept.end()
    return "".join([*parts, _reword_prose(text[place:], pool, place == 0)])


def _reword_prose(text: str, pool: str, leads: bool) -> str:
    def put(spot: re.Match[str]) -> str:
        article, word = spot["article"] or "", spot["word"]
        first = leads and not text[: spot.start()].strip()
        acts = word.lower() not in TABLES["nouns"] or _OBJECT.match(text, spot.end())
        other = synonym(word, pool, ("verbs", "nouns") if first and acts else ("nouns",))
        if other != word and article.strip() in ("a", "an"):
            article = "an " if other[0] in "aeio" else "a "
        return article + other

    return re.sub(r"(?P<article>\b[Aa]n? )?(?P<word>[^\W\d_]+)", put, text)


def _stems(word: str) -> list[tuple[str, bool]]:
    stems = [(word, False)]
    for ending, instead in (("ies", "y"), ("es", ""), ("s", "")):
        if word.endswith(ending) and not word.endswith("ss"):
            stems.append((word.removesuffix(ending) + instead, True))
    return stems


def _plural(word: str) -> str:
    if word in TABLES["mass"]["words"] or word in NAMES["mass"]["words"]:
        return word
    if word.endswith(("s", "x", "ch", "sh")):
        return word + "es"
    return re.sub(r"(?<=[^aeiou])y$", "ie", word) + "s"


def _as_case(word: str, like: str) -> str:
    if like.isupper() and len(like) > 1:
        return word.upper()
    return word.capitalize() if like[0].isupper() else word


# -- names -------------------------------------------------------------------------------------


def noisy(name: str, pool: str, strength: int) -> str:
    """A name with noise around it, still readable: case, then a version, then a prefix."""
    words = [word.lower() for word in _PIECE.findall(name)] or [name]
    for steps in range(strength, 4):
        other = _NOISE[pool](words, steps)
        if other != name:
            return other
    return name


def _camel(words: list[str], steps: int) -> str:
    words = ["api", *words] if steps > 2 else words
    name = words[0] + "".join(word.capitalize() for word in words[1:])
    return f"{name}V2" if steps > 1 else name


def _kebab(words: list[str], steps: int) -> str:
    words = ["svc", *words] if steps > 2 else words
    return "-".join([*words, "r4"] if steps > 1 else words)


def _shouting(words: list[str], steps: int) -> str:
    words = ["x", *words] if steps > 2 else words
    return "_".join([*words, "2025"] if steps > 1 else words).upper()


_NOISE = {"train": _camel, "dev": _kebab, "test": _shouting}


UNRELATED = _words("unrelated.txt")
"""Words that have nothing to do with any tool; many, for 500 of them were learned by heart."""


def _hashed(rng: Random) -> str:
    return f"fn_{rng.randrange(16**4):04x}"


def _unrelated(rng: Random) -> str:
    """Two whole words: in a list they are tokens of their own, in a call they have to be spelt."""
    return "_".join(rng.sample(UNRELATED, 2))


def _invented(rng: Random) -> str:
    """Two words of closed syllables, which have to be spelt: none can be learned by heart."""
    syllables = [
        rng.choice("bcdfhjklnprstvw") + rng.choice("aeiou") + rng.choice("lmnrst") for _ in range(4)
    ]
    return f"{syllables[0]}{syllables[1]}_{syllables[2]}{syllables[3]}"


def opaque(pool: str, rng: Random) -> str:
    """A name that says nothing.

    In training `fn_3f0a`, `otter_violet` or `velmor_tabrit`, in dev `KX-407`, in test `zubemi_lo`.
    """
    if pool == "train":
        return rng.choice((_hashed, _unrelated, _unrelated, _invented))(rng)
    if pool == "dev":
        return f"{rng.choice('KQVXZ')}{rng.choice('BDJPW')}-{rng.randrange(100, 1000)}"
    syllables = [rng.choice("bglmtvz") + rng.choice("aeiou") for _ in range(4)]
    return f"{''.join(syllables[:3])}_{syllables[3]}"


# -- slips of the finger -----------------------------------------------------------------------


def typo(word: str, pool: str, rng: Random) -> str:
    """The word with one slip inside: letters swapped (train), one lost (dev), one doubled (test).

    The word itself where its letters allow none.
    """
    if pool == "train":
        places = [i for i in range(1, len(word) - 2) if word[i] != word[i + 1]]
        if not places:
            return word
        i = rng.choice(places)
        return word[:i] + word[i + 1] + word[i] + word[i + 2 :]
    i = rng.randrange(1, len(word) - 1)
    return word[:i] + (word[i + 1 :] if pool == "dev" else word[i] + word[i:])
