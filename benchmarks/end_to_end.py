"""How fast `toolshift run` is from end to end, and how its cost grows with the number of tasks.

    python benchmarks/end_to_end.py [--tasks 60] [--grow 100 400 1600] [--json FILE]

Scored episodes a CPU second of one core, planning, play, files and report included, on scenes that
no cache has seen. Each figure is made by a process of its own, which has run two tasks before, so
that imports do not count. `--before FOLDER` measures the package in another `src` as well, turn by
turn with this one: the ratio stands a loaded machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from machine import versions

HERE = Path(__file__).parents[1] / "src"
SUITES = {
    "quick suite": [],
    "three surface shifts": ["--shift", "identity_erasure:2+query_typos:2+schema_noise:2"],
    "three shifts, a drifted format": ["--shift", "identity_erasure:2+redirect:2+format_drift:2"],
}
MEASURED = """
import json, sys, tempfile, time
from pathlib import Path
from toolshift import evaluate
wanted = json.loads(sys.argv[1])
evaluate("oracle", **{**wanted, "tasks": 2, "seed": 99})
begun = time.process_time()
with tempfile.TemporaryDirectory() as folder:
    out = Path(folder) / "run"
    evaluate("oracle", out=out, **wanted)
    spent = time.process_time() - begun
    with (out / "episodes.jsonl").open("rb") as lines:
        print(json.dumps([sum(1 for _ in lines), spent]))
"""


def measured(source: Path, tasks: int, shifts: list[str]) -> float:
    """Episodes a CPU second of a new process."""
    wanted = {"tasks": tasks, "shifts": shifts[1:], "seed": 7}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, json.dumps(wanted)],
        env={**os.environ, "PYTHONPATH": str(source)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    episodes, seconds = json.loads(done.stdout)
    return float(episodes / seconds)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--grow", type=int, nargs="*", default=[])
    parser.add_argument("--before", type=Path, help="the `src` of another version")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sides = {"now": HERE, **({"before": options.before.resolve()} if options.before else {})}
    found: dict[str, Any] = {}
    for name, shifts in SUITES.items() if options.rounds else ():
        rounds = [
            {side: measured(source, options.tasks, shifts) for side, source in sides.items()}
            for _ in range(options.rounds)
        ]
        row = {side: round(median(each[side] for each in rounds)) for side in sides}
        if options.before:
            row["ratio"] = round(median(each["now"] / each["before"] for each in rounds), 2)
        found[name] = row
        print(f"{name:35} {row}", flush=True)
    for tasks in options.grow:
        rate = measured(HERE, tasks, SUITES["three surface shifts"])
        found[f"{tasks} tasks"] = {"now": round(rate)}
        print(f"{tasks:>6} tasks, three surface shifts  {rate:8.0f}", flush=True)
    if options.json:
        made = {"episodes_a_cpu_second": found, **versions()}
        options.json.write_text(json.dumps(made, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
