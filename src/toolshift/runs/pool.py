"""Scripted agents in several processes: the same results in the same order, sooner."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from functools import cache
from itertools import islice
from multiprocessing import get_context
from typing import Any

from toolshift.runs.cell import Cell

CHUNK = 128
Job = tuple[str, Cell]


def in_processes(jobs: Iterable[Job], workers: int) -> Iterator[list[Any]]:
    """Plays jobs (an agent's spec and a cell) and yields their results chunk by chunk, in order."""
    waiting = iter(jobs)
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _start, (os.getpid(),))
    under_way: deque[Future[list[Any]]] = deque()
    try:
        while True:
            while len(under_way) < 3 * workers and (chunk := list(islice(waiting, CHUNK))):
                under_way.append(pool.submit(_play, chunk))
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


@cache
def _agent(spec: str) -> Any:
    from toolshift.agents.catalog import make_agent

    return make_agent(spec)


def _play(jobs: list[Job]) -> list[Any]:
    from toolshift.runs.study import _play_scripted

    return [_play_scripted(_agent(spec), cell) for spec, cell in jobs]
