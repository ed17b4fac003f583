"""What a folder of `toolshift retrain` holds, as the small record that stands beside this script.

python studies/retrain/result.py FOLDER       # writes result.json and prints it
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from toolshift.runs.run_folder import RunFolder
from toolshift.shifts.registry import find_shift

HERE = Path(__file__).parent
TRAINED = ("rows", "steps", "tokens", "cpu_seconds", "wall_seconds", "last_loss", "versions")


def passed(folder: Path) -> dict[str, dict[str, str]]:
    """Passed tasks of a run, clean and under the release, by kind; and why others failed."""
    run = RunFolder.read(folder)
    cells = {cell.id: cell for cell in run.plan.cells}
    counts: dict[str, Counter[str]] = {}
    for record in run.records():
        cell = cells[record.cell]
        some = counts.setdefault("new tools" if cell.shifts else "old tools", Counter())
        kind = cell.lineage.split("/")[1]
        some[f"{kind}, of"] += 1
        some[kind] += record.grade.passed
        if record.grade.cause:
            some[f"cause: {record.grade.cause}"] += 1
    return {tools: dict(sorted(some.items())) for tools, some in sorted(counts.items())}


def record_of(folder: Path) -> dict[str, Any]:
    """The record of a retraining, without paths of the machine."""
    find_shift(str(folder / "release.json"))
    asked = json.loads((folder / "asked.json").read_text())
    asked["settings"]["adapter"] = Path(asked["settings"]["adapter"]).name
    trained = json.loads((folder / "model" / "training.json").read_text())
    curve = (folder / "model" / "curves.jsonl").read_text().splitlines()
    return {
        "asked": asked,
        "trained": {key: trained[key] for key in TRAINED},
        "loss": [round(json.loads(line)["loss"], 4) for line in curve],
        "before": passed(folder / "before"),
        "after": passed(folder / "after"),
        "decision": json.loads((folder / "decision.json").read_text()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    found = json.dumps(record_of(parser.parse_args().folder), indent=1) + "\n"
    (HERE / "result.json").write_text(found)
    print(found)


if __name__ == "__main__":
    main()
