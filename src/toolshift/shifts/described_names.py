"""Names for foreign tools, made from what their descriptions say.

Synonyms were written for the worlds that come with ToolShift. A tool of somebody else's is called
by words that no table knows, or that mean something else there; its description says what it does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from toolshift.core.tables import table_beside
from toolshift.core.tool import NAME, Tool
from toolshift.shifts.wording import TABLES, synonym

MAX_NAME = 64
"""Characters that clients allow in a tool's name."""
WORDS, MAX_WORDS = 3, 7
"""How many words a name has where there are so many, and at most."""
_TABLE: dict[str, list[str]] = table_beside(__file__, "described_names.toml")
_FAMILIAR, _EMPTY, _BETWEEN = (frozenset(_TABLE[key]) for key in ("familiar", "empty", "between"))
SYNONYMS = {word: frozenset((word, *TABLES["verbs"].get(word, ()))) for word in _TABLE["familiar"]}
"""Verbs, each with those that mean the same whatever they are about."""
_WORD = re.compile(r"[a-z]+|\d+")
_SENTENCE = re.compile(r"[\n;:(]|\.(?:\s|$)")


def described_names(tools: Iterable[Tool], pool: str) -> dict[str, str]:
    """New names for tools, no two of them the same."""
    listed = list(tools)
    names = {tool.name: _names(tool, pool) for tool in listed if NAME in tool.channels}
    taken = {tool.name.lower() for tool in listed}
    found: dict[str, str] = {}
    for length in range(max(map(len, names.values()), default=0)):
        # The shortest that only one tool could have; of two that say the same, both say more.
        left = {name: made for name, made in names.items() if name not in found}
        short = {name: made[min(length, len(made) - 1)] for name, made in left.items() if made}
        times = Counter(each.lower() for each in short.values())
        for name, new in short.items():
            if times[new.lower()] == 1 and new.lower() not in taken:
                found[name] = new
        taken |= {new.lower() for new in found.values()}
    return found


def _names(tool: Tool, pool: str) -> list[str]:
    """The names that a tool could have, the shortest first."""
    parts = _parts(tool.description, pool)
    made: list[str] = []
    words: list[str] = []
    for place, part in enumerate(parts, 1):
        words += part
        name = _joined(words[:MAX_WORDS], tool.name)
        enough = len(words) >= WORDS or (place == len(parts) and len(words) > 1)
        if enough and len(name) <= MAX_NAME and name not in made:
            made.append(name)
    return made


def _parts(description: str, pool: str) -> list[list[str]]:
    """The telling words of the first sentence, by phrase: what is done, and to what, how, where."""
    sentence = _SENTENCE.split(description.strip(), maxsplit=1)[0].lower().replace("'s ", " ")
    said = _WORD.findall(sentence)
    parts: list[list[str]] = [[]]
    for place, word in enumerate(said):
        if word in _BETWEEN and parts[-1] and place > 1:
            parts.append([])
        elif word not in _EMPTY and word not in _BETWEEN and len(word) > 1:
            verb = _verb(word) if place == 0 else word
            known = place == 0 and verb in _FAMILIAR
            parts[-1].append(synonym(verb, pool, ("verbs",)) if known else verb)
    return [part for part in parts if part]


def _verb(word: str) -> str:
    """The plain form of a verb in the third person."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if re.search(r"(?:ch|sh|ss|x|zz)es$", word):
        return word[:-2]
    return word[:-1] if re.search(r"[^isu]s$|[^s]ies$", word) else word


def _joined(words: list[str], like: str) -> str:
    """Words as one name, in the manner of another."""
    if "_" not in like and re.search(r"[a-z][A-Z]", like):
        name = words[0] + "".join(word.capitalize() for word in words[1:])
        return name[0].upper() + name[1:] if like[0].isupper() else name
    return ("-" if "-" in like and "_" not in like else "_").join(words)
