"""Scored scripted episodes a second beside BFCL's multi-turn executors, in one run on one core.

    python benchmarks/peers.py [--seconds 6] [--json FILE]

BFCL plays its own ground truth: it executes the calls of each turn, and its checker then executes
them again beside the ground truth and compares states. Ours play the oracle's calls in clean and in
shifted scenes and grade them. Rounds of both take turns; figures are medians of CPU time.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from hot_path import STACKS, replay, script_of, under
from machine import versions

from toolshift.core.scene import Scene
from toolshift.episode.draw import make_scene
from toolshift.episode.grade import grade
from toolshift.worlds.bfcl import wheel
from toolshift.worlds.registry import find_world

CATEGORY = "multi_turn_base"
ENTRIES = 40
ROUNDS = 5


class Peer:
    """BFCL's executors and checker on some entries; each episode under a name of its own."""

    def __init__(self) -> None:
        self.checker = wheel.multi_turn_checker()
        self.utils = wheel.part("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils")
        truths = wheel.answers(CATEGORY)
        self.entries = [(each, truths[each["id"]]) for each in wheel.entries(CATEGORY)[:ENTRIES]]
        self.calls = sum(len(turn) for _, truth in self.entries for turn in truth) / ENTRIES
        self._known = set(vars(self.utils))
        self._number = 0

    def __call__(self) -> int:
        """Plays and checks every entry once."""
        for entry, truth in self.entries:
            self._number += 1
            name = f"peer{self._number}"
            for turn in truth:
                for call in turn:
                    self.utils.execute_multi_turn_func_call(
                        [call],
                        entry["initial_config"],
                        entry["involved_classes"],
                        name,
                        entry["id"],
                    )
            said = [[[call] for call in turn] for turn in truth]
            found = self.checker.multi_turn_checker(said, truth, entry, CATEGORY, name)
            assert found["valid"], found
        for kept in set(vars(self.utils)) - self._known:  # its instances are globals
            delattr(self.utils, kept)
        return len(self.entries)


class Ours:
    """The oracle's calls in some scenes, played and graded."""

    def __init__(self, scenes: list[Scene]) -> None:
        self.scripts = [(scene, script_of(scene)) for scene in scenes]
        spoken = [kind for _, script in self.scripts for kind, _, _ in script]
        self.calls = spoken.count("call") / len(self.scripts)

    def __call__(self) -> int:
        """Plays and grades every scene once."""
        for scene, script in self.scripts:
            assert grade(replay(scene, script)).passed
        return len(self.scripts)


def rate(work: Callable[[], int], seconds: float) -> float:
    """Episodes a CPU second."""
    done, begun = 0, time.process_time()
    while (spent := time.process_time() - begun) < seconds:
        done += work()
    return done / spent


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=6.0, help="of each side, in all")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    world = find_world("poi")
    scenes = [make_scene(world, kind, index) for kind in world.kinds for index in range(10)]
    sides: dict[str, Any] = {"BFCL": Peer(), "clean": Ours(scenes)}
    sides |= {name: Ours(under(stack, scenes)) for name, stack in STACKS.items()}
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, work in sides.items():
            found[name].append(rate(work, options.seconds / ROUNDS))
    rows = {}
    for name, work in sides.items():
        episodes = median(found[name])
        times = median(one / two for one, two in zip(found[name], found["BFCL"], strict=True))
        equal = times * work.calls / sides["BFCL"].calls
        rows[name] = {"episodes": episodes, "calls": work.calls, "times": times, "equal": equal}
        print(
            f"{name:32s} {episodes:8.0f} episodes a second of {work.calls:.1f} calls: "
            f"{times:5.1f} times BFCL, {equal:5.1f} times by calls"
        )
    if options.json:
        options.json.write_text(json.dumps({"versions": versions(), "sides": rows}, indent=1))


if __name__ == "__main__":
    main()
