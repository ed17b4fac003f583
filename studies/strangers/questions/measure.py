"""Measure how questions in strangers' words are understood: ``python .../measure.py``.

Three figures for each file of wordings, by today's rule and by the former one:

*Slot*: each template, with every combination of details that a task can have, filled with values
from tasks: the share whose first slot is right. The request states every detail (``stated``) or
leaves out the one that is asked for (``left out``).

*Several* and *unanswerable*: the first of several things, and questions that no user can answer.

*Solved*: the oracle asks in these wordings wherever it asks, under the shifts that make it ask.
The share of those scenes in which the plain oracle passes and this one does too.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import former

from toolshift.core.ask import Ask
from toolshift.core.fact import Fact, Goal
from toolshift.core.files import read_bytes, stored
from toolshift.core.scene import Scene
from toolshift.core.shift import NotApplicable
from toolshift.core.solver import Solver, Untraceable
from toolshift.episode import episode as episodes
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode, Over
from toolshift.episode.grade import grade
from toolshift.episode.oracle import EpisodeBackend, OracleAgent
from toolshift.episode.user import Answer
from toolshift.episode.user import answer as today
from toolshift.shifts.registry import apply, find_shift
from toolshift.worlds.registry import OURS, find_world

HERE = Path(__file__).parent
FILES = ("tuned_on.json", "held_out.json")
SHIFTS = (
    "query_ambiguity",
    "query_underspecification",
    "contradictory_request",
    "contradictory_request_lookalike",
)
TASKS = 6
_SLOT = re.compile(r"\{(\w+)\}")

Matcher = Callable[[str, Ask, Mapping[str, Fact]], Answer]
Wordings = dict[str, dict[str, list[Any]]]


class Words(EpisodeBackend):
    """An oracle's backend that asks in the wordings of a file."""

    def __init__(self, episode: Episode, wordings: dict[str, list[Any]], seed: str) -> None:
        super().__init__(episode)
        self.wordings = wordings
        self.random = random.Random(seed)
        self.asked = 0

    def ask(self, slot: str, question: str) -> str:
        goal = self.episode.ask_now.goal
        fitting = [one for one in self.wordings.get(slot, []) if fits(one, slot, goal)]
        fitting += [
            one["text"]
            for one in self.wordings["_several"]
            if one["first"] == slot
            and set(one["rest"]) <= set(goal)
            and fits(one["text"], slot, goal)
        ]
        self.asked += 1
        return super().ask(slot, fill(self.random.choice(fitting), slot, goal))


def read_wordings(name: str) -> Wordings:
    """A file of wordings by world and slot; it may be stored compressed."""
    wordings: Wordings = json.loads(read_bytes(stored(HERE / name)))
    return wordings


def fits(template: str, slot: str, goal: Goal) -> bool:
    """Whether a goal has what a template mentions."""
    named = set(_SLOT.findall(template))
    if named & {"value_a", "value_b"} and not isinstance(goal.get(slot), tuple):
        return False
    return named - {"value_a", "value_b"} <= set(goal)


def fill(template: str, slot: str, goal: Goal) -> str:
    """A template with the values of a goal."""

    def value(spot: re.Match[str]) -> str:
        number = {"value_a": 0, "value_b": 1}.get(spot[1])
        found = goal[slot if number is not None else spot[1]]
        return str(found[number or 0] if isinstance(found, tuple) else found)

    return _SLOT.sub(value, template)


def scenes() -> list[Scene]:
    """Clean scenes of every kind of task in our three worlds."""
    return [
        make_scene(find_world(world), kind, index)
        for world in OURS
        for kind in find_world(world).kinds
        for index in range(TASKS)
    ]


def by_template(wordings: Wordings, matcher: Matcher, clean: list[Scene]) -> dict[str, str]:
    """The shares of templates that are understood, over the goals of our tasks."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    goals: dict[tuple[str, frozenset[str]], list[Goal]] = {}
    for scene in clean:
        for ask in scene.asks:
            goals.setdefault((scene.world.name, frozenset(ask.goal)), []).append(ask.goal)
    for (world, slots), drawn in goals.items():
        facts = find_world(world).facts
        for slot, templates in wordings[world].items():
            for number, one in enumerate(templates):
                text = one if isinstance(one, str) else one["text"]
                wanted = slot if isinstance(one, str) else one.get("first", "")
                goal = dict(drawn[number % len(drawn)])
                other = next(
                    (g for g in drawn if wanted and g.get(wanted) != goal.get(wanted)), goal
                )
                if (
                    wanted
                    and not {wanted, *(one if isinstance(one, dict) else {}).get("rest", ())}
                    <= slots
                ):
                    continue
                if "{value_a}" in text and wanted:
                    goal[wanted] = (goal[wanted], other[wanted])
                if not fits(text, wanted, goal):
                    continue
                question = fill(text, wanted, goal)
                known = {k: v for k, v in goal.items() if k in facts}
                full = " ".join(str(v) for v in known.values())
                short = " ".join(str(v) for k, v in known.items() if k != wanted)
                for name, said in (("stated", full), ("left out", short)):
                    ask = Ask(said, goal, _unsolved, None)
                    got = matcher(question, ask, facts).slot
                    good = got == wanted if wanted else got not in goal
                    kind = slot.strip("_") if slot.startswith("_") else f"slot, {name}"
                    if slot.startswith("_") and name == "left out":
                        continue
                    right[kind] += good
                    total[kind] += 1
    return {kind: share(right[kind], total[kind]) for kind in sorted(total)}


def _unsolved(solver: Solver, env: Any) -> str:
    return ""


def end_to_end(wordings: Wordings, matcher: Matcher, clean: list[Scene]) -> dict[str, str]:
    """The shares of scenes that the oracle solves when it asks in these words."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for scene in clean:
        for name in SHIFTS:
            for severity in find_shift(name).severities:
                try:
                    shifted = apply(scene, name, severity)
                except NotApplicable:
                    continue
                plain = Episode(shifted, live=False)
                OracleAgent().play(plain)
                if not any(step.kind == "ask" for step in plain.steps):
                    continue
                if not grade(plain).passed:
                    continue
                episodes.user_answers = matcher  # type: ignore[attr-defined]
                try:
                    passed = asks_in_words(
                        shifted, wordings[scene.world.name], name + str(severity)
                    )
                finally:
                    episodes.user_answers = today  # type: ignore[attr-defined]
                for key in (name, "all"):
                    right[key] += passed
                    total[key] += 1
    return {key: share(right[key], total[key]) for key in sorted(total)}


def asks_in_words(scene: Scene, wordings: dict[str, list[Any]], seed: str) -> bool:
    """Whether the oracle passes in a scene where it asks in these words."""
    episode = Episode(scene, live=False)
    backend = Words(episode, wordings, scene.task.id + seed)
    agent = OracleAgent()
    try:
        while not episode.end:
            agent.work(episode, backend)
    except Over:
        pass
    except Untraceable:
        return False
    return grade(episode).passed


def share(right: int, total: int) -> str:
    """A share in words: "99.1% of 321"."""
    return f"{100 * right / total:.1f}% of {total}" if total else "none"


def main() -> None:
    """Measures every file of wordings there is, and writes results.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", nargs="+", default=FILES)
    files = parser.parse_args().files
    clean = scenes()
    out = HERE / "results.json"
    results = json.loads(out.read_text()) if out.exists() else {}
    for name in files:
        wordings = read_wordings(name)
        results[name] = {
            rule: {
                "templates": by_template(wordings, matcher, clean),
                "solved": end_to_end(wordings, matcher, clean),
            }
            for rule, matcher in (("today", today), ("46c7003", former.answer))
        }
    out.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
