"""Do the shipped models win tasks back with the layer, and lose any?

    python studies/telling/models.py [--tasks 12]

Each model plays the same tasks with and without `toolshift.adapt`, whose lock is the list of clean
tools: clean, under opaque names, and under names that mean the same. Greedy decoding, so a
difference is one of what the model was shown. Runs are kept in `models-runs` beside this file,
which is not in the repository, and are gone on with; `models.json` has the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import toolshift
from toolshift.adapt.repair import as_mcp
from toolshift.core.tool import as_openai
from toolshift.measure.statistics import paired_drop
from toolshift.runs.cell import build
from toolshift.runs.suite import read_task

HERE = Path(__file__).parent
RUNS = HERE / "models-runs"
MODELS = ("smol:static", "smol:paft")
SHIFTS = ("identity_erasure:3", "semantic_rename:2")
KINDS = ("listing", "hours", "route", "visit")


def lock() -> toolshift.Lock:
    """The tools that all clean tasks of these kinds show."""
    tools = {
        tool.name: as_mcp(as_openai(tool)["function"])
        for kind in KINDS
        for tool in build(read_task(f"poi/{kind}")).tools
    }
    return toolshift.lock_tools(list(tools.values()))


def played(agent: Any, tasks: int, out: Path) -> dict[str, dict[str, float]]:
    """Whether each task was passed, by shift."""
    toolshift.evaluate(
        agent, worlds=["poi"], kinds=KINDS, shifts=SHIFTS, tasks=tasks, max_repeats=6,
        placebo=False, out=out,
    )  # fmt: skip
    found: dict[str, dict[str, float]] = {}
    for episode in toolshift.read_run(out).episodes:
        shift = episode.shifts or "clean"
        found.setdefault(shift, {})[episode.task] = float(episode.grade.passed)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=12)
    given = parser.parse_args()
    known, begun = lock(), time.time()
    rows = []
    for model in MODELS:
        folder = model.replace(":", "-")
        alone = played(model, given.tasks, RUNS / f"{folder}-alone")
        told = played(toolshift.adapt(model, lock=known), given.tasks, RUNS / f"{folder}-told")
        for shift, before in alone.items():
            after = told[shift]
            gain = paired_drop(
                {t: [p] for t, p in after.items()}, {t: [p] for t, p in before.items()}
            )
            rows.append({
                "model": model,
                "shift": shift,
                "tasks": len(before),
                "passed alone": int(sum(before.values())),
                "passed with the layer": int(sum(after.values())),
                "won": sum(after[t] > before[t] for t in before),
                "lost": sum(after[t] < before[t] for t in before),
                "gain": [gain.estimate, gain.low, gain.high],
            })  # fmt: skip
            print(rows[-1], flush=True)
    about = {"toolshift": version("toolshift"), "python": platform.python_version(),
             "cores": os.cpu_count(), "seconds": round(time.time() - begun), "seed": 0}  # fmt: skip
    (HERE / "models.json").write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
