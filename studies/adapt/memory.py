"""What a memory of lessons is worth: the same drift over several tasks, one after another.

    python studies/adapt/memory.py [--pool test]
    python studies/adapt/memory.py --pages

A world drifts once: the names of its tools change as in one scene of a shift, and five tasks of one
kind follow in that drifted world. `explores` knows each task by heart, tries another tool once an
episode where a call fails (the one whose description is likest to what it knows), and gives up at
the second failure. It reads what a system message says failed and worked. `by_heart` does not.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

from agents import ByHeart, Explores, Reflects, memory_of, reflection
from harm import exact

from toolshift.adapt.layer import ASKING, REWRITING, adapt
from toolshift.adapt.lessons import Lessons
from toolshift.core.scene import Scene
from toolshift.drift.lock import lock_shown
from toolshift.episode.contract import converse
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.shifts.registry import apply
from toolshift.worlds.registry import find_world

HERE = Path(__file__).parent
FILE = HERE / "memory.json.gz"
START, END = "<!-- memory -->", "<!-- end of memory -->"
SHIFTS = ("semantic_rename", "identity_erasure", "tool_name_noise")
ARMS = ("nothing", "lessons", "reflexion", "adapt")
TASKS = 5


def drifted(world: Any, kind: str, shift: str, severity: int, pool: str) -> list[Scene]:
    """Tasks of one kind in one drifted world."""
    scenes = [make_scene(world, kind, index, pool=pool) for index in range(TASKS)]
    layers = apply(scenes[0], shift, severity).layers
    return [scene.with_(layers=layers) for scene in scenes]


def agent_of(name: str, scene: Scene) -> ByHeart:
    """A fresh agent that knows the task."""
    memory = memory_of(scene.clean.rehearsal, True)
    if name == "explores":
        return Explores(memory, {t.name: t.description for t in scene.clean.tools})
    return ByHeart(name, memory)


def played(name: str, arm: str, scenes: list[Scene]) -> list[tuple[bool, int, int]]:
    """Whether each task was passed, with its failed calls, and its interventions."""
    lessons, told, found = Lessons(), "", []
    for scene in scenes:
        inner: Any = agent_of(name, scene)
        seen: list[Any] = []
        within = inner
        if arm in ("lessons", "adapt"):
            only = ["lessons"] if arm == "lessons" else ["lessons", *REWRITING, *ASKING]
            lock = lock_shown(scene.clean.tools)
            within = adapt(inner, lock, only, (), seen.append, lessons, rewrite=True)
        if arm == "reflexion" and told:
            within = Reflects(inner, told)
        episode = Episode(scene)
        converse(within, episode)
        verdict = grade(episode)
        told = reflection(episode.steps, verdict.passed) or told
        found.append((verdict.passed, verdict.errors, len(seen)))
    return found


def run(pool: str) -> dict[str, Any]:
    """Passed episodes and failed calls, by agent, arm and place in the series."""
    counts: dict[str, list[Counter[str]]] = {}
    for world in map(find_world, ("poi", "medical", "retail")):
        for kind in world.kinds:
            for shift in SHIFTS:
                try:
                    scenes = drifted(world, kind, shift, 2, pool)
                    [scene.rehearsal for scene in scenes]
                except Exception as fault:  # a shift that does not fit this kind of task
                    print(f"left out: {world.name}/{kind} {shift}: {fault}")
                    continue
                for name in ("by_heart", "explores"):
                    for arm in ARMS:
                        places = counts.setdefault(
                            f"{name}|{arm}", [Counter() for _ in range(TASKS)]
                        )
                        for place, one in enumerate(played(name, arm, scenes)):
                            places[place].update(
                                episodes=1, passed=int(one[0]), failed=one[1], told=one[2]
                            )
    return {key: [dict(one) for one in places] for key, places in counts.items()}


def tables(results: dict[str, Any]) -> str:
    """The table of the page."""
    lines: list[str] = []
    for pool, part in results.items():
        count = next(iter(part.values()))[0]["episodes"]
        lines += [
            f"### Lessons in pool {pool}: {count} drifted worlds, five tasks each",
            "",
            "Passed in percent, by the place of the task; failed calls an episode in the last two "
            "columns.",
            "",
            "| agent | in | first | second | third | fifth | failed, first | failed, fifth |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for key, places in part.items():
            name, _, arm = key.partition("|")
            passed = [exact(places[at]["passed"], places[at]["episodes"]) for at in (0, 1, 2, 4)]
            told = " | ".join(f"{one[0]:.0f} [{one[1]:.0f}, {one[2]:.0f}]" for one in passed)
            failed = [places[at].get("failed", 0) / places[at]["episodes"] for at in (0, 4)]
            lines.append(f"| {name} | {arm} | {told} | {failed[0]:.2f} | {failed[1]:.2f} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pool", default="test")
    parser.add_argument("--pages", action="store_true")
    options = parser.parse_args()
    results = json.loads(gzip.decompress(FILE.read_bytes())) if FILE.exists() else {}
    if not options.pages:
        results[options.pool] = run(options.pool)
        FILE.write_bytes(gzip.compress(json.dumps(results).encode(), mtime=0))
    page = HERE / "README.md"
    text = page.read_text()
    if START in text:
        before, after = text.index(START) + len(START), text.index(END)
        page.write_text(f"{text[:before]}\n\n{tables(results)}\n{text[after:]}")
    print(tables(results))


if __name__ == "__main__":
    main()
