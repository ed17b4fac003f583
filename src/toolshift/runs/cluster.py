"""Work on a Ray cluster, with the same results in the same order as in one process.

A chunk is a pure function of its jobs, so one whose worker or node is lost is sent again, and its
result is the same. Ray schedules a task in about a millisecond; chunks grow until one takes a
second, so that this is a thousandth of the work. A node needs the same versions and, for plugins
and worlds of files, these files at the same paths; nothing else is shared.
"""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import ray
from ray import exceptions as lost
from ray.util.client import ray as client

from toolshift.core.errors import Resumable, UsageError
from toolshift.core.terminal import say
from toolshift.runs.pool import CHUNK, Begin

AIM = 1.0
"""Seconds that a chunk is to take."""
MAX_CHUNK = 4096
AHEAD = 3
"""Chunks under way for each worker, so that none waits for this process."""
TRIES = 4
LOOK = 5.0
"""Seconds between two looks whether the head is there."""
GONE_AFTER = 3
"""Looks in a row at which it is not there; Ray gives up after 60 s, and ends the whole process with
exit code 1, which would read as the verdict of a gate."""
OURS = "TOOLSHIFT_"
"""The prefix of environment variables that name plugins and files."""
LOST = (
    lost.WorkerCrashedError,
    lost.NodeDiedError,
    lost.ObjectLostError,
    lost.OutOfMemoryError,
    lost.LocalRayletDiedError,
)
Job = TypeVar("Job")
Result = TypeVar("Result")


class _Sent(NamedTuple):
    """A chunk that is under way."""

    jobs: list[Any]
    work: Callable[[list[Any]], list[Any]]
    answer: Any
    tries: int


class Cluster:
    """The CPUs of a cluster: that of RAY_ADDRESS, one that runs on this machine, or a new one.

    Args:
        workers: chunks that are worked on at once; 1 for as many as the cluster has CPUs.
        begin: what each of them does first.
    """

    def __init__(self, workers: int = 1, begin: Begin | None = None) -> None:
        self.workers = workers
        self._begin = begin
        self._kept: list[Any] = []
        """The cluster's reference to `begin`, which is sent to each node only once."""
        self.again = 0
        """Chunks that were lost and sent again."""
        self.chunks, self.cpu = 0, 0.0
        """Chunks that are done, and the seconds of CPU that they took where they ran."""
        self._started = self._joined = False
        self._task = ray.remote(max_retries=0)(_do)  # a lost chunk is counted and sent again here
        self._under_way: list[deque[_Sent]] = []
        """What was sent and not fetched yet, for each running `do`."""
        self._looked, self._missed = 0.0, 0
        """When it was last looked whether the head is there, and how often in a row it was not."""

    def _join(self) -> None:
        """Connects to the cluster when there is work."""
        self._joined, self._started = True, not ray.is_initialized()
        if self._started:
            try:
                ray.init(log_to_driver=False, include_dashboard=False, logging_level="error")
            except (ConnectionError, RuntimeError, ValueError, OSError) as fault:
                raise UsageError(f"the cluster of Ray cannot be reached: {fault}") from None
        there = int(ray.cluster_resources().get("CPU", 1))
        self.workers = max(1, there if self.workers <= 1 else self.workers)
        nodes = sum(bool(node["Alive"]) for node in ray.nodes())
        say(f"Ray: {nodes} nodes, {there} CPUs.", err=True)

    def do(
        self, work: Callable[[list[Job]], list[Result]], jobs: Iterable[Job], chunk: int = CHUNK
    ) -> Iterator[list[Result]]:
        """Yields the results of jobs chunk by chunk, in order."""
        waiting = iter(jobs)
        under_way: deque[_Sent] = deque()
        self._under_way.append(under_way)
        try:
            while True:
                while self._has_room() and (some := list(islice(waiting, chunk))):
                    under_way.append(self._send(work, some))
                if not under_way:
                    return
                sent = under_way.popleft()
                results, seconds, cpu = self._result(sent)
                self.chunks, self.cpu = self.chunks + 1, self.cpu + cpu
                pace = seconds / len(sent.jobs)
                chunk = max(1, min(MAX_CHUNK, 2 * chunk, round(AIM / max(pace, 1e-9))))
                yield results
        finally:  # whoever has stopped fetching has no use for the rest
            self._drop(under_way)

    def _has_room(self) -> bool:
        return not self._joined or sum(map(len, self._under_way)) < AHEAD * self.workers

    def _drop(self, under_way: deque[_Sent]) -> None:
        """Cancels what was sent to the cluster."""
        self._under_way = [chunk for chunk in self._under_way if chunk is not under_way]
        for sent in under_way:
            with suppress(Exception):  # it may be gone with its node
                ray.cancel(sent.answer)
        under_way.clear()

    def close(self) -> None:
        """Cancels the work under way and disconnects from the cluster."""
        for under_way in self._under_way:
            self._drop(under_way)
        if self._started:
            ray.shutdown()

    def _send(
        self, work: Callable[[list[Any]], list[Any]], jobs: list[Any], tries: int = 1
    ) -> _Sent:
        if not self._joined:
            self._join()
            self._kept = [] if self._begin is None else [ray.put(self._begin)]
        return _Sent(jobs, work, self._task.remote(_setting(), self._kept, work, jobs), tries)

    def _result(self, sent: _Sent) -> tuple[list[Any], float, float]:
        """The results of a chunk; it is sent again where its worker is lost."""
        while True:
            try:
                result = self._fetch(sent.answer)
            except lost.RayTaskError as fault:
                raise (fault.cause if isinstance(fault.cause, Exception) else fault) from None
            except LOST as fault:
                sent = self._once_more(sent, fault)
            except lost.RayError as fault:
                raise Resumable(
                    f"the cluster failed ({_words(fault)}). Run the same command again"
                ) from None
            else:
                return result

    def _fetch(self, answer: Any) -> tuple[list[Any], float, float]:
        """The result of a chunk, once it is there and as long as the head of the cluster is."""
        while True:
            there, _ = ray.wait([answer], timeout=LOOK)
            if time.monotonic() - self._looked > LOOK:
                self._look_for_head()
            if there:
                result: tuple[list[Any], float, float] = ray.get(answer)
                return result

    def _look_for_head(self) -> None:
        if client.is_connected():  # by ray://: the head is behind it, perhaps out of our reach
            return
        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=LOOK).close()
        except OSError as fault:
            self._missed += 1
            if self._missed >= GONE_AFTER:
                raise Resumable(
                    f"the head of the cluster, {host}:{port}, is gone ({_words(fault)}). Run the "
                    "same command again, with a running cluster"
                ) from None
        else:
            self._missed = 0
        self._looked = time.monotonic()

    def _once_more(self, sent: _Sent, fault: Exception) -> _Sent:
        if sent.tries >= TRIES:
            raise Resumable(
                f"a chunk of {len(sent.jobs)} jobs lost its worker {TRIES} times "
                f"({_words(fault)}): memory may be short. Run the same command again"
            ) from None
        self.again += 1
        say(f"A worker was lost ({type(fault).__name__}): its chunk is run again.", err=True)
        return self._send(sent.work, sent.jobs, sent.tries + 1)


def _words(fault: Exception) -> str:
    """The first line of Ray's message."""
    return str(fault).strip().partition("\n")[0] or type(fault).__name__


def _setting() -> tuple[str, dict[str, str]]:
    """The working directory and the variables that name plugins, worlds and shifts."""
    own = {name: text for name, text in os.environ.items() if name.startswith(OURS)}
    return os.getcwd(), own


_begun: list[Any] = []
"""What this worker was initialised with."""


def _do(
    setting: tuple[str, dict[str, str]],
    kept: list[Any],
    work: Callable[[list[Any]], list[Any]],
    jobs: list[Any],
) -> tuple[list[Any], float, float]:
    """Runs a chunk on a node, in the environment of the process that sent it."""
    folder, own = setting
    for name in [
        variable for variable in os.environ if variable.startswith(OURS) and variable not in own
    ]:
        del os.environ[name]  # of another run on this worker
    os.environ.update(own)
    if os.path.isdir(folder):
        os.chdir(folder)
    if kept and kept != _begun:
        ray.get(kept[0])()
        _begun[:] = kept
    begun, cpu = time.perf_counter(), time.process_time()
    results = work(jobs)
    return results, time.perf_counter() - begun, time.process_time() - cpu
