"""What a report of 20,000 episodes takes: seconds, memory, and the size of the page.

    python benchmarks/report_page.py                 # makes the run first, which takes a minute
    python benchmarks/report_page.py --run FOLDER    # reports on a run that is there

The report is made by a process of its own, from the run folder to the written page, as
`toolshift report` does. Time is wall and CPU time of that process, memory its peak. `load` is the
number of processes that wanted the machine's cores: above their number, wall time says little.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from toolshift.agents.catalog import contestants
from toolshift.api import run_plan
from toolshift.runs.plan import make_plan
from toolshift.runs.suite import Selection, select

AGENTS = ("oracle", "memorises_names", "never_refuses@0.5", "gives_up")
MAX_SECONDS, MAX_BYTES, MAX_PAGE = 30.0, 1_000_000_000, 5_000_000

MEASURED = """
import json, resource, sys, time
from pathlib import Path

start = time.perf_counter()
from toolshift.report.html import write_page
from toolshift.runs.run_folder import RunFolder

folder, page = RunFolder.read(Path(sys.argv[1])), Path(sys.argv[2])
write_page([folder], page)
kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({
    "episodes": sum(1 for _ in (folder.path / "episodes.jsonl").open("rb")),
    "seconds": round(time.perf_counter() - start, 1),
    "cpu_seconds": round(time.process_time(), 1),
    "peak_bytes": kilobytes * (1 if sys.platform == "darwin" else 1024),
    "page_bytes": page.stat().st_size,
}))
"""


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--run", type=Path, help="A run folder instead of a new run.")
    asked = reader.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        run = asked.run or _run(Path(scratch) / "run")
        page = Path(scratch) / "report.html"
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, str(run), str(page)],
            check=True,
            capture_output=True,
            text=True,
        )
    found = json.loads(done.stdout)
    met = (
        found["seconds"] <= MAX_SECONDS
        and found["peak_bytes"] <= MAX_BYTES
        and found["page_bytes"] <= MAX_PAGE
    )
    machine = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
    print(json.dumps({**found, **machine, "within_limits": met}, indent=2))


def _run(folder: Path) -> Path:
    """About 22,000 episodes of scripted agents."""
    run_plan(make_plan(select(Selection("standard"))), contestants(list(AGENTS)), folder)
    return folder


if __name__ == "__main__":
    main()
