"""How many failures and wrong refusals of a run look up a name that was cut short.

    python studies/copying/cut_short.py paft-spaced-texts --pool test

"Oskar" for "Oskar on the Hill": the first call has a text that goes on in what the user said, with
"&", "on the" or "at". No such place is found then, and the agent may refuse.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from toolshift.cell import build
from toolshift.run_folder import Record, RunFolder
from toolshift.scene import Scene

STAGES = Path(__file__).parent.parent / "stages"


def cut_short(record: Record, scene: Scene) -> bool:
    """Whether the first call has the beginning only of a name that the user said."""
    said = " ".join(ask.text for ask in scene.asks)
    given = record.steps[0].arguments if record.steps else {}
    texts = [v for v in given.values() if isinstance(v, str)] if isinstance(given, dict) else []
    return any(re.search(re.escape(v) + r" (&|on the|at) [A-Z]", said) for v in texts if v)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("arm")
    parser.add_argument("--pool", choices=("dev", "test"), default="dev")
    options = parser.parse_args()
    print("| run | failures | cut short | solvable, refused | cut short |")
    print("|---|---:|---:|---:|---:|")
    for run in sorted(STAGES.glob(f"{options.arm}-small-seed*/run-*")):
        folder = RunFolder.read(run)
        if folder.manifest.selection.pool != options.pool:
            continue
        records = folder.records()
        found = [(each.grade, cut_short(each, build(folder.cell(each)))) for each in records]
        failed = [short for grade, short in found if not grade.passed]
        refused = [short for grade, short in found if grade.solvable and grade.refused]
        counts = (len(failed), sum(failed), len(refused), sum(refused))
        print(f"| {run.parent.name} | {' | '.join(map(str, counts))} |")


if __name__ == "__main__":
    main()
