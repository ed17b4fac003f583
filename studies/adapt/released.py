"""The releases of `studies/retrain` as shifts, made as `toolshift retrain` makes them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from toolshift.shifts.registry import find_shift
from toolshift.shifts.release.file import FORMAT, ShiftFile
from toolshift.shifts.release.inputs import read_side
from toolshift.shifts.release.mapping import Answers
from toolshift.shifts.release.resolve import settle

sys.path.append(str(Path(__file__).parents[1] / "retrain"))
from releases import TOOLS, listed


def release_files(folder: Path) -> dict[str, str]:
    """Writes each release as a file of a shift, and makes it known.

    Args:
        folder: for the files.

    Returns:
        By version, the name that the shift goes by.
    """
    before, found = folder / "tools-v1.json", {}
    before.write_text(json.dumps(listed("v1")))
    for version in TOOLS:
        after, shift = folder / f"tools-{version}.json", folder / f"{version}.json"
        after.write_text(json.dumps(listed(version)))
        sides = read_side(str(before)), read_side(str(after))
        answers = settle(*sides, Answers(), accept=True).answers
        shift.write_bytes(ShiftFile(FORMAT, version, *sides, answers).encode())
        found[version] = find_shift(str(shift)).name
    return found
