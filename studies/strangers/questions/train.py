"""Train the classifiers of questions: ``python studies/strangers/questions/train.py``.

Writes `questions.npz` beside each of our worlds' `facts.toml`. It learns from questions that are
made of `phrases_*.txt.gz` (many manners of asking, by details in many words, with the values of
tasks) and from the wordings of `FILES`, which are development data. Same seed, same file.
``--leave-out held_out_2.json`` trains without one file and scores on it instead of writing
anything: an estimate of how others' wordings are understood.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measure
import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from toolshift.core.fact import Fact, Goal
from toolshift.episode.user import answer
from toolshift.reading.question_classifier import (
    SPOTS,
    WORDS,
    buckets,
    features,
    spot_features,
    tokens,
)
from toolshift.reading.questions import mask
from toolshift.worlds.registry import OURS, find_world

HERE = Path(__file__).parent
FILES = (
    "tuned_on.json",
    "further.json",
    "further_2.json",
    "held_out.json",
    "held_out_2.json",
    "held_out_3.json",
)
"""Files that are learnt from; `held_out_4.json` stays held out."""
SEED = 7
COUNT = 24_000
"""Questions that are made for each world."""
PENALTY = 1e-4
ROUNDS = 100
DROPPED = 0.12
"""The share of words that is left out of three in ten questions."""

CLEAR = 0.7
"""The share of a word's phrases that is of one slot, for the word to be a cue of it."""
OF_SLOT = ("noun", "bare", "ask", "whole", "two")
"""Kinds of phrases that name a slot."""

_OF_FRAMES = ("value", "choice", "two", "retry", "settled", "task")
"""Kinds of which slots have no phrases of their own."""
_SLOT = re.compile(r"\{(\w+)\}")
Phrases = dict[str, list[str]]


@dataclass(frozen=True)
class Example:
    """A question as the classifier reads it, and what it asks for ("" for no detail)."""

    found: list[str]
    states: dict[str, str]
    wanted: str


class Maker:
    """Makes questions about a world's details."""

    def __init__(self, world: str, goals: list[list[Goal]], seed: int) -> None:
        self.facts: dict[str, Fact] = dict(find_world(world).facts)
        self.goals = goals
        self.random = random.Random(seed)
        self.frames = read_phrases("any")[""]
        self.phrases = read_phrases(world)
        self.phrases[""]["bare"] = self.frames["unrelated"]
        for slot, fact in self.facts.items():
            self.phrases[slot].setdefault("noun", []).append(f"the {fact.label}")
            self.phrases[slot].setdefault("bare", []).append(fact.label)
        known = {slot for drawn in goals for slot in drawn[0]}
        self.unknown = [slot for slot in self.facts if slot not in known]

    def questions(self, count: int) -> Iterator[Example]:
        """As many questions, and a statement that asks nothing for each seven."""
        made = 0
        while made < count:
            drawn = self.random.choice(self.goals)
            goal = dict(self.random.choice(drawn))
            found = self._question(goal, drawn)
            if found:
                made += 1
                yield self._example(*found, goal)
            if made % 7 == 0:
                yield self._example(self._statement(goal), "", goal)

    def example(self, text: str, wanted: str, goal: Goal, left_open: set[str]) -> Example:
        """A question of others as an example."""
        known = {slot: value for slot, value in goal.items() if slot in self.facts}
        found = tokens(mask(text, known))
        if self.random.random() < 0.3:
            found = [token for token in found if self.random.random() > DROPPED]
        states = {
            slot: "torn" if isinstance(value, tuple) else "open" if slot in left_open else "said"
            for slot, value in known.items()
        }
        return Example(found, states, wanted)

    def amid(self, text: str, wanted: str, goal: Goal) -> Example:
        """A question of others with what agents say before and after it."""
        return self._example(self._around(text, wanted, goal), wanted, goal)

    def _example(self, text: str, wanted: str, goal: Goal) -> Example:
        rng, slots = self.random, self._slots(goal)
        left_open: set[str] = set()
        chance = rng.random()
        if chance < 0.55:
            left_open = {wanted if wanted in goal else rng.choice(slots)}
            left_open |= {slot for slot in slots if rng.random() < 0.25}
        elif chance < 0.7:
            left_open = {slot for slot in slots if slot != wanted and rng.random() < 0.6}
        return self.example(text, wanted, goal, left_open)

    def _slots(self, goal: Goal) -> list[str]:
        return [slot for slot in sorted(goal) if slot in self.facts]

    def _question(self, goal: Goal, drawn: list[Goal]) -> tuple[str, str] | None:
        """A question and what it asks for; None where no phrase fits."""
        rng, slots = self.random, self._slots(goal)
        chance = rng.random()
        wanted = ""
        if chance < 0.13:
            wanted = rng.choice(self.unknown)
            text = self._about(wanted, goal, ("noun", "bare", "ask", "whole"))
        elif chance < 0.26:
            text = self._about("", goal, ("whole", "noun", "ask", "ask", "bare"))
            chance = rng.random()
            if chance < 0.55:
                text = (
                    self._strange(goal) if chance < 0.3 else self._pick(self.frames["none"], goal)
                )
        elif chance < 0.34 and len(slots) > 1:
            wanted, *known = rng.sample(slots, min(3, len(slots)))
            text = self._contrast(wanted, known, goal)
        elif chance < 0.5 and len(slots) > 1:
            count = 2 if len(slots) < 3 or rng.random() < 0.75 else 3
            wanted, *rest = rng.sample(slots, count)
            text = self._several([wanted, *rest], goal)
        else:
            wanted = rng.choice(slots)
            text = self._alone(wanted, goal, drawn)
        return (self._around(text, wanted, goal), wanted) if text else None

    def _alone(self, wanted: str, goal: Goal, drawn: list[Goal]) -> str:
        """A question about one detail; where it is about two values, they enter the goal."""
        rng = self.random
        kinds = ("whole", "ask", "noun", "bare", "form", "yes", "act", "value")
        kinds += ("choice", "two", "retry")
        kind = rng.choices(kinds, (18, 26, 22, 8, 7, 6, 4, 6, 7, 7, 3))[0]
        others = [one[wanted] for one in drawn if one[wanted] != goal[wanted]]
        if kind in ("choice", "two") or rng.random() < 0.15:
            if not others:
                return ""
            goal[wanted] = (goal[wanted], rng.choice(others))
        form = kind == "form"
        text = self._form(wanted, goal) if form else self._about(wanted, goal, (kind,))
        aside = [slot for slot in self._slots(goal) if slot != wanted]
        if aside and rng.random() < 0.05:
            slot = rng.choice(aside)
            others = [one[slot] for one in drawn if one[slot] != goal[slot]]
            goal[slot] = (goal[slot], rng.choice(others)) if others else goal[slot]
        return fill(text, wanted, goal)

    def _about(self, slot: str, goal: Goal, kinds: tuple[str, ...]) -> str:
        """A question about a slot; its values are still to be filled in."""
        phrases = self.phrases[slot]
        among = [kind for kind in kinds if kind in phrases or kind in _OF_FRAMES]
        kind = self.random.choice(among) if among else ""
        if kind == "whole":
            return fill(self._pick(phrases["whole"], goal), slot, goal)
        text = self._pick(self.frames[kind], goal) if kind else ""
        if kind in ("bare", "noun") and self.random.random() < 0.3:
            text = self.random.choice(("{}", "{}?", "- {}", "{},")).format(f"{{{kind.upper()}}}")
        for part in ("noun", "bare", "ask", "yes", "act", "two"):
            hole = f"{{{part.upper()}}}"
            if hole in text:
                text = text.replace(hole, self._pick(phrases.get(part, []), goal) or slot)
        return fill(text.replace("{VALUE}", f"{{{slot}}}"), slot, goal)

    def _contrast(self, wanted: str, known: list[str], goal: Goal) -> str:
        """A question about one detail that says that others are settled."""
        text = self._pick(self.frames["contrast"], goal)
        for hole, slot in zip(("", "2"), (known[0], known[-1]), strict=True):
            for part, mark in (("noun", f"{{KN{hole}}}"), ("bare", f"{{KB{hole}}}")):
                text = text.replace(mark, self._pick(self.phrases[slot][part], goal) or slot)
        for part in ("noun", "bare", "ask"):
            hole = f"{{{part.upper()}}}"
            text = text.replace(hole, self._pick(self.phrases[wanted][part], goal) or wanted)
        return fill(text, wanted, goal)

    def _strange(self, goal: Goal) -> str:
        """A question about something that no request has, at times beside a value."""
        rng, words = self.random, self.frames["unrelated"]
        value = goal[rng.choice(self._slots(goal))]
        holes = {"{U}": rng.choice(words), "{U2}": rng.choice(words), "{V}": str(value)}
        text = rng.choice(self.frames["strange"])
        for hole, word in holes.items():
            text = text.replace(hole, word)
        return text

    def _form(self, wanted: str, goal: Goal) -> str:
        """A form in which others' fields are filled in and this one is not."""
        rng = self.random
        others = [slot for slot in self._slots(goal) if slot != wanted]
        rng.shuffle(others)
        fields = [*others[: rng.randint(1, 3)], wanted]
        if rng.random() < 0.3:
            rng.shuffle(fields)
        between = rng.choice((": ", " = ", "=", " | ", ": "))
        blank = rng.choice(("?", "???", "<missing>", "null", "___", "TBD", "(required)", "...", ""))
        lines = []
        for slot in fields:
            bare = slot if rng.random() < 0.4 else self._pick(self.phrases[slot]["bare"], goal)
            lines.append(f"{bare}{between}{blank if slot == wanted else goal[slot]}")
        lead, item, end = rng.choice(
            (
                *(("", "", "\n"), ("", "- ", "\n"), ("Details:\n", "* ", "\n")),
                *(("| ", "", " |\n| "), ("{", "", ", "), ("find(", "", ", ")),
                *(("", "- [ ] ", "\n"), ("", "", "; ")),
            )
        )
        afters = ["", "", "", "\n\nPlease complete.", "\nWhat should I put?", " Please fill in."]
        if rng.random() < 0.3:
            lead, item, end = rng.choice(("", "Steps:\n", "To do:\n")), "", "\n"
            lines = [f"{number}. {line}" for number, line in enumerate(lines, 1)]
            number = fields.index(wanted) + 1
            asks = "What's the value in", "What goes in line", "Please tell me", "Can you help with"
            afters += [f"\n\n{ask} {number}?" for ask in asks]
        after = rng.choice(afters)
        return lead + end.join(item + line for line in lines) + after

    def _several(self, slots: list[str], goal: Goal) -> str:
        """A question about several details, in this order."""
        rng = self.random
        whole = rng.random() < 0.5
        frame = self._pick(self.frames["list" if whole else "nouns"], goal)
        kind = "ask" if whole else rng.choice(("noun", "noun", "bare"))
        literal = kind == "bare" and rng.random() < 0.4
        kinds = ["yes" if whole and rng.random() < 0.15 else kind for _ in slots]
        parts = [
            slot if literal else self._pick(self.phrases[slot][each], goal)
            for slot, each in zip(slots, kinds, strict=True)
        ]
        if not all(parts):
            return ""
        between = "\n- " if "\n" in frame else ", "
        first = between.join(parts[:-1])
        return fill(frame.replace("{A}", first).replace("{B}", parts[-1]), slots[0], goal)

    def _around(self, text: str, wanted: str, goal: Goal) -> str:
        """A question with what agents say before and after it."""
        rng = self.random
        for chance in (0.3, 0.12):
            if rng.random() < chance:
                text = self._known(wanted, goal) + text
        if rng.random() < 0.3:
            text = f"{self._pick(self.frames['chat'], goal)} {text}"
        if rng.random() < 0.2:
            text = f"{text} {self._pick(self.frames['after'], goal)}"
        if rng.random() < 0.06:
            text = f"{text} {self._known(wanted, goal)}"
        return text.replace("?", "") if rng.random() < 0.1 else text

    def _known(self, wanted: str, goal: Goal) -> str:
        """A statement about another detail."""
        others = [
            slot
            for slot in self._slots(goal)
            if slot != wanted and not isinstance(goal[slot], tuple)
        ]
        if not others:
            return ""
        about = self.random.choice(others)
        chance = self.random.random()
        if chance < 0.5:
            text = self._about(about, goal, ("settled" if chance < 0.4 else "task",))
        else:
            about = "" if self.random.random() < 0.25 else about
            text = self._pick(self.phrases[about]["known"], goal)
        end = self.random.choice((". ", ", but ", ". ", "; ", " - ", "\n", ", "))
        start = self.random.choice(("", "", "OK, ", "I see that ", "- "))
        return f"{start}{fill(text, wanted, goal)}{end}" if text else ""

    def _statement(self, goal: Goal) -> str:
        """One or two statements that ask nothing, or a question without what it asks for."""
        rng, parts = self.random, []
        if rng.random() < 0.4:
            frame = self._pick(self.frames[rng.choice(("noun", "bare", "ask", "yes", "act"))], goal)
            return re.sub(r"\{[A-Z]+\}", "", frame)
        for _ in range(rng.choice((1, 1, 2))):
            if rng.random() < 0.35:
                parts.append(self._pick(self.frames[rng.choice(("chat", "after"))], goal))
            else:
                parts.append(self._known("", goal).strip())
        return " ".join(parts)

    def _pick(self, phrases: list[str], goal: Goal) -> str:
        """One of the phrases whose values the goal has; "" for none."""
        own = {"value_a", "value_b", "NOUN", "BARE", "TWO", "ASK", "YES", "ACT", "VALUE", "A", "B"}
        own |= {"KN", "KB", "KN2", "KB2"}
        fitting = [one for one in phrases if set(_SLOT.findall(one)) - own <= set(goal)]
        return self.random.choice(fitting) if fitting else ""


def read_phrases(name: str) -> dict[str, Phrases]:
    """The phrases of a file, by slot and kind."""
    found: dict[str, Phrases] = {}
    slot = ""
    packed = (HERE / f"phrases_{name}.txt.gz").read_bytes()
    for line in gzip.decompress(packed).decode().splitlines():
        if re.fullmatch(r"\[\w*\]", line):
            slot = line[1:-1]
        elif line and not line.startswith("#"):
            kind, _, phrases = line.partition(": ")
            split = [one.strip().replace("\\n", "\n") for one in phrases.split(" | ")]
            found.setdefault(slot, {}).setdefault(kind, []).extend(split)
    return found


def fill(text: str, slot: str, goal: Goal) -> str:
    """A text with the values of a goal; what it lacks is left as it is."""

    def value(spot: re.Match[str]) -> str:
        place = {"value_a": 0, "value_b": 1}.get(spot[1])
        found = goal.get(slot if place is not None else spot[1], spot[0])
        return str(found[place or 0] if isinstance(found, tuple) else found)

    return _SLOT.sub(value, text)


def of_others(maker: Maker, wordings: dict[str, list[Any]]) -> Iterator[Example]:
    """Others' wordings with the values of every kind of goal, stated and left open."""
    for drawn in maker.goals:
        for slot, templates in wordings.items():
            for number, one in enumerate(templates):
                told = {"text": one, "first": slot} if isinstance(one, str) else one
                wanted = told.get("first", "")
                goal = dict(drawn[number % len(drawn)])
                if wanted and not {wanted, *told.get("rest", ())} <= set(goal):
                    continue
                other = next((g for g in drawn if wanted and g[wanted] != goal[wanted]), goal)
                if "{value_a}" in told["text"] and wanted:
                    goal[wanted] = (goal[wanted], other[wanted])
                if not measure.fits(told["text"], wanted, goal):
                    continue
                label = wanted or told.get("about", "")
                text = measure.fill(told["text"], wanted, goal)
                alone = label if label in maker.facts else ""
                yield maker.example(text, alone, goal, set())
                yield maker.example(text, alone, goal, {wanted or sorted(goal)[number % len(goal)]})
                yield maker.amid(text, alone, goal)


def cues_of(maker: Maker) -> dict[str, str]:
    """Words that are typical of a slot: in its phrases, hardly in those of others, in no frame."""
    counts: dict[str, Counter[str]] = {}
    for slot, phrases in maker.phrases.items():
        for kind in OF_SLOT:
            for phrase in phrases.get(kind, ()):
                for word in set(tokens(_SLOT.sub(" ", phrase).lower())):
                    counts.setdefault(word, Counter())[slot] += 1
    for slot, fact in maker.facts.items():
        for word in (word for word in fact.words if word.isalpha()):
            counts.setdefault(word, Counter())[slot] += 3
    frames = [one for kind, many in maker.frames.items() if kind != "unrelated" for one in many]
    common = {word for frame in frames for word in tokens(_SLOT.sub(" ", frame).lower())}
    found = {}
    for word, by_slot in sorted(counts.items()):
        if word in common:
            continue
        slot, times = by_slot.most_common(1)[0]
        if times >= 3 and times >= CLEAR * by_slot.total() and word.isalpha() and slot:
            found[word] = slot
    return found


def fit(examples: list[Example], slots: list[str], cues: dict[str, str]) -> tuple[Any, Any]:
    """The weights that make the examples likeliest under a penalty on their squares.

    Args:
        examples: questions with what they ask for.
        slots: every slot and "".
        cues: words that are typical of a slot.

    Returns:
        The weights of texts, of shape (`WORDS`, slots), and of slots in texts, of shape (`SPOTS`,).
    """
    count, width = len(examples), len(slots)
    texts = _rows((features(e.found, e.states) for e in examples), WORDS)
    spots = _rows(
        (names for e in examples for names in spot_features(slots, e.found, e.states, cues)), SPOTS
    )
    right = np.array([slots.index(e.wanted) for e in examples])
    texts_back, spots_back, every = texts.T.tocsr(), spots.T.tocsr(), np.arange(count)

    def loss(flat: Any) -> tuple[float, Any]:
        words, shared = flat[: WORDS * width].reshape(WORDS, width), flat[WORDS * width :]
        scores = texts @ words + (spots @ shared).reshape(count, width)
        scores -= scores.max(axis=1, keepdims=True)
        chances = np.exp(scores)
        total = chances.sum(axis=1, keepdims=True)
        value = -(scores[every, right] - np.log(total[:, 0])).mean()
        value += PENALTY * ((words**2).sum() + 0.1 * (shared**2).sum())
        slope = chances / total
        slope[every, right] -= 1
        slope /= count
        of_words = texts_back @ slope + 2 * PENALTY * words
        of_spots = spots_back @ slope.reshape(-1) + 0.2 * PENALTY * shared
        return value, np.concatenate([of_words.ravel(), of_spots])

    start = np.zeros(WORDS * width + SPOTS)
    limits = {"maxiter": ROUNDS, "maxcor": 8}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=limits).x
    return found[: WORDS * width].reshape(WORDS, width), found[WORDS * width :]


def _rows(named: Iterable[set[str]], width: int) -> csr_matrix:
    places = [np.array(buckets(names, width), dtype=np.int32) for names in named]
    starts = np.cumsum([0, *map(len, places)])
    columns = np.concatenate(places)
    return csr_matrix(
        (np.ones(len(columns), dtype=np.float32), columns, starts), shape=(len(places), width)
    )


def train(world: str, files: tuple[str, ...], out: Path) -> None:
    """Trains the classifier of a world and writes it."""
    goals: dict[frozenset[str], list[Goal]] = {}
    for scene in measure.scenes():
        for ask in scene.asks:
            if scene.world.name == world:
                goals.setdefault(frozenset(ask.goal), []).append(ask.goal)
    maker = Maker(world, list(goals.values()), SEED)
    examples = list(maker.questions(COUNT))
    for name in files:
        examples += of_others(maker, measure.read_wordings(name)[world])
    slots = [*maker.facts, ""]
    cues = cues_of(maker)
    words, spots = fit(examples, slots, cues)
    scale = np.abs(words).max() / 127
    np.savez_compressed(
        out,
        slots=np.array(slots),
        words=np.rint(words / scale).astype(np.int8),
        spots=np.rint(spots / scale).astype(np.int16),
        scale=scale,
        cues=np.array(list(cues)),
        cue_slots=np.array(list(cues.values())),
    )
    print(f"{world}: {len(examples)} questions, {out.stat().st_size // 1000} kB")


def main() -> None:
    """Trains the classifiers of our worlds, or says what training without a file gives on it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leave-out", choices=FILES)
    left_out = parser.parse_args().leave_out
    files = tuple(name for name in FILES if name != left_out)
    with tempfile.TemporaryDirectory() as scratch:
        for world in OURS:
            facts = find_world(world).facts
            source = Path(measure.__file__).parents[3] / "src" / "toolshift" / "worlds" / world
            out = (Path(scratch) if left_out else source) / (
                f"{world}.npz" if left_out else "questions.npz"
            )
            train(world, files, out)
            facts.weights = out  # type: ignore[attr-defined]
        if left_out:
            wordings, clean = measure.read_wordings(left_out), measure.scenes()
            print(measure.by_template(wordings, answer, clean))
            print(measure.end_to_end(wordings, answer, clean))


if __name__ == "__main__":
    main()
