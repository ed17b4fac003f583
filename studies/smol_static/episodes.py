"""Writes clean oracle episodes as training data: one JSON line {"tools", "messages"} each.

python studies/smol_static/episodes.py --episodes 1500 --out build/static.jsonl
"""

from __future__ import annotations

import argparse
from pathlib import Path

from toolshift.agents.oracle import OracleAgent
from toolshift.episode import Episode, messages
from toolshift.scene import make_scene
from toolshift.tool import JSON
from toolshift.worlds import find_world


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=1500)
    parser.add_argument("--world", default="poi")
    parser.add_argument("--without", nargs="*", default=(), help="task kinds to leave out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=2000)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    world = find_world(options.world)
    kinds = [kind for kind in world.kinds if kind not in options.without]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("wb") as file:
        for number in range(options.episodes):
            index, kind = divmod(number, len(kinds))
            scene = make_scene(world, kinds[kind], index, options.seed, "train", options.size)
            episode = Episode(scene)
            tools = list(episode.observation.tools)
            OracleAgent().play(episode)
            row = {"tools": tools, "messages": messages(scene, episode.steps)}
            file.write(JSON.encode(row) + b"\n")


if __name__ == "__main__":
    main()
