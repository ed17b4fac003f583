"""Work in several processes, here or on a cluster, with the same results in the same order."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from itertools import islice
from multiprocessing import get_context
from typing import Literal, Protocol, TypeVar, cast

from toolshift.core.errors import Resumable, UsageError
from toolshift.core.importing import load
from toolshift.core.installation import extra

CHUNK = 128
Executor = Literal["process", "ray"]
Begin = Callable[[], None]
"""What a worker does once, before its first chunk. It is sent to each, so it should be small."""
Job = TypeVar("Job")
Result = TypeVar("Result")


class Pool(Protocol):
    """Workers that run chunks of jobs."""

    def do(
        self, work: Callable[[list[Job]], list[Result]], jobs: Iterable[Job], chunk: int = CHUNK
    ) -> Iterator[list[Result]]:
        """Yields the results of jobs chunk by chunk, in order; see `Processes.do`."""
        ...

    def close(self) -> None:
        """Lets the workers end; what is under way is dropped."""
        ...


def open_pool(workers: int, executor: Executor = "process", begin: Begin | None = None) -> Pool:
    """Starts workers, or finds those of a cluster."""
    if executor == "process":
        return Processes(workers, begin)
    try:
        made = load("toolshift.runs.cluster:Cluster")
    except ImportError as fault:
        raise UsageError(
            f"--executor ray needs packages that are not installed ({fault}): {extra('ray')}"
        ) from None
    return cast(Pool, made(workers, begin))


class Processes:
    """Processes that wait for work; they end when this process ends for any reason.

    Args:
        workers: how many.
        begin: what each does first.
    """

    def __init__(self, workers: int, begin: Begin | None = None) -> None:
        self.workers = workers
        known = (os.getpid(), begin)
        self._pool = ProcessPoolExecutor(workers, get_context("spawn"), _start, known)

    def do(
        self, work: Callable[[list[Job]], list[Result]], jobs: Iterable[Job], chunk: int = CHUNK
    ) -> Iterator[list[Result]]:
        """Yields the results of jobs chunk by chunk, in order."""
        waiting = iter(jobs)
        under_way: deque[Future[list[Result]]] = deque()
        while True:
            try:
                while len(under_way) < 3 * self.workers and (some := list(islice(waiting, chunk))):
                    under_way.append(self._pool.submit(work, some))
                if not under_way:
                    return
                done = under_way.popleft().result()
            except BrokenProcessPool:
                raise Resumable(
                    "a worker process ended during its work: it was killed, or memory ran out. "
                    "Run the same command again, with fewer --workers if memory is short"
                ) from None
            yield done

    def close(self) -> None:
        """Lets the processes end; what is under way is dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def in_pool(
    work: Callable[[list[Job]], list[Result]],
    jobs: Iterable[Job],
    workers: int,
    executor: Executor = "process",
) -> Iterator[list[Result]]:
    """Yields the results of jobs chunk by chunk, in order."""
    with closing(open_pool(workers, executor)) as pool:
        yield from pool.do(work, jobs)


def _start(parent: int, begin: Begin | None) -> None:
    """Leaves Ctrl-C to the parent, and ends when the parent has ended for any reason."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if begin is not None:
        begin()
