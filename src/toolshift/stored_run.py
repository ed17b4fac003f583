"""A stored run in Python: its episodes, grades, messages and tools as typed objects, or a table.

    run = toolshift.read_run("runs/first")
    for episode in run.episodes:
        print(episode.task, episode.shifts, episode.grade.passed)
    run.to_pandas().groupby(["agent", "tier"])["passed"].mean()

To read a run starts nothing and imports nothing that the run names. Episodes are read from the
folder one by one, so a run may be larger than memory.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast, overload

import msgspec

from toolshift.api import Evaluation, report_of
from toolshift.core.errors import UsageError
from toolshift.core.files import PACKED, decode, opened, sound
from toolshift.core.message import Usage, protocol_tools
from toolshift.core.shift import NotApplicable
from toolshift.core.step import Step
from toolshift.core.tool import as_openai
from toolshift.episode.episode import End, conversation
from toolshift.episode.grade import Grade
from toolshift.measure.metrics import dimension_of, shift_of, tier_of
from toolshift.measure.parallel import ParallelCalls, parallel_calls
from toolshift.runs.cell import Cell, write_stack
from toolshift.runs.execute import whole_path
from toolshift.runs.own import Shown
from toolshift.runs.run_folder import Named, Record, RunFolder


@dataclass(frozen=True)
class StoredEpisode:
    """One finished episode of a stored run.

    Attributes:
        id: as `toolshift trace` takes it.
        agent: who played.
        task: `world/kind/index`, as `attempt` takes it.
        task_id: what your own file calls the task; "" where it has no name.
        scene: what joins the episodes of one task, clean and shifted: the task, its pool, seed and
            size.
        world: of the task.
        kind: of the task.
        pool: of the entities.
        seed: of the world.
        size: how many entities there are.
        trial: which trial.
        shifts: the stack of shifts, "a:2+b:1", as `attempt` takes it; "" for the clean scene.
        under: the stack that the clean scene stands under as well, as `attempt` takes it.
        shift: the same as `shifts` without severities.
        severity: the highest in the stack; 0 for the clean scene.
        tier: of the shifts; "composed" for several, "none" for the clean scene and the placebo.
        dimension: likewise.
        end: how the episode ended: "answered", "refused", "budget", "crashed" or "infrastructure".
        grade: the verdict.
        usage: tokens and dollars over all turns.
        seconds: how long it took; None where that was not kept.
        steps: the trace, with what is true of each step.
    """

    id: str
    agent: str
    task: str
    task_id: str
    scene: str
    world: str
    kind: str
    pool: str
    seed: int
    size: int
    trial: int
    shifts: str
    under: str
    shift: str
    severity: int
    tier: str
    dimension: str
    end: End
    grade: Grade
    usage: Usage
    seconds: float | None
    steps: tuple[Step, ...] = field(repr=False, hash=False)
    _shown: Callable[[], Shown] = field(repr=False, compare=False)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation in the OpenAI format, as the agent was shown it; made anew each time.

        Raises:
            UsageError: where the beginning is not stored, and would need code of a shift or a world
                that is not loaded. `steps` and `grade` are there all the same.
        """
        shown = self._shown()
        return conversation(shown.system, shown.asks[0][0], self.steps)

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools in the OpenAI format, as the agent was shown them at the start.

        Where tools change in the middle of an episode, `steps` says by name which are left; their
        schemas are not stored.

        Raises:
            UsageError: as for `messages`.
        """
        return [*map(as_openai, self._shown().tools), *protocol_tools()]

    @property
    def parallel(self) -> ParallelCalls:
        """How the agent called in parallel, and what it did where one of several calls failed."""
        return parallel_calls(self.steps)

    def row(self) -> dict[str, Any]:
        """The episode as one row of plain values: what it is, and the grade; no trace."""
        about = {name: getattr(self, name) for name in _ABOUT}
        graded = {name: getattr(self.grade, name) for name in _GRADED}
        return {**about, **graded, **msgspec.structs.asdict(self.usage), "seconds": self.seconds}


_ABOUT: dict[str, type] = {
    **dict.fromkeys(("id", "agent", "task", "task_id", "scene", "world", "kind", "pool"), str),
    **dict.fromkeys(("seed", "size", "trial"), int),
    **dict.fromkeys(("shifts", "under", "shift"), str),
    "severity": int,
    **dict.fromkeys(("tier", "dimension"), str),
}
_TYPES = {"bool": bool, "int": int, "float | None": float}
_GRADED: dict[str, type] = {
    name: _TYPES.get(str(Grade.__annotations__[name]), str) for name in Grade.__struct_fields__
}
COLUMNS: dict[str, type] = {
    **_ABOUT,
    **_GRADED,
    **{"input_tokens": int, "output_tokens": int, "cost": float},
    **{"cached_tokens": int, "reasoning_tokens": int},
    **{"requests": int, "recalled": int, "saved_input_tokens": int},
    **{"saved_output_tokens": int, "saved_cost": float, "seconds": float},
}
"""The columns of a table of episodes, and the type of each."""


class StoredEpisodes(Sequence[StoredEpisode]):
    """The finished episodes of a run, each read from the folder when it is asked for.

    Those of a run that goes on are the ones that were there at the first look.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._seconds = folder.timings()

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> StoredEpisode: ...

    @overload
    def __getitem__(self, place: slice) -> list[StoredEpisode]: ...

    def __getitem__(self, place: int | slice) -> StoredEpisode | list[StoredEpisode]:
        if isinstance(place, slice):
            return [self._episode(number) for number in range(len(self))[place]]
        return self._episode(range(len(self))[place])

    def __repr__(self) -> str:
        return f"<{len(self)} episodes of {self._folder.path}>"

    @cached_property
    def _file(self) -> BinaryIO:
        """The file of the episodes, kept open; of a compressed one, what it holds."""
        path = self._folder.episodes
        file = opened(path)
        if path.suffix in PACKED:
            with file as packed, sound(path):
                file = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - closed below
                shutil.copyfileobj(packed, file)
                file.seek(0)
        weakref.finalize(self, file.close)
        return file

    @cached_property
    def _places(self) -> array[int]:
        """Where each episode begins in the file; an unfinished last line is none."""
        places: array[int] = array("Q")
        path, seen = self._folder.episodes, set[tuple[str, str]]()
        if not path.exists():
            return places
        with self._lock:
            place = self._file.seek(0)
            for number, line in enumerate(self._file, 1):
                if line.endswith(b"\n"):
                    named = decode(line, Named, f"{path}, line {number}")
                    self._folder.check(named, seen)
                    places.append(place)
                place += len(line)
        return places

    def _episode(self, number: int) -> StoredEpisode:
        with self._lock:
            self._file.seek(self._places[number])
            line = self._file.readline()
        record = decode(line, Record, f"{self._folder.episodes}, line {number + 1}")
        return _as_episode(self._folder, record, self._seconds.get(record.episode))


def _as_episode(folder: RunFolder, record: Record, seconds: float | None) -> StoredEpisode:
    cell = folder.cell(record)
    return StoredEpisode(
        id=record.episode,
        agent=record.agent,
        task=f"{cell.world}/{cell.kind}/{cell.index}",
        task_id=folder.task_id(cell),
        scene=cell.lineage,
        world=cell.world,
        kind=cell.kind,
        pool=cell.pool,
        seed=cell.seed,
        size=cell.size,
        trial=cell.trial,
        shifts=cell.stack,
        under=write_stack(cell.under),
        shift=shift_of(cell),
        severity=max((each.severity for each in cell.shifts), default=0),
        tier=tier_of(cell),
        dimension=dimension_of(cell),
        end=record.end,
        grade=record.grade,
        usage=record.usage,
        seconds=seconds,
        steps=record.steps,
        _shown=lambda: _shown(folder, cell),
    )


def _shown(folder: RunFolder, cell: Cell) -> Shown:
    """What the agent was shown at the start."""
    try:
        return folder.own.shown(cell)
    except NotApplicable as why:
        raise UsageError(f"the scene {cell.lineage} can no longer be made: {why}") from None


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A run folder, read.

    Attributes:
        path: of the folder.
        version: of ToolShift that has run it.
        suite: what was selected, in a word.
        started: when, in UTC.
        agents: the names of who played.
        worlds: their names.
        shifts: the version of each shift that was planned.
        planned: how many episodes there are in a finished run.
        episodes: the finished ones, read one by one.
    """

    path: Path
    version: str
    suite: str
    started: str
    agents: tuple[str, ...]
    worlds: tuple[str, ...]
    shifts: dict[str, int] = field(repr=False)
    planned: int
    episodes: StoredEpisodes = field(repr=False)
    _folder: RunFolder = field(repr=False)

    @cached_property
    def report(self) -> Evaluation:
        """The report, made again from the episodes: what `evaluate` has returned."""
        return report_of(self._folder)

    @property
    def manifest(self) -> dict[str, Any]:
        """All that the folder says of the run, as plain values: settings of agents, packages."""
        made: dict[str, Any] = msgspec.to_builtins(self._folder.manifest)
        return made

    def rows(self) -> Iterator[dict[str, Any]]:
        """The episodes as rows of plain values, with the columns of `to_pandas`."""
        return (episode.row() for episode in self.episodes)

    def to_pandas(self) -> Any:
        """The episodes as a pandas data frame, a row each.

        The columns are what a `StoredEpisode` says of the task and its shifts, the fields of its
        `Grade`, those of its `Usage`, and `seconds`.

        Returns:
            A `pandas.DataFrame`. What is not known is NaN.

        Raises:
            UsageError: where pandas is not installed.
        """
        pandas = _package("pandas")
        kinds = {bool: "bool", int: "int64", float: "float64", str: "object"}
        columns = self._columns()
        return pandas.DataFrame(
            {
                name: pandas.Series(columns[name], dtype=kinds[kind])
                for name, kind in COLUMNS.items()
            }
        )

    def to_polars(self) -> Any:
        """The episodes as a polars data frame, with the rows and columns of `to_pandas`.

        Returns:
            A `polars.DataFrame`. What is not known is null.

        Raises:
            UsageError: where polars is not installed.
        """
        polars = _package("polars")
        kinds = {bool: polars.Boolean, int: polars.Int64, float: polars.Float64, str: polars.String}
        schema = {name: kinds[kind] for name, kind in COLUMNS.items()}
        return polars.DataFrame(self._columns(), schema=schema)

    def _columns(self) -> dict[str, list[Any]]:
        """The table by columns; traces are dropped row by row."""
        columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        for row in self.rows():
            for name, values in columns.items():
                values.append(row[name])
        return columns


def _package(name: str) -> Any:
    """A package that is no part of any extra of ours."""
    try:
        return import_module(name)
    except ModuleNotFoundError as fault:
        if fault.name != name:
            raise
        raise UsageError(
            f"to_{name} needs the package {name}, which is not installed; run: pip install {name}"
        ) from None


def read_run(path: str | Path) -> StoredRun:
    """Reads a run folder: episodes, grades, messages and tools as typed objects.

    It starts no process, opens no connection and imports nothing that the run names. A finished
    run and one that goes on can be read, compressed or not.

    Args:
        path: of the folder that `toolshift run --out` or `evaluate(out=...)` has made.

    Returns:
        The run. Its episodes are read from the folder when they are asked for.

    Raises:
        UsageError: where there is no run, or its files are damaged or of a newer ToolShift.
    """
    folder = RunFolder.read(whole_path(path, "path"))
    manifest = folder.manifest
    agents = tuple(str(each["name"]) for each in manifest.agents)
    return StoredRun(
        path=folder.path,
        version=manifest.toolshift,
        suite=manifest.suite,
        started=manifest.started,
        agents=agents,
        worlds=manifest.selection.worlds,
        shifts=dict(manifest.shifts),
        planned=len(folder.cells) * len(agents),
        episodes=StoredEpisodes(folder),
        _folder=folder,
    )
