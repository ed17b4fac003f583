"""How time and memory of `toolshift augment` grow with the file.

    nice -n 10 python benchmarks/augment_scale.py [--sizes 10000,30000,100000,300000] [--out FILE]

Files of conversations of about 2.6 KB (`augment_speed.line`) are written to a temporary folder and
augmented, each in a process of its own with one worker: renamed throughout (`SBP`, alpha 1), and
as the command does by default (all entries, alpha 0.3). Each process reports its own time of the
processor, so that other work on the machine counts little, and its peak memory.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from augment_speed import line

from toolshift.data.augment import Recipe
from toolshift.data.files import Job, augment_file

RECIPES = {"renaming": Recipe(alpha=1.0, shifts=("SBP",)), "default": Recipe()}
MOST = {"renaming": 10**9, "default": 30_000}
"""The largest file of each recipe: what is played costs milliseconds a row."""
GOAL = 10_000_000


def measured(source: Path, recipe: str) -> dict[str, Any]:
    """Augments a file in this process; what it took."""
    begun, spent = time.perf_counter(), time.process_time()
    tally = augment_file(Job(source, source.with_suffix(".out.jsonl"), RECIPES[recipe]))
    return {
        "recipe": recipe,
        "rows": tally.rows,
        "shifted": sum(tally.shifted.values()),
        "cpu_seconds": round(time.process_time() - spent, 2),
        "wall_seconds": round(time.perf_counter() - begun, 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def written(folder: Path, count: int) -> Path:
    """A file of so many conversations."""
    path = folder / f"{count}.jsonl"
    with path.open("wb") as file:
        for seed in range(count):
            file.write(line(seed) + b"\n")
    return path


def exponent(runs: list[dict[str, Any]], key: str) -> float:
    """Of the power law through the figures, by least squares of their logarithms."""
    points = [(math.log(run["rows"]), math.log(run[key])) for run in runs]
    x, y = (sum(each) / len(points) for each in zip(*points, strict=True))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """How a recipe grows, and what that makes of ten million rows."""
    last = runs[-1]
    growth = exponent(runs, "cpu_seconds")
    hours = last["cpu_seconds"] * GOAL / last["rows"] / 3600
    steeper = last["cpu_seconds"] * (GOAL / last["rows"]) ** max(1.0, growth) / 3600
    return {
        "time_exponent": round(growth, 3),
        "memory_exponent": round(exponent(runs, "peak_mb"), 3),
        "ten_million_cpu_hours": round(hours, 2),
        "ten_million_cpu_hours_by_exponent": round(steeper, 2),
    }


def main() -> None:
    """Measures each recipe on each size; prints the figures and writes them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10000,30000,100000,300000")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", nargs=2, metavar=("FILE", "RECIPE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(Path(options.one[0]), options.one[1])))
        return
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in RECIPES}
    with tempfile.TemporaryDirectory() as folder:
        for count in map(int, options.sizes.split(",")):
            source = written(Path(folder), count)
            for name, runs in found.items():
                if count > MOST[name]:
                    continue
                command = [sys.executable, __file__, "--one", str(source), name]
                said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                runs.append(json.loads(said))
                print(runs[-1], flush=True)
            size = source.stat().st_size / count
            for each in Path(folder).iterdir():
                each.unlink()
    told = {
        "command": f"python benchmarks/augment_scale.py --sizes {options.sizes}",
        "bytes_a_row": round(size),
        "machine": {
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            **{name: version(name) for name in ("msgspec", "jsonschema-rs")},
        },
        "growth": {name: summary(runs) for name, runs in found.items() if len(runs) > 1},
        "runs": found,
    }
    print(json.dumps(told["growth"], indent=1))
    if options.out:
        options.out.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
