"""Counts how often something held in each task; the input of a report's estimators."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]


class Tally(msgspec.Struct, frozen=True):
    """How often something held, task by task.

    Attributes:
        tasks: the codes of the tasks that are meant, in an order.
        held: how often it held, by the code of a task.
        of: how often it could have, likewise; 0 for a task that was not counted.
    """

    tasks: Codes
    held: NDArray[np.intp]
    of: NDArray[np.intp]

    @classmethod
    def count(cls, tasks: Codes, held: NDArray[np.bool_], known: int) -> Tally:
        """Counts rows."""
        of = np.bincount(tasks, minlength=known)
        first = np.full(known, tasks.size)
        np.minimum.at(first, tasks, np.arange(tasks.size))
        counted = np.flatnonzero(of)
        order = counted[np.argsort(first[counted])]
        return cls(order, np.bincount(tasks[held], minlength=known), of)

    @property
    def means(self) -> Floats:
        """The share of each task."""
        return self.held[self.tasks] / self.of[self.tasks]

    @property
    def single(self) -> bool:
        """Whether no task has more than one row."""
        return bool((self.of[self.tasks] == 1).all())

    def __len__(self) -> int:
        """The number of tasks."""
        return self.tasks.size

    def over(self, tasks: Codes) -> Tally:
        """The same for other tasks; those that were not counted are left out."""
        return Tally(tasks[self.of[tasks] > 0], self.held, self.of)

    def by_name(self) -> Tally:
        """The tasks in the order of their codes, which is that of their names."""
        return Tally(np.sort(self.tasks), self.held, self.of)


def pairs(first: Tally, second: Tally) -> tuple[Floats, Floats]:
    """The shares of the tasks that both have, in the order of their names."""
    mine = second.over(first.over(second.tasks).tasks).by_name()
    return first.over(mine.tasks).means, mine.means
