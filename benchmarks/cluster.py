"""A run on a local cluster of Ray of several nodes, of which a worker and the head are killed.

    python benchmarks/cluster.py --tasks 100 --json benchmarks/cluster.json
    python benchmarks/cluster.py --tasks 40000 --only-kills --json benchmarks/cluster_kills.json

Needs the extra `ray`. The same run is made in one process, on a cluster with one worker node, with
two, and with two of which one is killed once a third of the scenes are there; then a new one joins.
At last the head is killed at a third: the command, a process of its own, has to end by itself with
exit code 2, and the same command goes on with a new cluster. Every run must have the bytes of the
first. Wall time says what a user waits on this machine; the CPU time of the chunks and of the
process that sends them says what it costs, whatever else runs.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
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
Tell = Callable[[str], None]
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
    from toolshift.runs.pool import Begin
    from toolshift.runs.suite import Selection, select

    made: list[Any] = []

    class Counted(cluster.Cluster):
        def __init__(self, workers: int = 1, begin: Begin | None = None) -> None:
            super().__init__(workers, begin)
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


def episodes_in(out: Path) -> int:
    """The episodes that a run has written so far: scripted agents play while the plan is made."""
    for file, heads in ((out / "episodes.jsonl", 0), (out / ".ahead.jsonl", 1)):
        if file.exists():
            return max(0, file.read_bytes().count(b"\n") - heads)
    return 0


def played_through_a_killed_head(
    out: Path, tasks: int, episodes: int, tell: Tell
) -> dict[str, Any]:
    """Makes the run by the command line; the head is killed at a third, and a new cluster started.

    The command has to notice it by itself: what is waited for, and what it says, is recorded.
    """
    from ray.cluster_utils import Cluster

    shifts = [word for shift in SHIFTS for word in ("--shift", shift)]
    words = [sys.executable, "-m", "toolshift", "run", "--agent", "oracle", *shifts]
    words += ["--tasks", str(tasks), "--seed", "7", "--executor", "ray", "--out", str(out)]

    def begin(nodes: Cluster) -> subprocess.Popen[str]:
        there = {**os.environ, "RAY_ADDRESS": nodes.address}
        kept = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(words, env=there, **kept)

    begun = time.perf_counter()
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    first = begin(nodes)
    while episodes_in(out) < episodes // 3:
        if first.poll() is not None:
            raise SystemExit(f"the run ended too early: {(first.communicate()[1] or '')[-2000:]}")
        time.sleep(0.2)
    there = episodes_in(out)
    tell(f"the head is killed after {there} of {episodes} episodes")
    killed = time.perf_counter()
    for info in nodes.head_node.all_processes.values():  # as a machine that loses its power
        for process in info:
            os.kill(process.process.pid, signal.SIGKILL)
    said = first.communicate(timeout=600)[1]
    noticed = time.perf_counter() - killed
    kept = episodes_in(out)
    tell(f"the command ended with {first.returncode} after {noticed:.1f} s, {kept} episodes kept")
    nodes.shutdown()
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    second = begin(nodes)
    second.communicate(timeout=7200)
    nodes.shutdown()
    return {
        "episodes": episodes_in(out),
        "wall_s": round(time.perf_counter() - begun, 1),
        "episodes_when_killed": there,
        "episodes_kept": kept,
        "exit_code": first.returncode,
        "seconds_until_it_ended": round(noticed, 1),
        "last_words": said.strip().splitlines()[-1:],
        "exit_code_of_the_second": second.returncode,
        "digest": digest(out),
    }


class Killing:
    """Kills a node once a third of the scenes are there, and adds another."""

    def __init__(self, nodes: Any, workers: list[Any], cells: int, tell: Tell) -> None:
        self.nodes, self.workers, self.cells, self.tell = nodes, workers, cells, tell
        self.done = False

    def __call__(self, scenes: int) -> None:
        """Told how many scenes there are."""
        if scenes < self.cells // 3 or self.done:
            return
        self.done = True
        self.tell(f"node 2 is killed after {scenes} of {self.cells} scenes")
        self.nodes.remove_node(self.workers.pop(), allow_graceful=False)
        self.tell("a third node joins")
        self.workers.append(self.nodes.add_node(num_cpus=1))


def main() -> int:
    """Measures, prints, and says whether all runs have the same bytes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--only-kills", action="store_true", help="the runs with a kill alone")
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

    if not options.only_kills:
        run("one node")
    workers.append(nodes.add_node(num_cpus=1))
    nodes.wait_for_nodes()
    if not options.only_kills:
        run("two nodes")
    kill = Killing(nodes, workers, cells, tell)
    run("two nodes and one is killed", kill)
    nodes.shutdown()
    name = "the head is killed"
    found[name] = played_through_a_killed_head(folder / "head", options.tasks, cells, tell)
    tell(f"{name}: {found[name]}")
    same = len({row["digest"] for row in found.values()}) == 1
    tell(f"the bytes of all runs are {'the same' if same else 'NOT the same'}")
    record = {
        "command": f"python benchmarks/cluster.py --tasks {options.tasks}"
        + " --only-kills" * options.only_kills,
        "versions": {**versions(), "ray": ray.__version__},
        "same_bytes": same,
        "runs": found,
        "log": log,
    }
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0 if same and kill.done else 1


if __name__ == "__main__":
    sys.exit(main())
