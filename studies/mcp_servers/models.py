"""Writes the table of models of `studies/mcp_servers/README.md`, and why they failed.

    python studies/mcp_servers/models.py [FOLDER]     FOLDER as in models.sh; else the kept runs

Prints them as Markdown and lines; the sentences around them are written by hand.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from toolshift.runs.run_folder import RunFolder

KEPT = Path(__file__).with_name("models")
WORLDS = ("memory", "thinking", "git")


def main(folder: Path) -> None:
    """Prints what passed by agent and server, and the causes by agent."""
    passed, played = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    causes = Counter[tuple[str, str]]()
    for world in WORLDS:
        for episode in RunFolder.read(folder / world).records():
            key = episode.agent, world
            played[key] += 1
            passed[key] += episode.grade.passed
            if not episode.grade.passed:
                causes[episode.agent, episode.grade.cause] += 1
    print(f"| of the scenes | {' | '.join(WORLDS)} |\n|---|{'---:|' * len(WORLDS)}")
    for agent in dict.fromkeys(agent for agent, _ in played):
        cells = (f"{passed[agent, world]} of {played[agent, world]}" for world in WORLDS)
        print(f"| {agent} | {' | '.join(cells)} |")
    for (agent, cause), many in causes.most_common():
        print(f"{agent}: {cause} {many}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else KEPT)
