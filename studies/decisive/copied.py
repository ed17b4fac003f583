"""How often a model takes added documentation for the name of a tool or for its answer.

    python studies/decisive/copied.py

The placebo adds sentences to the descriptions and changes nothing that has to be done. Of each arm
and seed: in how many episodes under it the first thing that is said, or the name of the first tool
that is called, begins with the first word of such a sentence.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from toolshift_lab.frozen import unpack

from toolshift.core.scene import Scene
from toolshift.runs.cell import Cell, build
from toolshift.runs.run_folder import Record, RunFolder

STAGES = unpack(Path(__file__).parent.parent / "stages")
IN_POI = "run-aa1b2586-d4e763ef"
SENTENCE = re.compile(r"(?:^|[.:]\s+)[^\w]*(\w+)")
WORD = re.compile(r"[^\W_]+")


def main() -> int:
    """Prints a line a stage; returns the exit code."""
    for folder in sorted(STAGES.glob(f"*-decisive-*/{IN_POI}")):
        run = RunFolder.read(folder)
        pairs = [(each, run.cell(each)) for each in run.records()]
        under = [(each, cell) for each, cell in pairs if cell.stack == "placebo:2"]
        hits = sum(begins_with(each) in added(cell) for each, cell in under)
        print(f"{folder.parent.name.rpartition('-')[0]}: {hits} of {len(under)}")
    return 0


def added(cell: Cell) -> set[str]:
    """The first words of the sentences that the placebo adds."""
    clean = Cell(cell.world, cell.kind, cell.index, cell.seed, cell.pool, cell.size)
    return set(openings(build(cell))) - set(openings(build(clean)))


def openings(scene: Scene) -> Iterator[str]:
    """The first word of each sentence of the descriptions."""
    for tool in scene.tools:
        yield from (word.lower() for word in SENTENCE.findall(tool.description))


def begins_with(record: Record) -> str:
    """The first word of the name of the first tool that is called, or of what is said instead."""
    first = record.steps[0]
    words = WORD.findall(first.name or first.said)
    return words[0].lower() if words else ""


if __name__ == "__main__":
    sys.exit(main())
