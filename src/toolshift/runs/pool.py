"""Work in several processes: the same results in the same order, sooner."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from typing import TypeVar

CHUNK = 128
Job = TypeVar("Job")
Result = TypeVar("Result")


def in_processes(
    work: Callable[[list[Job]], list[Result]], jobs: Iterable[Job], workers: int
) -> Iterator[list[Result]]:
    """Yields the results of jobs chunk by chunk, in order.

    Args:
        work: does one chunk of jobs; a function of a module, so that another process finds it.
        jobs: what is done; each must be picklable.
        workers: the number of processes.
    """
    waiting = iter(jobs)
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _start, (os.getpid(),))
    under_way: deque[Future[list[Result]]] = deque()
    try:
        while True:
            while len(under_way) < 3 * workers and (chunk := list(islice(waiting, CHUNK))):
                under_way.append(pool.submit(work, chunk))
            if not under_way:
                return
            yield under_way.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _start(parent: int) -> None:
    """Leaves Ctrl-C to the parent, and ends when the parent is gone, however it went."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
