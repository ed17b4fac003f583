"""Compares the episodes of one adapter on two devices: which verdicts differ?

    python studies/decisive/devices.py

`on_gpu.jsonl.xz` has the 760 episodes of `paft-graph`, seed 0, that were played on the H200 in
bfloat16 before the time was up; the stage has all 1,160, played on two cores in float32.
"""

from __future__ import annotations

import sys
from pathlib import Path

from toolshift_lab.frozen import unpack

from toolshift.core.files import lines
from toolshift.runs.run_folder import Record, RunFolder

HERE = Path(__file__).parent
STAGE = next(unpack(HERE.parent / "stages").glob("paft-graph-decisive-seed0-*"))


def main() -> int:
    """Prints the comparison; returns the exit code."""
    folder = RunFolder.read(next(STAGE.glob("run-*")))
    there = {record.cell: record for record in folder.records()}
    pairs = [(each, there[each.cell]) for each in lines(HERE / "on_gpu.jsonl.xz", Record)]
    same = sum(one.steps == other.steps for one, other in pairs)
    gained = sum(other.grade.passed > one.grade.passed for one, other in pairs)
    lost = sum(other.grade.passed < one.grade.passed for one, other in pairs)
    print(f"{len(pairs)} episodes on both: {same} step by step the same")
    print(f"passed on the H200 only: {lost}; on two cores only: {gained}")
    print(
        f"passed: {sum(one.grade.passed for one, _ in pairs)} on the H200, "
        f"{sum(other.grade.passed for _, other in pairs)} on two cores"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
