"""What a report of 20,000 episodes takes: seconds, memory, and the size of its page.

    python benchmarks/report_page.py                 # makes the run first, which takes a minute
    python benchmarks/report_page.py --run FOLDER    # reports on a run that is there

The report alone, as data, and its page are made by a process each, from the run folder to the
written page, as `toolshift report` does. Time is wall and CPU time of that process, memory its
peak. `load` is the number of processes that wanted the machine's cores: above their number, wall
time says little.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from toolshift.agents.catalog import contestants
from toolshift.api import run_spec
from toolshift.runs.execute import RunSpec
from toolshift.runs.plan import make_plan
from toolshift.runs.suite import Selection, select

AGENTS = ("oracle", "memorises_names", "never_refuses@0.5", "gives_up")
MAX_SECONDS, MAX_BYTES, MAX_PAGE = 30.0, 1_000_000_000, 5_000_000

MEASURED = """
import json, resource, sys, time
from pathlib import Path

start = time.perf_counter()
if sys.argv[2:]:
    from toolshift.report.html import write_page
else:
    from toolshift.measure.report import make_report
from toolshift.runs.run_folder import RunFolder

folder = RunFolder.read(Path(sys.argv[1]))
if sys.argv[2:]:
    write_page([folder], Path(sys.argv[2]))
else:
    make_report(folder.plan, folder.records(), folder.manifest.agents)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
peak *= 1 if sys.platform == "darwin" else 1024
status = Path("/proc/self/status")  # where the peak of the process that started this one is not in
if status.exists():
    told = dict(line.split(":", 1) for line in status.read_text().splitlines())
    peak = 1024 * int(told["VmHWM"].split()[0])
print(json.dumps({
    "episodes": sum(1 for _ in (folder.path / "episodes.jsonl").open("rb")),
    "seconds": round(time.perf_counter() - start, 1),
    "cpu_seconds": round(time.process_time(), 1),
    "peak_bytes": peak,
}))
"""


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--run", type=Path, help="A run folder instead of a new run.")
    asked = reader.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        run = asked.run or _run(Path(scratch) / "run")
        page = Path(scratch) / "report.html"
        alone, found = _measured(run), _measured(run, page)
        found["page_bytes"] = page.stat().st_size
    met = (
        found["seconds"] <= MAX_SECONDS
        and found["peak_bytes"] <= MAX_BYTES
        and found["page_bytes"] <= MAX_PAGE
    )
    machine = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
    print(json.dumps({**found, "report_alone": alone, **machine, "within_limits": met}, indent=2))


def _measured(run: Path, *page: Path) -> dict[str, Any]:
    """What a report takes, and its page where one is named."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(run), *map(str, page)],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _run(folder: Path) -> Path:
    """About 22,000 episodes of scripted agents."""
    run_spec(RunSpec(make_plan(select(Selection("standard"))), contestants(list(AGENTS)), folder))
    return folder


if __name__ == "__main__":
    main()
