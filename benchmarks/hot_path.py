"""Where the hot path stands: scored scripted episodes a second, and our own overhead a call.

    python benchmarks/hot_path.py [--seconds 3] [--json FILE]

A script replays the oracle's calls in clean scenes (made beforehand), and every episode is graded.
Beside it stands the floor that the libraries set: validate, dispatch, encode and record the same
calls with jsonschema-rs and msgspec and nothing of ours. All figures are CPU time of one core.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from machine import versions

from toolshift.core.scene import Applied, Scene
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import JSON, validator
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.episode.oracle import OracleAgent
from toolshift.shifts.registry import compose
from toolshift.worlds.registry import find_world

Script = list[tuple[str, str, dict[str, Any]]]
STACKS = {
    "three surface shifts": "identity_erasure schema_noise query_typos",
    "three shifts, a drifted format": "redirect format_drift identity_erasure",
}


def script_of(scene: Scene) -> Script:
    return [(step.kind, step.name or step.said, dict(step.arguments)) for step in scene.rehearsal]


def replay(scene: Scene, script: Script) -> Episode:
    episode = Episode(scene)
    for kind, name, arguments in script:
        if kind == "call":
            episode.call(name, arguments)
        else:
            episode.answer(name)
        episode.next_turn()
    return episode


def bare(scene: Scene, script: Script) -> None:
    """The same calls with nothing of ours between the agent and the tools."""
    session, record = scene.truth.open(), []
    for kind, name, arguments in script:
        if kind != "call":
            continue
        assert validator(scene.truth.by_name[name]).is_valid(arguments)
        data = scene.truth.actions[name](session.state, arguments)
        record.append((name, arguments, JSON.encode(data)))


def under(stack: str, scenes: list[Scene]) -> list[Scene]:
    """The scenes under a stack of shifts, as far as it applies."""
    found = []
    for scene in scenes:
        with suppress(NotApplicable):
            found.append(compose(scene, [Applied(name, 2) for name in stack.split()]))
    return found


def per_second(work: Callable[[], int], seconds: float) -> float:
    """Units of work a CPU second; the best of three rounds."""
    best = 0.0
    for _ in range(3):
        done, begun = 0, time.process_time()
        while (spent := time.process_time() - begun) < seconds / 3:
            done += work()
        best = max(best, done / spent)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    world = find_world("poi")
    scenes = [make_scene(world, kind, index) for kind in world.kinds for index in range(10)]
    scripts = [(scene, script_of(scene)) for scene in scenes]
    calls = sum(kind == "call" for _, script in scripts for kind, _, _ in script) / len(scripts)

    def scored() -> int:
        for scene, script in scripts:
            assert grade(replay(scene, script)).passed
        return len(scripts)

    def without_us() -> int:
        for scene, script in scripts:
            bare(scene, script)
        return len(scripts)

    def oracle() -> int:
        for scene in scenes:
            OracleAgent().play(Episode(scene))
        return len(scenes)

    def composed(stack: str) -> float:
        those = [(scene, script_of(scene)) for scene in under(stack, scenes)]

        def scored_so() -> int:
            for scene, script in those:
                assert grade(replay(scene, script)).passed
            return len(those)

        return per_second(scored_so, options.seconds)

    def reset() -> int:
        for scene in scenes:
            Episode(scene)
        return len(scenes)

    def reset_large() -> int:
        for scene in large:
            Episode(scene)
        return len(large)

    def idle() -> float:
        tracemalloc.start()
        kept = [Episode(scene) for scene in scenes for _ in range(20)]
        size = tracemalloc.get_traced_memory()[0] / len(kept)
        tracemalloc.stop()
        return size

    large = [make_scene(world, kind, 0, size=100_000) for kind in world.kinds]
    reset_large()
    figures = {
        "scored scripted episodes/s": per_second(scored, options.seconds),
        "the same calls without us, episodes/s": per_second(without_us, options.seconds),
        "oracle episodes/s": per_second(oracle, options.seconds),
        **{f"scored under {name}, episodes/s": composed(STACKS[name]) for name in STACKS},
        "calls an episode": calls,
        "reset, us": 1e6 / per_second(reset, options.seconds),
        "reset in a world of 100,000 entities, us": 1e6 / per_second(reset_large, options.seconds),
        "bytes an idle episode": idle(),
    }
    scored_us = 1e6 / figures["scored scripted episodes/s"]
    bare_us = 1e6 / figures["the same calls without us, episodes/s"]
    figures["our overhead a call, us (grading included)"] = (scored_us - bare_us) / calls
    for name, value in figures.items():
        print(f"{name:60} {value:12,.2f}")
    if options.json:
        options.json.write_text(json.dumps({**figures, **versions()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
