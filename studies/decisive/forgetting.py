"""What the rounds of `paft-graph-dagger`, seed 0, made of what the first fit could do.

    python studies/decisive/forgetting.py

`forgetting.jsonl.gz` has an episode a line: scenes, task, verdict, calls. They were played by

    toolshift run --agent smol,adapter=STAGE/round-0,name=r0 \\
        --agent smol,adapter=STAGE/round-1/model,name=r1 --agent smol,adapter=STAGE/model,name=r2 \\
        --pool dev --seed 1000 --kind listing --kind hours --kind route --kind visit --tasks 12 \\
        --shift redirect:2 --shift no_such_entity:2 --max-repeats 6

where STAGE is the folder of the stage with its weights, and broken off after 118 of 144.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from toolshift.core.files import lines

HERE = Path(__file__).parent


class Played(msgspec.Struct):
    """One episode."""

    fit: str
    scenes: str
    passed: bool


def main() -> int:
    """Prints, by scenes and fit, how many passed; returns the exit code."""
    episodes = list(lines(HERE / "forgetting.jsonl.gz", Played))
    for scenes in dict.fromkeys(each.scenes for each in episodes):
        told = []
        for fit in dict.fromkeys(each.fit for each in episodes):
            found = [e.passed for e in episodes if (e.fit, e.scenes) == (fit, scenes)]
            told.append(f"{fit} {sum(found)} of {len(found)}" if found else f"{fit} not played")
        print(f"{scenes}: {', '.join(told)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
