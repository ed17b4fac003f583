"""Which detail a question asks for, by a linear model over its words that was trained beforehand.

A question is read with its known values masked by their slots, so the model never sees a value. A
score is the sum of the weights of what the text has: word n-grams, by whether their sentence asks,
character n-grams of words, and for each slot what is known of it and which words stand around its
values and around the words that are typical of it (its cues). Weights are small integers, so the
same question gets the same score on every machine. They come from
`studies/strangers/questions/train.py`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

GIVEN = re.compile(r"⟦(\w+)⟧")
"""How a value of the goal is written once it has been masked."""

CONFIRMS = re.compile(
    r"(?:^|: )(?:so |sorry, |and |just to \w+:? |thanks, )*"
    r"(?:is|are|was|were|did|do|does|should|shall|am)\b"
    r"|\b(?:right|correct|yes|isn't it|did you mean|confirm(?:ing)?)\b"
)
"""Words that ask to confirm a value rather than to state one."""

WORDS = 3 << 12
"""The number of feature rows in the weights, with one column per slot."""
SPOTS = 1 << 13
"""The number of weights for features of a slot in a text; all slots share them."""

PART = 0.8
"""By how much the best slot must lead in a part of a question that has several."""
APART = 4.0
"""How far behind the best slot each of several may be in the whole question."""

_TOKEN = re.compile(r"⟦\w+⟧|[\w']+|[?:=|.…/{;✓✔✅✗✘❌❓-]|▪|\n")
_LINES = re.compile(r"\s*\n\s*")
_LETTER = re.compile(r"[^\W\d_]")
_CUT = re.compile(
    r"\n|▪|(?<=[.!?;:])\s+|,\s+|\s+(?=(?:and|then|as well as|also)\b)"
    r"|\s+(?=\((?:[a-e]|i+|\d)\))|(?<=\?)"
)
_OPENLY = frozenset(
    [
        "which",
        "what",
        "what's",
        "whats",
        "when",
        "where",
        "whereabouts",
        "who",
        "who's",
        "whose",
        "whom",
        "how",
    ]
)
_CLOSED = frozenset(
    [
        "is",
        "are",
        "was",
        "were",
        "did",
        "do",
        "does",
        "should",
        "shall",
        "right",
        "correct",
        "yes",
        "confirm",
        "confirming",
        "mean",
        "sure",
        "verify",
        "isn't",
        "ok",
        "okay",
        "agree",
    ]
)
_NO_SLOT = ""
_STOPS = frozenset("?.;▪\n…")
_ASIDE = "aside"


@dataclass(frozen=True, slots=True)
class Guess:
    """What a question asks for.

    Attributes:
        slots: the slots in order; none where the question asks for no detail.
        lead: by how much the first leads, in units of log probability.
    """

    slots: tuple[str, ...]
    lead: float


@dataclass(frozen=True, slots=True, eq=False)
class QuestionClassifier:
    """The weights of a world.

    Attributes:
        slots: the slots, and "" for no detail.
        words: int8, of shape (`WORDS`, slots).
        spots: int16, of shape (`SPOTS`,).
        scale: what one unit of weight is in log probability.
        cues: words that are typical of a slot, with that slot.
    """

    slots: tuple[str, ...]
    words: NDArray[np.int8]
    spots: NDArray[np.int16]
    scale: float
    cues: Mapping[str, str]

    def guess(self, text: str, states: Mapping[str, str]) -> Guess:
        """The slots that a question asks for."""
        scores = self._scores(text, states)
        best, lead = self._best(scores)
        for cut in cuts(text):
            first, lead_here = self._best(self._scores(text[:cut], states))
            if first not in states or lead_here < PART or _is_context(first, text, cut, states):
                continue
            rest = self._scores(text[cut:], states)
            second = self._best(rest)[0]
            beside = [self.slots.index(s) for s in self.slots if s not in states or s == first]
            lead_there = float(rest.max() - rest[beside].max()) * self.scale
            if second not in states or second == first or lead_there < PART:
                continue
            behind = scores.max() - min(scores[self.slots.index(s)] for s in (first, second))
            if behind * self.scale <= APART:
                return Guess((first, second), min(lead_here, lead_there))
        return Guess((best,) if best else (), lead)

    def _best(self, scores: NDArray[np.int64]) -> tuple[str, float]:
        second, first = np.argsort(scores, kind="stable")[-2:]
        return self.slots[first], float(scores[first] - scores[second]) * self.scale

    def _scores(self, text: str, states: Mapping[str, str]) -> NDArray[np.int64]:
        """The score of each slot."""
        words = tokens(text)
        rows = buckets(features(words, states), WORDS)
        of_slots = [
            self.spots[buckets(names, SPOTS)].sum(dtype=np.int64)
            for names in spot_features(self.slots, words, states, self.cues)
        ]
        total: NDArray[np.int64] = self.words[rows].sum(axis=0, dtype=np.int64)
        return total + np.array(of_slots, dtype=np.int64)


@lru_cache(maxsize=8)
def read_weights(path: Path) -> QuestionClassifier:
    """Reads the weights of a world."""
    with np.load(path) as stored:
        return QuestionClassifier(
            tuple(str(slot) for slot in stored["slots"]),
            stored["words"],
            stored["spots"],
            float(stored["scale"]),
            dict(zip(stored["cues"].tolist(), stored["cue_slots"].tolist(), strict=True)),
        )


def tokens(text: str) -> list[str]:
    """The words of a masked text, its masks and the marks that matter; numbers look alike."""
    return [
        "0" * len(token) if token.isalnum() and any(map(str.isdigit, token)) else token
        for token in _TOKEN.findall(_LINES.sub("\n", text.strip()))
    ]


def features(words: list[str], states: Mapping[str, str]) -> set[str]:
    """The features of a text: n-grams of words (masked by slot and by state) and of letters."""
    lines = [words]
    if any(token[0] == "⟦" for token in words):
        lines.append([f"⟦{states.get(t[1:-1], '')}⟧" if t[0] == "⟦" else t for t in words])
    names = set(words)
    for line in lines:
        edged = ["^", *line, "$"]
        names |= {f"{a} {b}" for a, b in pairwise(edged)}
        names |= {f"{a} {b} {c}" for a, b, c in zip(edged, edged[1:], edged[2:], strict=False)}
    for word in set(words):
        if word[0] != "⟦" and _LETTER.search(word):
            names |= _letters(word)
    of_parts = parts(words)
    if _ASIDE in of_parts or "asks 2" in of_parts:
        names |= {f"{part} {token}" for part, token in zip(of_parts, words, strict=True)}
        names |= {
            f"{part} {a} {b}" for part, (a, b) in zip(of_parts, pairwise(words), strict=False)
        }
    return names | {"1: " + " ".join(words[:length]) for length in (1, 2, 3)}


def parts(words: list[str]) -> list[str]:
    """For each token, whether its sentence is the first question, a later one, or none."""
    if "?" not in words:
        return [""] * len(words)
    marks, start, number_asking = [], 0, 0
    for end, token in enumerate([*words, "."]):
        if token in _STOPS:
            asks = token == "?"  # noqa: S105 - a word of a question
            number_asking += asks
            marks += [f"asks {min(number_asking, 2)}" if asks else _ASIDE] * (end + 1 - start)
            start = end + 1
    return marks[: len(words)]


def spot_features(
    slots: Iterable[str], words: list[str], states: Mapping[str, str], cues: Mapping[str, str]
) -> list[set[str]]:
    """For each slot what is known of it in a text, and the words around its values and its cues."""
    of_parts, runs = parts(words), _runs(words, cues)
    around = ["⟦⟧" if t[0] == "⟦" else "◇" if t in cues else t for t in words]
    left_open = sum(other != "said" for other in states.values())
    named = {slot for slot, _, _ in runs}
    manner = f"{'asks' if _OPENLY & {*words} else ''} {'confirms' if _CLOSED & {*words} else ''}"
    given = {slot: words.count(f"⟦{slot}⟧") for slot in states}
    absent = sum(not count for count in given.values())
    features_of = []
    for slot in slots:
        state = states.get(slot, "no slot" if slot == _NO_SLOT else "not known")
        names = {state, f"{state} cued {slot in named} others {min(len(named - {slot}), 2)}"}
        names |= {f"{state} open {min(left_open, 2)} cued {slot in named}"}
        names |= set(_of_cues(slot, state, runs, around, of_parts))
        if slot in states:
            times = min(given[slot], 2)
            aside = min(len(states) - absent - (times > 0), 2)
            names |= {f"{state} given {times} open {min(left_open, 2)}"}
            names |= {f"{manner} given {times} aside {aside}", f"{manner} {state} {times}"}
            names |= {f"{state} absent {min(absent, 3)}"} if not times else set()
            mask = f"⟦{slot}⟧"
            for place, token in enumerate(words):
                if token == mask:
                    names |= _beside("", state, of_parts[place], around, place, place + 1)
        features_of.append(names)
    return features_of


def _runs(words: list[str], cues: Mapping[str, str]) -> list[tuple[str, int, int]]:
    """Each slot that has a cue, with the place where its cue starts and the place after its end."""
    runs: list[tuple[str, int, int]] = []
    for place, token in enumerate(words):
        slot = cues.get(token)
        if slot and runs and runs[-1][0] == slot and runs[-1][2] == place:
            runs[-1] = (slot, runs[-1][1], place + 1)
        elif slot:
            runs.append((slot, place, place + 1))
    return runs


def _of_cues(
    slot: str, state: str, runs: list[tuple[str, int, int]], around: list[str], parts: list[str]
) -> Iterator[str]:
    """The words around a slot's cues, and the position of the cues among those of others."""
    before: dict[str, set[str]] = {}
    for other, start, end in runs:
        part = parts[start]
        earlier = before.setdefault(part, set())
        if other == slot:
            yield from _beside("cue", state, part, around, start, end)
            yield f"cue {part} {min(len(earlier - {slot}), 2)}"
            yield f"cue {part} {state} {min(len(earlier - {slot}), 2)}"
        earlier.add(other)


def _beside(kind: str, state: str, part: str, around: list[str], start: int, end: int) -> set[str]:
    """The words on both sides of a value or a cue."""
    left = [*"^^^", *around[max(0, start - 3) : start]]
    right = [*around[end : end + 3], *"$$$"]
    names = {f"{kind} left {' '.join(left[-n:])}" for n in (1, 2, 3)}
    names |= {f"{kind} right {' '.join(right[:n])}" for n in (1, 2, 3)}
    names |= {f"{kind} between {left[-1]} {right[0]}", f"{kind} {state} left {left[-1]}"}
    return names | {f"{kind} {state} right {right[0]}", f"{kind} in {part} {state}"}


def buckets(names: Iterable[str], size: int) -> list[int]:
    """The rows of the weights for features; two that fall into one row count once."""
    return sorted({zlib.crc32(name.encode()) % size for name in names})


def cuts(text: str) -> list[int]:
    """Where a text may be cut in two with words on both sides."""
    return [
        place
        for place in sorted({spot.start() for spot in _CUT.finditer(text)})
        if re.search(r"\w", text[:place]) and re.search(r"\w", text[place:])
    ]


@lru_cache(maxsize=4096)
def _letters(word: str) -> frozenset[str]:
    edged = f"<{word}>"
    sizes = (3, 4, 5)
    return frozenset(edged[i : i + n] for n in sizes for i in range(len(edged) - n + 1))


def _is_context(slot: str, text: str, cut: int, states: Mapping[str, str]) -> bool:
    """Whether a question states a slot's value, and does not ask to confirm it."""
    given = f"⟦{slot}⟧" in text and states[slot] != "torn"
    return given and not CONFIRMS.search(text[:cut])
