"""One real verdict on a shipped model, by the fixed design and by the sequential one.

    python benchmarks/one_verdict.py [--agent smol:paft] [--tasks 40] [--out FOLDER] [--json FILE]

Both designs have the same tasks and shifts: two that the model was trained on, two that it was not.
Each run is a process of its own, so that neither finds the other's prompts read. Wall time is that
of the machine with whatever else it does; CPU time is the process's own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SHIFTS = ("identity_erasure:3", "no_such_entity:2", "schema_noise:2", "csv_results:2")
KINDS = ("listing", "hours", "route", "visit")
HERE = Path(__file__).parent


def one(agent: str, tasks: int, design: str, out: Path) -> dict[str, Any]:
    """Plays one run in this process; what it took and what it says."""
    import toolshift

    begun, cpu = time.time(), time.process_time()
    made = toolshift.evaluate(
        agent,
        worlds=["poi"],
        kinds=KINDS,
        shifts=SHIFTS,
        tasks=tasks,
        max_repeats=6,
        design=design,
        out=out,
    )
    run = toolshift.read_run(out)
    (found,) = made.agents
    verdicts = {claim.label: claim.verdict for claim in found.claims or ()} or {
        row.label: "breaks" if row.significant else "not shown" for row in found.shifts
    }
    return {
        "design": design,
        "episodes": len(run.episodes),
        "calls to the model": sum(
            len({step.turn for step in episode.steps}) for episode in run.episodes
        ),
        "input tokens": sum(episode.usage.input_tokens for episode in run.episodes),
        "seconds": round(time.time() - begun, 1),
        "CPU seconds": round(time.process_time() - cpu, 1),
        "verdicts": verdicts,
        "intervals": {
            row.label: [row.drop.estimate, row.drop.low, row.drop.high] for row in found.shifts
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--agent", default="smol:paft")
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", type=Path, default=HERE / "one_verdict.json")
    parser.add_argument("--design", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.design:
        print(json.dumps(one(given.agent, given.tasks, given.design, given.out)))
        return
    from machine import machine

    out = given.out or Path(tempfile.mkdtemp())
    rows = []
    for design in ("sequential", "fixed"):
        command = [sys.executable, __file__, "--agent", given.agent, "--tasks", str(given.tasks)]
        command += ["--design", design, "--out", str(out / design)]
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        rows.append(json.loads(said.splitlines()[-1]))
        print(json.dumps(rows[-1], indent=1), flush=True)
    about = {**machine(), "load": round(os.getloadavg()[0], 1), "agent": given.agent,
             "tasks": given.tasks, "kinds": KINDS, "shifts": SHIFTS}  # fmt: skip
    given.json.write_text(json.dumps({**about, "runs": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
