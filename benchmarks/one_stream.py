"""Whether a run needs `runs/prefetch`: the same run with it, without it, and with scenes kept.

    python benchmarks/one_stream.py [--tasks 60] [--rounds 3] [--shift STACK ...] [--json FILE]

- prefetch: as it is. Scripted agents play a scene as soon as it is made for the plan.
- planned first: the plan is made in this process, then all is played. A process keeps the last
  8,192 scenes that it has made, so with one worker none is made twice.
- one pool: the plan is made by the workers that play afterwards, each with the scenes that it has
  made. Which worker plays a scene does not depend on which has made it.

CPU seconds are of all processes. Each figure is made by new processes, in turns; ratios are of one
turn, as rates: 0.9 says that nine episodes are made where ten were with prefetch.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

from machine import versions

from toolshift import evaluate
from toolshift.runs import execute, study
from toolshift.runs.plan import Planned, Visit, make_plan, visited
from toolshift.runs.pool import open_pool
from toolshift.runs.prefetch import Prefetch

WAYS = {1: ("prefetch", "planned first"), 2: ("prefetch", "planned first", "one pool")}
PARTS = ("CPU", "wall")


def plan_rows(visits: list[Visit]) -> list[list[Planned]]:
    """Makes the scenes of some tasks."""
    return [list(visited(visit)) for visit in visits]


def use(way: str, workers: int) -> None:
    """Takes another way of planning and playing, in this process."""
    if way == "planned first":
        Prefetch.fits = staticmethod(lambda *args: False)  # type: ignore[assignment, method-assign]
    if way != "one pool":
        return
    pool = open_pool(workers)

    @contextmanager
    def planning(spec: Any, watch: Any = lambda cells: None) -> Iterator[Any]:
        def look(visits: Any) -> Iterator[Planned]:
            return chain.from_iterable(chain.from_iterable(pool.do(plan_rows, visits, 1)))

        yield make_plan(spec.what, watch, look), None
        pool.close()

    execute.planning = planning
    study.in_pool = lambda work, jobs, workers, executor: pool.do(work, jobs)


def spent() -> float:
    """CPU seconds of this process and of its ended children."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(each.ru_utime + each.ru_stime for each in map(resource.getrusage, who))


def once(way: str, workers: int, tasks: int, shifts: list[str]) -> list[float]:
    """Episodes, CPU seconds and wall seconds of a run, and the memory of this process in MiB."""
    evaluate("oracle", tasks=2, seed=99)
    cpu, wall = spent(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        use(way, workers)
        evaluate(
            "oracle", out=Path(folder) / "run", tasks=tasks, shifts=shifts, seed=7, workers=workers
        )
        took = time.perf_counter() - wall
        episodes = len((Path(folder) / "run" / "episodes.jsonl").read_bytes().splitlines())
        time.sleep(1.5)  # until the workers have ended
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [episodes, spent() - cpu, took, memory]


def measured(way: str, workers: int, tasks: int, shifts: list[str]) -> list[float]:
    """The like, of a new process."""
    command = [sys.executable, __file__, "--once", way, str(workers), "--tasks", str(tasks)]
    command += ["--shift", *shifts]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(each) for each in json.loads(done.stdout)]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shift", nargs="*", default=[], help="else the quick suite")
    parser.add_argument("--once", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.once:
        way, workers = options.once
        print(json.dumps(once(way, int(workers), options.tasks, options.shift)))
        return
    found: dict[str, Any] = {}
    for workers, ways in WAYS.items():
        turns = []
        for turn in range(options.rounds):
            order = ways if turn % 2 == 0 else ways[::-1]
            turns.append(
                {way: measured(way, workers, options.tasks, options.shift) for way in order}
            )
        for way in ways:
            row: dict[str, Any] = {"episodes": int(turns[0][way][0])}
            for place, part in enumerate(PARTS, 1):
                row[f"{part} seconds"] = round(median(each[way][place] for each in turns), 2)
                ratios = sorted(each["prefetch"][place] / each[way][place] for each in turns)
                row[f"rate by {part}"] = [round(each, 2) for each in ratios]
            row["MiB"] = round(median(each[way][3] for each in turns))
            found[f"{workers} workers, {way}"] = row
            print(f"{workers} workers, {way:14} {row}", flush=True)
    if options.json:
        made = {"tasks": options.tasks, "found": found, **versions()}
        options.json.write_text(json.dumps(made, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
