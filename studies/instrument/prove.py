"""The oracle proves scenes that cover every world, shift, severity and legal pair of shifts.

    python studies/instrument/prove.py [--tasks 8] [--pairs 5] [--workers 2]

A scene is proven where the oracle, which acts only on what is shown, ends it rightly: with the
right answer and effects, or with a refusal for the right reason. In the same scenes an agent that
does nothing but end the episode, one that always refuses, and one that parrots the last code
are played. Writes `proof.json` beside this file and exits with 1 if anything is not proven.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from itertools import combinations
from pathlib import Path

from toolshift.agents.planted import planted
from toolshift.core.scene import Applied, Scene
from toolshift.core.shift import NotApplicable
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.episode.oracle import OracleAgent
from toolshift.shifts.registry import compose, find_shift, shifts
from toolshift.worlds.registry import OURS, find_world

Job = tuple[str, str, int, int, tuple[tuple[str, int], ...]]
REFLEXES = ("always_refuses", "parrots")


def jobs(tasks: int, pairs: int) -> list[Job]:
    """Every shift and severity on `tasks` tasks a world, every pair on `pairs` tasks in all."""
    found: list[Job] = []
    for world in OURS:
        kinds = list(find_world(world).kinds)
        for number in range(tasks):
            place = (world, kinds[number % len(kinds)], number // len(kinds), number % 3)
            found.append((*place, ()))
            found += [
                (*place, ((name, severity),))
                for name, shift in shifts().items()
                for severity in shift.severities
            ]
    for number, (one, other) in enumerate(combinations(shifts(), 2)):
        for again in range(pairs):
            draw = number * pairs + again
            world = OURS[draw % 3]
            kinds = list(find_world(world).kinds)
            place = (world, kinds[draw // 3 % len(kinds)], 100 + again, draw % 3)
            found.append((*place, (at(one, draw), at(other, draw // 3))))
    return found


def at(name: str, turn: int) -> tuple[str, int]:
    """A shift at its severities in turn."""
    has = find_shift(name).severities
    return name, has[turn % len(has)]


def idle(scene: Scene) -> Episode:
    """An episode in which nothing is done but ending it."""
    episode = Episode(scene)
    while not episode.end:
        episode.answer("")
    return episode


def try_one(job: Job) -> tuple[str, str]:
    """What became of one scene, and a note."""
    world, kind, index, seed, stack = job
    try:
        scene = make_scene(find_world(world), kind, index, seed)
        scene = compose(scene, [Applied(name, severity) for name, severity in stack])
    except NotApplicable as reason:
        return "not applicable", str(reason)
    except Exception as error:  # as is a shift that fails
        return "not proven", f"{job}: {type(error).__name__}: {error}"
    episode = Episode(scene)
    try:
        OracleAgent().play(episode)
    except Exception as error:  # a broken scene is what this looks for
        return "not proven", f"{job}: {type(error).__name__}: {error}"
    verdict = grade(episode)
    if not verdict.passed or (not scene.solvable and not verdict.right_reason):
        return "not proven", f"{job}: {episode.end}, {episode.steps[-1]}"
    if grade(idle(scene)).passed:
        return "inaction passes", str(job)
    for reflex in REFLEXES:
        played = Episode(scene)
        planted(reflex).play(played)
        if grade(played).passed and scene.solvable:
            return f"{reflex} passes", str(job)
    return ("refused" if not scene.solvable else "solved"), ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=66, help="tasks a world for single shifts")
    parser.add_argument("--pairs", type=int, default=9, help="scenes for each pair of shifts")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    begun, work = time.time(), jobs(options.tasks, options.pairs)
    with ProcessPoolExecutor(options.workers) as pool:
        outcomes = list(pool.map(try_one, work, chunksize=100))
    counts = Counter(outcome for outcome, _ in outcomes)
    wrong = [note for outcome, note in outcomes if " pass" in outcome or outcome == "not proven"]
    singles = Counter(
        job[4][0][0]
        for job, (outcome, _) in zip(work, outcomes, strict=True)
        if len(job[4]) == 1 and outcome in ("solved", "refused")
    )
    pairs = {
        tuple(name for name, _ in job[4])
        for job, (outcome, _) in zip(work, outcomes, strict=True)
        if len(job[4]) == 2 and outcome in ("solved", "refused")
    }
    report = {
        "command": f"python studies/instrument/prove.py --tasks {options.tasks} "
        f"--pairs {options.pairs}",
        "scenes proven": counts["solved"] + counts["refused"],
        "outcomes": dict(counts),
        "scenes of each shift": dict(sorted(singles.items())),
        "pairs of shifts tried": len(list(combinations(shifts(), 2))),
        "pairs with a legal scene": len(pairs),
        "wrong": wrong[:20],
        "seconds": round(time.time() - begun),
        "versions": {"toolshift": version("toolshift"), "python": platform.python_version()},
    }
    Path(__file__).with_name("proof.json").write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
