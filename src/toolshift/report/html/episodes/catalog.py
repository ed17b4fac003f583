"""Every episode of the runs as a row of numbers, and the lists that the numbers point into."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.scene import Scene
from toolshift.core.shift import NotApplicable
from toolshift.episode.causes import CAUSES
from toolshift.episode.grade import Grade
from toolshift.measure.metrics import tier_of
from toolshift.report.words import cause_in_words, outcome_of
from toolshift.runs.cell import Cell
from toolshift.runs.own import Shown, shown_in
from toolshift.runs.run_folder import Record, RunFolder
from toolshift.shifts.registry import find_shift

_ID = re.compile("[0-9a-f]{10}")
OUTCOMES = ("passed", "failed", "void", "unclear")


class Head(msgspec.Struct, frozen=True):
    """The first fields of a record, which is all that its row needs."""

    episode: str
    agent: str
    cell: str
    grade: Grade


@dataclass(frozen=True)
class Row:
    """An episode in the index; `run` is the place of its folder."""

    run: int
    head: Head | Record
    cell: Cell

    @property
    def key(self) -> str:
        """Its name on the page, also in a link: the run and the episode."""
        return f"{self.run}-{self.head.episode}"

    @property
    def outcome(self) -> str:
        """How it came out."""
        return outcome_of(self.head.grade)


class Catalog:
    """The runs, agents, tasks and stacks of shifts; all that is known before the first episode."""

    def __init__(self, folders: Sequence[RunFolder]) -> None:
        self.folders = folders
        self.cells = [folder.cells for folder in folders]
        cells = [cell for by_id in self.cells for cell in by_id.values()]
        self.agents = _places(a["name"] for f in folders for a in f.manifest.agents)
        self.tasks = _places(cell.lineage for cell in cells)
        self._ids = {
            cell.lineage: name
            for folder, by_id in zip(folders, self.cells, strict=True)
            for cell in by_id.values()
            if (name := folder.task_id(cell))
        }
        self.stacks = _places(sorted({cell.stack for cell in cells}))
        self.causes = _places(("", *CAUSES))
        self._numbers = {
            cell: [self.tasks[cell.lineage], self.stacks[cell.stack], cell.trial] for cell in cells
        }
        self._clean = [
            {(cell.lineage, cell.trial): cell for cell in by_id.values() if not cell.shifts}
            for by_id in self.cells
        ]

    def row(self, run: int, record: Record | Head) -> Row | None:
        """The row of an episode; None for one of a scene or an agent that is not in the run."""
        cell = self.cells[run].get(record.cell)
        if cell is None or record.agent not in self.agents or not _ID.fullmatch(record.episode):
            return None
        return Row(run, record, cell)

    def rows(self) -> list[Row]:
        """All finished episodes, run by run."""
        runs = range(len(self.folders))
        rows = (self.row(run, record) for run in runs for record in self.folders[run].records())
        return [row for row in rows if row is not None]

    def scene(self, row: Row) -> tuple[Scene | None, Shown | None, str]:
        """The scene of a row, what was shown at its start, and why that is not all there is."""
        folder = self.folders[row.run]
        try:
            scene = folder.scene(row.cell)
            return scene, shown_in(scene), ""
        except (UsageError, NotApplicable) as why:
            reason = str(why)
        try:
            return None, folder.own.shown(row.cell), reason
        except (UsageError, NotApplicable):
            return None, None, reason

    def clean_cell(self, run: int, cell: Cell) -> Cell | None:
        """The clean scene of the same task and trial; None for a clean one, or where none is."""
        return self._clean[run].get((cell.lineage, cell.trial)) if cell.shifts else None

    def numbers(self, row: Row) -> list[int]:
        """A row as places in the lists: run, agent, task, stack, trial, outcome, cause."""
        grade = row.head.grade
        return [
            row.run,
            self.agents[row.head.agent],
            *self._numbers[row.cell],
            OUTCOMES.index(row.outcome),
            self.causes.setdefault(grade.cause, len(self.causes)),
        ]

    def lists(self) -> dict[str, Any]:
        """The lists, for the page."""
        stacks = {cell.stack: cell for by_id in self.cells for cell in by_id.values()}
        return {
            "runs": [folder.path.resolve().name for folder in self.folders],
            "agents": list(self.agents),
            "tasks": [self._task(lineage) for lineage in self.tasks],
            "stacks": [_about(stacks[text]) for text in self.stacks],
            "outcomes": OUTCOMES,
            "causes": [[cause.replace("_", " "), cause_in_words(cause)] for cause in self.causes],
        }

    def _task(self, lineage: str) -> list[str]:
        """A task as its kind, and what the user's own file calls it, or else its number."""
        world, kind, _, seed, _, index = lineage.split("/")
        name = self._ids.get(lineage, index)
        return [f"{world}/{kind}", f"{name} (seed {seed})" if self._several else name]

    @cached_property
    def _several(self) -> bool:
        """Whether the tasks are of several seeds, so that their names need the seed."""
        return len({cell.seed for by_id in self.cells for cell in by_id.values()}) > 1


def _places(names: Iterable[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(dict.fromkeys(names))}


def _about(cell: Cell) -> dict[str, Any]:
    """A stack of shifts: its name, tier, severities, and what each shift does."""
    return {
        "name": cell.stack,
        "shifts": [applied.shift for applied in cell.shifts],
        "severities": [applied.severity for applied in cell.shifts],
        "tier": _tier(cell),
        "about": [text for applied in cell.shifts for text in _summary(applied.shift)],
    }


def _tier(cell: Cell) -> str:
    """The tier; "" where a shift is not known here, as one of a plugin that is not loaded."""
    try:
        return tier_of(cell) if cell.shifts else "clean"
    except UsageError:
        return ""


def _summary(shift: str) -> list[str]:
    try:
        return [find_shift(shift).summary]
    except UsageError:
        return []
