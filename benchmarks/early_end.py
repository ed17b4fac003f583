"""Which verdicts turn where an episode ends after N identical calls with identical results.

    python benchmarks/early_end.py [--repeats 6] [--stages studies/stages] [--json FILE]

The record is of the stages of commit bcff47ced823; the tree has those of the decisive study.

No model is run: the traces of all stored stages are cut where the limit would have ended them. A
pass that is cut is a verdict that turns. Of failures that are cut, the cause is read again from
what is left. How much is saved is counted in turns and in tokens that the model wrote.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from toolshift_lab.frozen import unpack

from toolshift.core.step import Step
from toolshift.core.terminal import progress
from toolshift.episode.episode import REPEATS
from toolshift.episode.grade import regrade
from toolshift.runs.cell import build
from toolshift.runs.run_folder import Record, RunFolder


def cut(steps: Sequence[Step], repeats: int) -> int | None:
    """The number of steps after which the limit ends an episode; None where it does not."""
    seen: Counter[tuple[str, bytes, str]] = Counter()
    for number, step in enumerate(steps):
        if step.kind != "call":
            continue
        made = step.name, msgspec.json.encode(step.arguments), step.text
        seen[made] += 1
        if seen[made] == repeats:
            return number + 1
    return None


def cause_after(folder: RunFolder, record: Record, kept: int) -> str:
    """The cause of a failure, read from the steps before the cut."""
    end = Step("budget", record.steps[kept - 1].turn, said=REPEATS)
    return regrade(build(folder.cell(record)), [*record.steps[:kept], end], "budget").cause


def count(folder: RunFolder, repeats: int) -> Counter[str]:
    """Episodes, cuts, verdicts and causes that turn, turns and tokens saved, of one run."""
    found: Counter[str] = Counter()
    for record in folder.records():
        if record.grade.void:
            continue
        turns = record.steps[-1].turn + 1 if record.steps else 0
        found += Counter(episodes=1, passed=record.grade.passed, turns=turns)
        kept = cut(record.steps, repeats)
        if kept is None:
            continue
        saved = turns - record.steps[kept - 1].turn - 1
        found += Counter(cut=1, turns_saved=saved, cut_passes=record.grade.passed)
        if not record.grade.passed:
            again = cause_after(folder, record, kept)
            found["other_causes"] += again != record.grade.cause
            if again != record.grade.cause:
                found[f"{record.grade.cause} becomes {again}"] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--stages", type=Path, default=Path("studies/stages"))
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    runs = sorted(path.parent for path in unpack(options.stages).glob("*/run-*/manifest.json"))
    total: Counter[str] = Counter()
    where: dict[str, int] = {}
    with progress("runs") as watch:
        for number, path in enumerate(runs):
            found = count(RunFolder.read(path), options.repeats)
            total += found
            if found["cut_passes"]:
                where[str(path.relative_to(options.stages))] = found["cut_passes"]
            watch(number + 1, len(runs))
    shares: dict[str, Any] = {
        "repeats": options.repeats,
        "runs": len(runs),
        "episodes": total["episodes"],
        "passed": total["passed"],
        "ended_early": total["cut"],
        "passes_that_become_failures": total["cut_passes"],
        "causes_that_turn": total["other_causes"],
        "turns": total["turns"],
        "turns_saved": total["turns_saved"],
        "share_of_turns_saved": round(total["turns_saved"] / max(1, total["turns"]), 3),
        "which_causes": {name: n for name, n in total.most_common() if " becomes " in name},
        "where_passes_are_cut": where,
    }
    text = json.dumps(shares, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
