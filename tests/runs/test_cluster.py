"""A cluster of Ray does what one process does, whatever is lost on the way."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages import code_of
from running import Run

import toolshift
from toolshift.core.command_line import PLUGINS
from toolshift.core.errors import UsageError
from toolshift.runs.pool import open_pool

ray: Any = pytest.importorskip("ray")
cluster: Any = pytest.importorskip("toolshift.runs.cluster")


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cluster of this machine, whose workers find this file; Ray writes a token into HOME."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        here = Path(__file__).parent
        paths = (str(here), str(here.parent), os.environ.get("PYTHONPATH", ""))
        patched.setenv("PYTHONPATH", os.pathsep.join(paths))
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


def doubled(jobs: list[int]) -> list[int]:
    return [2 * each for each in jobs]


def dies(jobs: list[Path]) -> list[str]:
    """Kills its worker the first time that it meets a job that says so."""
    for job in jobs:
        if not job.exists():
            job.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return [job.name for job in jobs]


def always_dies(jobs: list[int]) -> list[int]:
    os.kill(os.getpid(), signal.SIGKILL)
    return jobs


def complains(jobs: list[int]) -> list[int]:
    raise UsageError("the agent cannot work")


@pytest.mark.usefixtures("started")
def test_results_come_in_order_and_chunks_grow() -> None:
    pool = open_pool(1, "ray")
    chunks = list(pool.do(doubled, range(3000), chunk=1))
    assert [each for chunk in chunks for each in chunk] == list(range(0, 6000, 2))
    assert len(chunks[0]) == 1
    assert len(chunks) < 300
    pool.close()


@pytest.mark.usefixtures("started")
def test_a_chunk_whose_worker_is_lost_is_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = cluster.Cluster()
    jobs = [tmp_path / f"{number}" for number in range(12)]
    for number, job in enumerate(jobs):
        if number != 5:
            job.touch()
    found = [each for chunk in pool.do(dies, jobs, chunk=2) for each in chunk]
    assert found == [job.name for job in jobs]
    assert pool.again == 1
    assert "its chunk is run again" in capsys.readouterr().err
    with pytest.raises(UsageError, match="lost its worker 4 times"):
        list(pool.do(always_dies, [1], chunk=1))


@pytest.mark.usefixtures("started")
def test_what_a_worker_says_is_said_here() -> None:
    with pytest.raises(UsageError, match=r"^the agent cannot work$"):
        list(open_pool(1, "ray").do(complains, [1]))


@pytest.mark.usefixtures("started")
def test_a_run_has_the_bytes_of_one_process(toolshift: Run) -> None:
    words = ("run", "--agent", "oracle", "--agent", "noisy", "--tasks", "4", "--trials", "2")
    assert toolshift(*words, "--out", "one")[0] == 0
    code, _, err = toolshift(*words, "--executor", "ray", "--out", "many")
    assert code == 0
    assert "Ray: 1 nodes, 2 CPUs." in err
    for name in ("episodes.jsonl", "plan.jsonl", "report.txt"):
        assert Path("one", name).read_bytes() == Path("many", name).read_bytes()
    episodes = Path("many/episodes.jsonl")
    whole = episodes.read_bytes()
    episodes.write_bytes(b"".join(whole.splitlines(keepends=True)[::3]))
    assert toolshift(*words, "--executor", "ray", "--out", "many")[0] == 0
    assert episodes.read_bytes() == whole


@pytest.mark.usefixtures("started")
def test_shifts_of_files_are_found_on_the_cluster(
    toolshift: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("envelope.py").write_text(code_of("add-a-shift.md"))
    words = ("--plugin", "envelope.py", "run", "--agent", "oracle", "--shift", "envelope")
    monkeypatch.setenv(PLUGINS, "")
    assert toolshift(*words, "--tasks", "2", "--executor", "ray", "--out", "many")[0] == 0
    assert toolshift(*words, "--tasks", "2", "--out", "one")[0] == 0
    assert Path("one/episodes.jsonl").read_bytes() == Path("many/episodes.jsonl").read_bytes()


@pytest.mark.usefixtures("started")
def test_data_of_the_oracle_and_of_ones_own_has_the_bytes_of_one_process(toolshift: Run) -> None:
    words = ("data", "--count", "12", "--alpha", "0.5")
    assert toolshift(*words, "--out", "one.jsonl")[0] == 0
    assert toolshift(*words, "--executor", "ray", "--out", "many.jsonl")[0] == 0
    assert Path("one.jsonl").read_bytes() == Path("many.jsonl").read_bytes()
    for alpha in ("0.9", "0.5"):  # the second begins with another recipe on the same workers
        augment = ("augment", "one.jsonl", "--alpha", alpha)
        assert toolshift(*augment, "--out", "first.jsonl")[0] == 0
        assert toolshift(*augment, "--executor", "ray", "--out", "second.jsonl")[0] == 0
        assert Path("first.jsonl").read_bytes() == Path("second.jsonl").read_bytes()
        assert Path("first.jsonl").read_bytes() != Path("one.jsonl").read_bytes()


@pytest.mark.usefixtures("started")
def test_a_gate_on_the_cluster_has_the_same_verdict(toolshift: Run) -> None:
    assert toolshift("run", "--agent", "oracle", "--tasks", "2", "--out", "before")[0] == 0
    gate = ("gate", "--baseline", "before", "--agent", "noisy", "--baseline-agent", "oracle")
    one = toolshift(*gate, "--margin", "10", "--out", "one", "--json")
    many = toolshift(*gate, "--margin", "10", "--out", "many", "--executor", "ray", "--json")
    assert one[:2] == many[:2]
    assert Path("one/episodes.jsonl").read_bytes() == Path("many/episodes.jsonl").read_bytes()


def test_who_cannot_be_made_again_is_refused() -> None:
    def mine(messages: Any, tools: Any) -> str:
        return "no"

    with pytest.raises(UsageError, match="only scripted agents that are named by a spec can"):
        toolshift.evaluate(mine, tasks=1, executor="ray")


class Echo(cluster.Cluster):  # type: ignore[misc]
    """A cluster of no nodes, that does each chunk when it is fetched."""

    def __init__(self) -> None:
        super().__init__(2)
        self._joined = True
        self.cancelled: list[Any] = []

    def _send(self, work: Any, jobs: list[Any], tries: int = 1) -> Any:
        return cluster._Sent(jobs, work, jobs, tries)

    def _result(self, sent: Any) -> tuple[list[Any], float, float]:
        return sent.work(sent.jobs), 1.0, 1.0


def test_what_is_not_fetched_is_not_taken_for_results_of_what_is_done_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = Echo()
    monkeypatch.setattr(cluster.ray, "cancel", pool.cancelled.append)
    first = pool.do(doubled, range(6), chunk=1)
    assert next(first) == [0]
    together = pool.do(doubled, range(10, 13), chunk=1)
    assert list(together) == [[20], [22], [24]]
    assert next(first) == [2]
    first.close()
    assert pool.cancelled == [[2], [3], [4], [5]]
    pool.close()
    assert len(pool.cancelled) == 4
