"""What the adaptation layer adds to a turn of an agent where nothing drifted.

    python benchmarks/adapt_overhead.py [--seconds 3] [--json FILE]

An agent that knows its next call at once is asked at every turn of conversations of clean scenes of
three worlds, alone and in the layer; the difference is the layer's. CPU time of one core, the best
of five rounds. A longer conversation costs more, for the layer keeps nothing between turns.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import toolshift
from toolshift.core.calls import ToolCall
from toolshift.core.message import Reply, Turn
from toolshift.drift.lock import lock_shown
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.worlds.registry import find_world

AIM = 50.0


class Next:
    """Says what it is told to say next."""

    name = "next"

    def __init__(self) -> None:
        self.said = Reply("")

    def reply(self, turn: Turn) -> Reply:
        return self.said


def turns_of(scene: Any) -> list[tuple[Turn, Reply]]:
    """Each turn of the sound agent that makes a call, and the call."""
    episode, found = Episode(scene), []
    for step in scene.rehearsal:
        if step.kind != "call":
            break
        reply = Reply(calls=(ToolCall(step.name, step.given),))
        found.append((episode.observation, reply))
        episode.take(reply)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    work = []
    for name in ("poi", "medical", "retail"):
        world = find_world(name)
        for kind in world.kinds:
            scene = make_scene(world, kind, 0)
            inner = Next()
            agent = toolshift.adapt(inner, lock=lock_shown(scene.tools))
            work += [(inner, agent, turn, reply) for turn, reply in turns_of(scene)]

    def spent(layer: bool) -> float:
        """Microseconds a call."""
        done, begun = 0, time.process_time()
        while (took := time.process_time() - begun) < options.seconds / 10:
            for inner, agent, turn, reply in work:
                inner.said = reply
                Reply.of((agent if layer else inner).reply(turn))
            done += len(work)
        return took / done * 1e6

    spent(True)
    alone = min(spent(False) for _ in range(5))
    within = min(spent(True) for _ in range(5))
    figures = {
        "calls": len(work),
        "messages a turn": sum(len(turn.messages) for _, _, turn, _ in work) / len(work),
        "tools a turn": sum(len(turn.tools) for _, _, turn, _ in work) / len(work),
        "the agent alone, us a call": round(alone, 2),
        "in the layer, us a call": round(within, 2),
        "the layer adds, us a call": round(within - alone, 2),
        "aim, us a call": AIM,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    for name, value in figures.items():
        print(f"{name:32} {value}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
