"""Graded episodes as columns of numbers: some 170 bytes each, whatever their traces hold.

What a report says of an agent is made of sums over groups of its episodes, so it needs a row of
numbers for each and nothing of its steps. The rows stand in the order of the plan, whatever the
order of the file: parts of a run give the rows of the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import nan
from typing import Any, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from toolshift.core.errors import UsageError
from toolshift.core.message import Usage
from toolshift.core.scene import Stack
from toolshift.core.step import Step
from toolshift.core.tool import BROKEN_SHIFT
from toolshift.episode.episode import End
from toolshift.episode.grade import Grade
from toolshift.lm.parse_reply import looks_like_call
from toolshift.reading.harmony import for_the_user
from toolshift.reading.text import without_thoughts
from toolshift.runs.cell import Cell
from toolshift.runs.run_folder import Reading, Record

Rows = NDArray[np.void]
"""Episodes as records of `ROW`."""

Key = Callable[[Cell], str]
"""Sorts cells by their shifts, their world and their kind, and by nothing else."""

ENDS: dict[str, int] = {end: code for code, end in enumerate(get_args(End))}
ROW = np.dtype(
    [
        ("place", np.int32),
        *((name, np.bool_) for name in ("passed", "void", "solvable", "refused")),
        *((name, np.bool_) for name in ("right_reason", "prose", "met", "unclear")),
        ("end", np.int8),
        ("cause", np.int16),
        *((name, np.int32) for name in ("calls", "errors", "provoked")),
        *((name, np.int32) for name in ("oracle_calls", "misunderstood")),
        ("exploration", np.float64),
        *((name, np.int64) for name in ("read", "oracle_read", "input_tokens", "output_tokens")),
        ("cost", np.float64),
        ("episode", np.object_),
        *((name, np.int32) for name in ("task", "stack", "sort")),
    ]
)
"""A row: the place of its cell in the plan, its grade, what it cost, its name, and three codes of
its cell (see `Scenes`). An exploration that is undefined is NaN."""
BLOCK = 4096
"""Rows that are put into columns at once."""


class Scored(msgspec.Struct, frozen=True):
    """A graded episode without its steps."""

    episode: str
    cell: Cell
    grade: Grade
    usage: Usage = Usage()
    reading: Reading = Reading()
    broke: str = ""
    judges: tuple[str, ...] = ()
    unread: int = 0
    empty: int = 0
    beside: tuple[str, ...] = ()

    @classmethod
    def of(cls, record: Record, cell: Cell) -> Scored:
        """Leaves the steps out."""
        ended = record.end == "crashed" or record.grade.cause == BROKEN_SHIFT
        broke = record.steps[-1].said if ended and record.steps else ""
        judges = tuple(step.judge for step in record.steps if step.judge)
        known = (record.episode, cell, record.grade, record.usage, record.reading)
        empty, beside = empty_replies(record)
        return cls(*known, broke, judges, unread_calls(record), empty, beside)


def unread_calls(record: Record) -> int:
    """How many replies of an episode were read as prose and look like a tool call."""
    return sum(step.prose and looks_like_call(step.said) for step in record.steps)


def empty_replies(record: Record) -> tuple[int, tuple[str, ...]]:
    """How many replies of an episode are empty, and the fields beside them that hold a text."""
    steps = list(filter(is_empty, record.steps))
    return len(steps), tuple(dict.fromkeys(name for step in steps for name in texts_beside(step)))


def is_empty(step: Step) -> bool:
    """Whether a step is a reply that said nothing and called nothing, but for thoughts."""
    return step.prose and not without_thoughts(for_the_user(step.said)).strip()


def texts_beside(step: Step) -> dict[str, str]:
    """The texts that came beside a message, by field, such as `reasoning_content`.

    What the agent wanted to say may stand there. Names and ids are no texts: they have no blank.
    """
    found = {name: " ".join(_texts(value)) for name, value in step.beside.items()}
    return {name: text for name, text in found.items() if text}


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
    elif isinstance(value, str) and len(value.split()) > 1:
        yield value


class Scenes:
    """The cells of a plan, with codes for what several of them have in common.

    Args:
        cells: of the plan.

    Attributes:
        cells: in the order of the plan.
        tasks: the code of each cell's task, in the order of the names of all tasks.
        stacks: the code of each cell's shifts.
        sorts: the code of each cell's shifts, world and kind together.
        heads: a cell of each sort.
        known: how many tasks there are.
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells = cells
        ranks = {name: rank for rank, name in enumerate(sorted({cell.lineage for cell in cells}))}
        stacks: dict[Stack, int] = {}
        sorts: dict[tuple[Stack, str, str], int] = {}
        self.heads: list[Cell] = []
        codes = []
        for cell in cells:
            stack = stacks.setdefault(cell.shifts, len(stacks))
            sort = sorts.setdefault((cell.shifts, cell.world, cell.kind), len(sorts))
            codes.append((ranks[cell.lineage], stack, sort))
            if sort == len(self.heads):
                self.heads.append(cell)
        self.known = len(ranks)
        columns = np.array(codes, np.int32).reshape(-1, 3)
        self.tasks, self.stacks, self.sorts = columns.T
        self._labels: dict[Key, list[str]] = {}

    def labels(self, key: Key) -> list[str]:
        """What `key` says of each sort."""
        if key not in self._labels:
            self._labels[key] = [key(cell) for cell in self.heads]
        return self._labels[key]

    def groups(self, rows: Rows, key: Key) -> dict[str, Rows]:
        """Rows by what `key` says of their cells, in the order of the first row of each group."""
        labels = self.labels(key)
        codes = {label: code for code, label in enumerate(dict.fromkeys(labels))}
        mine = np.array([codes[label] for label in labels], np.int32)[rows["sort"]]
        order = np.argsort(mine, kind="stable")
        kinds, begins = np.unique(mine[order], return_index=True)
        names = list(codes)
        groups = [
            (names[code], rows[places])
            for code, places in zip(kinds, np.split(order, begins)[1:], strict=True)
        ]
        return dict(sorted(groups, key=lambda pair: int(pair[1]["place"][0])))


class Episodes:
    """The graded episodes of one agent.

    Args:
        scenes: those of the plan.

    Attributes:
        broke: what was said last where the agent's code, or a shift's, broke down, by the place of
            the cell.
        judges: how many messages each judge of prose read.
        unread: how many replies look like a call and were read as prose, by the place of the cell.
        empty: how many replies said nothing and called nothing, by the place of the cell.
        beside: the fields beside these messages in which a text stands.
    """

    def __init__(self, scenes: Scenes) -> None:
        self.scenes = scenes
        self.broke: dict[int, str] = {}
        self.judges: Counter[str] = Counter()
        self.unread: dict[int, int] = {}
        self.empty: dict[int, int] = {}
        self.beside: dict[str, None] = {}
        self._in_broken_shifts: list[int] = []
        self._causes: dict[str, int] = {}
        self._blocks: list[Rows] = []
        self._new: list[tuple[Any, ...]] = []

    @classmethod
    def of(cls, rows: Iterable[Scored]) -> Episodes:
        """Episodes without a plan, in the order in which they come."""
        given = list(rows)
        episodes = cls(Scenes([row.cell for row in given]))
        for place, row in enumerate(given):
            episodes.add(place, row)
        return episodes

    def add(self, place: int, row: Scored) -> None:
        """Adds an episode."""
        grade, usage, reading = row.grade, row.usage, row.reading
        if grade.cause == BROKEN_SHIFT:
            self._in_broken_shifts.append(place)
        if grade.cause == BROKEN_SHIFT or grade.end == "crashed":
            self.broke[place] = row.broke
        self.judges.update(row.judges)
        if row.unread:
            self.unread[place] = row.unread
        if row.empty:
            self.empty[place] = row.empty
            self.beside |= dict.fromkeys(row.beside)
        self._new.append(
            (
                place,
                grade.passed,
                grade.void,
                grade.solvable,
                grade.refused,
                grade.right_reason,
                grade.prose,
                grade.met,
                grade.unclear,
                ENDS[grade.end],
                self._causes.setdefault(grade.cause, len(self._causes)),
                grade.calls,
                grade.errors,
                grade.provoked,
                grade.oracle_calls,
                grade.misunderstood,
                nan if grade.exploration is None else grade.exploration,
                reading.agent,
                reading.oracle,
                usage.input_tokens + usage.saved_input_tokens,  # what the agent needs
                usage.output_tokens + usage.saved_output_tokens,
                usage.cost,
                row.episode,
                0,
                0,
                0,
            )
        )
        if len(self._new) == BLOCK:
            self._settle()

    @property
    def rows(self) -> Rows:
        """All of them, in the order of their places."""
        self._settle()
        rows = np.concatenate([np.empty(0, ROW), *self._blocks])
        rows = rows[np.argsort(rows["place"], kind="stable")]
        for name, codes in (
            ("task", self.scenes.tasks),
            ("stack", self.scenes.stacks),
            ("sort", self.scenes.sorts),
        ):
            rows[name] = codes[rows["place"]]
        self._blocks = [rows]
        return rows

    @property
    def causes(self) -> list[str]:
        """The names of the codes of causes."""
        return list(self._causes)

    def in_broken_shifts(self) -> list[tuple[Cell, str]]:
        """The cells in which the code of a shift raised, and what was said."""
        return [(self.scenes.cells[at], self.broke[at]) for at in self._in_broken_shifts]

    def _settle(self) -> None:
        try:
            self._blocks.append(np.array(self._new, ROW))
        except OverflowError:
            raise UsageError(
                f"among the episodes from {self._new[0][-4]} to {self._new[-1][-4]} one has a "
                "count that is too large (2^31 calls, 2^63 tokens): restore the file"
            ) from None
        self._new = []
