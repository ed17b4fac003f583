"""Which traces matter: every way to fail once before any way twice, and the rest spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from toolshift.core.scene import Stack
from toolshift.report.html.episodes.catalog import Row

Group = tuple[int, str, Stack, str, str]


def choose(rows: Iterable[Row]) -> list[Row]:
    """The rows in the order in which their traces are worth keeping.

    Rows of one agent, stack of shifts, outcome and cause form a group. The first of every group
    comes before the second of any; of the first ones failures under shift come first, the larger
    groups before the smaller. So the examples that a report names are among the first.
    """
    rows = list(rows)
    groups = [_group(row) for row in rows]
    sizes = Counter(groups)
    seen: Counter[Group] = Counter()
    ranks = []
    for place, (row, group) in enumerate(zip(rows, groups, strict=True)):
        ranks.append((seen[group], _rank(row), -sizes[group], place))
        seen[group] += 1
    return [rows[place] for *_, place in sorted(ranks)]


def _group(row: Row) -> Group:
    head = row.head
    return row.run, head.agent, row.cell.shifts, row.outcome, head.grade.cause


def _rank(row: Row) -> int:
    """Failures first, then unclear and void episodes, then passes; of each those under shift."""
    clean = not row.cell.shifts
    return 2 * ("failed", "unclear", "void", "passed").index(row.outcome) + clean
