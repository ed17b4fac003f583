"""A run on a local cluster of Ray of several nodes, one of which is killed in the middle.

    python benchmarks/cluster.py --tasks 100 --json benchmarks/cluster.json

Needs the extra `ray`. The same run is made in one process, on a cluster with one worker node, with
two, and with two of which one is killed once a third of the scenes are there; then a new one joins.
Every run must have the bytes of the first. Wall time says what a user waits on this machine; the
CPU time of the chunks and of the process that sends them says what it costs, whatever else runs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from machine import versions

SHIFTS = [
    "identity_erasure:2+query_typos:2+schema_noise:2",
    "redirect:2",
    "transient_error:2",
]
KEPT = ("episodes.jsonl", "plan.jsonl", "report.txt")


def digest(run: Path) -> str:
    """A hash of what a run leaves, without its times."""
    return sha256(b"".join((run / name).read_bytes() for name in KEPT)).hexdigest()[:16]


def measured(
    out: Path,
    tasks: int,
    executor: str,
    watch: Callable[[int], None] = lambda cells: None,
    seed: int = 7,
) -> dict[str, Any]:
    """Makes the run; its seconds, episodes, chunks and bytes."""
    from toolshift.agents.catalog import contestants
    from toolshift.api import report_on
    from toolshift.runs import cluster
    from toolshift.runs.execute import RunSpec, planning, play_plan
    from toolshift.runs.suite import Selection, select

    made: list[Any] = []

    class Counted(cluster.Cluster):
        def __init__(self, workers: int = 1) -> None:
            super().__init__(workers)
            made.append(self)

    whole, cluster.Cluster = cluster.Cluster, Counted
    those = contestants(["oracle"])
    begun, cpu = time.perf_counter(), time.process_time()
    try:
        chosen = select(Selection(shifts=tuple(SHIFTS), tasks=tasks, seed=seed))
        spec = RunSpec(chosen, those, out, executor=executor)
        with planning(spec, watch) as (plan, prefetch):
            report_on(play_plan(spec, plan, prefetch))
    finally:
        cluster.Cluster = whole
    episodes = (out / "episodes.jsonl").read_bytes().count(b"\n")
    return {
        "episodes": episodes,
        "wall_s": round(time.perf_counter() - begun, 1),
        "cpu_here_s": round(time.process_time() - cpu, 2),
        "cpu_workers_s": round(sum(each.cpu for each in made), 2),
        "chunks": sum(each.chunks for each in made),
        "chunks_run_again": sum(each.again for each in made),
        "digest": digest(out),
    }


def main() -> int:
    """Measures, prints, and says whether all runs have the same bytes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    import ray
    from ray.cluster_utils import Cluster

    folder = Path(tempfile.mkdtemp(prefix="toolshift-cluster-"))
    os.environ["HOME"] = str(folder)  # Ray writes a token there
    log: list[str] = []
    begun = time.perf_counter()

    def tell(text: str) -> None:
        log.append(f"{time.perf_counter() - begun:7.1f} s  {text}")
        print(log[-1], file=sys.stderr, flush=True)

    measured(folder / "warm", 2, "process", seed=99)
    found = {"one process": measured(folder / "one", options.tasks, "process")}
    tell(f"one process: {found['one process']}")
    cells = found["one process"]["episodes"]
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    workers = [nodes.add_node(num_cpus=1)]
    nodes.wait_for_nodes()

    def run(name: str, watch: Callable[[int], None] = lambda cells: None) -> None:
        """A job of its own: its workers are new processes, which know no scene yet."""
        ray.init(address=nodes.address, log_to_driver=False, logging_level="critical")
        measured(folder / f"warm-{name.replace(' ', '-')}", 2, "ray", seed=99)  # imports
        there = sum(bool(node["Alive"]) for node in ray.nodes())
        tell(f"{name}: {there} nodes, {ray.cluster_resources().get('CPU', 0):.0f} CPUs")
        out = folder / name.replace(" ", "-")
        found[name] = measured(out, options.tasks, "ray", watch)
        tell(f"{name}: {found[name]}")
        ray.shutdown()

    run("one node")
    workers.append(nodes.add_node(num_cpus=1))
    nodes.wait_for_nodes()
    run("two nodes")
    killed = threading.Event()

    def kill(done: int) -> None:
        if done < cells // 3 or killed.is_set():
            return
        killed.set()
        tell(f"node 2 is killed after {done} of {cells} scenes")
        nodes.remove_node(workers.pop(), allow_graceful=False)
        tell("a third node joins")
        workers.append(nodes.add_node(num_cpus=1))

    run("two nodes and one is killed", kill)
    nodes.shutdown()
    same = len({row["digest"] for row in found.values()}) == 1
    tell(f"the bytes of all runs are {'the same' if same else 'NOT the same'}")
    record = {
        "command": f"python benchmarks/cluster.py --tasks {options.tasks}",
        "versions": {**versions(), "ray": ray.__version__},
        "same_bytes": same,
        "runs": found,
        "log": log,
    }
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0 if same and killed.is_set() else 1


if __name__ == "__main__":
    sys.exit(main())
