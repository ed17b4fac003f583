"""Scripted agents play a scene as soon as it is made for the plan, so that each is made once.

A plan has to make every scene to know whether its shifts can be applied, and that takes far longer
than an episode. What was made and played is kept one line a scene, in `.ahead.jsonl` of the run
folder: a run that is stopped while it plans resumes from there. Once the plan is complete the
episodes go into the folder, and the file is deleted.

With one worker a run is as fast without this, as a process keeps the scenes that it has made. With
two workers a plan that is made first leaves 0.73 of the episodes a second (0.93 by CPU time), and
one pool of workers that plans and then plays 0.63 (0.76): a scene is not played where it was made.
A plan that is stopped would be lost, too. So this stays (`benchmarks/one_stream.py --tasks 150`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from itertools import chain
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO

import msgspec

from toolshift.agents.contestant import Contestant
from toolshift.core.errors import Resumable
from toolshift.core.files import cut_torn_line, decode, hold, writing
from toolshift.core.scene import Stack
from toolshift.core.tool import JSON
from toolshift.episode.contract import ScriptedAgent
from toolshift.runs.plan import Plan, Planned, Visit, visited
from toolshift.runs.pool import Executor, Pool, open_pool
from toolshift.runs.run_folder import AHEAD, InMemoryStore, RunFolder, check_new
from toolshift.runs.study import agent_of, play_scripted
from toolshift.runs.suite import ResolvedSelection

BATCH = 64
Line = tuple[Planned, bytes]


class Looked(msgspec.Struct, frozen=True):
    """A scene that was made for a plan, and its episodes: all agents in all trials.

    Attributes:
        row: of the plan.
        episodes: records, as JSON.
        seconds: that each episode took.
    """

    row: Planned
    episodes: tuple[msgspec.Raw, ...]
    seconds: tuple[float, ...]


class _Mark(msgspec.Struct, frozen=True):
    """The first line of the file: whose scenes these are."""

    run: str


class Prefetch:
    """The scenes that a plan has looked at so far, and what scripted agents did in them.

    Args:
        run: stands for the selection, the agents and the version of a run.
        selection: what is planned.
        agents: who plays.
        workers: processes.
        folder: of the run; None for one that is kept in memory.
        executor: where they play: "process" for this machine, "ray" for a cluster.

    Raises:
        UsageError: where the folder cannot be written, or is in use.
    """

    def __init__(
        self,
        run: str,
        selection: ResolvedSelection,
        agents: Sequence[Contestant],
        workers: int = 1,
        folder: Path | None = None,
        executor: Executor = "process",
    ) -> None:
        self.selection, self.agents, self.workers = selection, agents, workers
        self.executor: Executor = executor
        self._places: dict[tuple[str, Stack], int] = {}
        self._kept: dict[tuple[str, Stack], Planned] = {}
        self._path = folder / AHEAD if folder else None
        self._made = folder is not None and not folder.exists()
        self._pool: Pool | None = None
        if folder is not None:
            check_new(folder)
        with writing(folder) if folder is not None else nullcontext():
            self._file = self._open(run)

    @staticmethod
    def fits(
        contestants: Sequence[Contestant],
        workers: int,
        folder: Path | None,
        executor: Executor = "process",
    ) -> bool:
        """Whether agents can play scenes while the plan is made."""
        fresh = folder is None or not folder.exists() or not (folder / "manifest.json").exists()
        here = workers == 1 and executor == "process"
        return fresh and all(
            isinstance(c.agent, ScriptedAgent) and not c.judge and (here or bool(c.spec))
            for c in contestants
        )

    def look(self, visits: Iterable[Visit]) -> Iterator[Planned]:
        """Makes scenes task by task, and lets the agents play in them; see `plan.make_plan`."""
        left: list[Visit] = []
        for visit in visits:
            task, lineage = visit.task, visit.task.lineage
            known = [stack for stack in visit.stacks if (lineage, stack) in self._kept]
            yield from (self._kept[lineage, stack] for stack in known)
            if more := tuple(stack for stack in visit.stacks if stack not in known):
                left.append(Visit(task, more))
        for lines in self._visited(left):
            for row, line in lines:
                self._keep(row, line)
                yield row

    def flush_into(self, plan: Plan, store: RunFolder | InMemoryStore) -> None:
        """Adds the episodes of a plan to its store, and deletes the prefetched ones."""
        rows = dict.fromkeys((cell.lineage, cell.shifts) for cell in plan.cells)
        episodes: list[msgspec.Raw] = []
        seconds: list[float] = []
        for key in rows:
            if key in self._places:
                self._file.seek(self._places[key])
                looked = msgspec.json.decode(self._file.readline(), type=Looked)
                episodes += looked.episodes
                seconds += looked.seconds
            if len(episodes) > BATCH:
                store.add_written(episodes, seconds)
                episodes, seconds = [], []
        store.add_written(episodes, seconds)
        self.discard()

    def discard(self) -> None:
        """Closes, and deletes the file."""
        self._kept.clear()
        self.close()

    def close(self) -> None:
        """Closes the file and ends the processes; the file stays, so that the run can resume."""
        self._file.close()
        if self._pool is not None:
            self._pool.close()
            self._pool = None
        if self._path is not None and not self._kept:
            self._path.unlink(missing_ok=True)
            if self._made:
                with suppress(OSError):
                    self._path.parent.rmdir()

    # -- inside --------------------------------------------------------------------------------

    def _visited(self, visits: list[Visit]) -> Iterator[list[Line]]:
        if self.workers == 1 and self.executor == "process":
            agents = [c.agent for c in self.agents if isinstance(c.agent, ScriptedAgent)]
            return (list(_played(agents, self.selection, visit)) for visit in visits)
        self._pool = self._pool or open_pool(self.workers, self.executor)
        work = partial(_in_process, [contestant.spec for contestant in self.agents], self.selection)
        return chain.from_iterable(self._pool.do(work, visits, chunk=1))

    def _open(self, run: str) -> BinaryIO:
        if self._path is None:
            return tempfile.TemporaryFile()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = self._path.open("a+b")
        hold(file, self._path)
        cut_torn_line(self._path)
        file.seek(0)
        mark = JSON.encode(_Mark(run)) + b"\n"
        if file.readline() != mark:
            file.truncate(0)
            file.write(mark)
        self._read(file)
        return file

    def _read(self, file: BinaryIO) -> None:
        """Loads what an earlier process has written."""
        place = file.tell()
        for line in iter(file.readline, b""):
            self._note(decode(line, Looked, str(self._path)).row, place)
            place += len(line)

    def _keep(self, row: Planned, line: bytes) -> None:
        try:
            self._note(row, self._file.seek(0, SEEK_END))
            self._file.write(line)
        except OSError as fault:
            raise Resumable(f"{self._path}: cannot write ({fault.strerror or fault})") from None

    def _note(self, row: Planned, place: int) -> None:
        key = row.cell.lineage, row.cell.shifts
        self._places[key], self._kept[key] = place, row


def _in_process(
    specs: list[str], selection: ResolvedSelection, visits: list[Visit]
) -> list[list[Line]]:
    agents = [agent_of(spec) for spec in specs]
    return [list(_played(agents, selection, visit)) for visit in visits]


def _played(
    agents: Sequence[ScriptedAgent], selection: ResolvedSelection, visit: Visit
) -> Iterator[Line]:
    for row in visited(visit):
        trials = range(0 if row.not_applicable else selection.trials)
        done = [
            play_scripted(agent, cell, max_repeats=selection.max_repeats)
            for cell in (msgspec.structs.replace(row.cell, trial=trial) for trial in trials)
            for agent in agents
        ]
        episodes = tuple(msgspec.Raw(JSON.encode(record)) for record, _ in done)
        line = JSON.encode(Looked(row, episodes, tuple(round(took, 6) for _, took in done)))
        yield row, line + b"\n"
