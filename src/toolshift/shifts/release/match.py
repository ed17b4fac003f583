"""Which of some things became which: the same name first, then likeness.

The likeness of two tools, from 0 to 1, is the weighted mean of

    names          0.4   the best of shared words and shared runs of letters
    descriptions   0.4   shared words, weighted the same
    parameters     0.2   shared names and types

where a part in which both are empty is left out. Of all pairings the one with the greatest sum is
taken. A pair at `SURE` or above, and clear of the next best by `CLEAR`, is taken as it is; one
below `POSSIBLE` is no pair; what lies between is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from toolshift.core.tool import Param, Tool

SURE = 0.65
CLEAR = 0.1
POSSIBLE = 0.35


@dataclass(frozen=True)
class Guess:
    """The likeliest successor of something, and how sure that is."""

    old: str
    new: str
    likeness: float
    sure: bool


def words(text: str) -> list[str]:
    """The words of a name or a sentence, in lower case; `getUser_id` has three."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return re.findall(r"[a-z0-9]+", spaced.lower())


def alike_names(one: str, other: str) -> float:
    """The likeness of two names."""
    first, second = words(one), words(other)
    if first == second:
        return 1.0
    letters = SequenceMatcher(None, "".join(first), "".join(second), autojunk=False).ratio()
    return max(_shared(first, second), letters * 0.9)


def alike_texts(one: str, other: str) -> float:
    """The likeness of two descriptions."""
    return 1.0 if one == other else _shared(words(one), words(other))


def _shared(one: Sequence[str], other: Sequence[str]) -> float:
    first, second = set(one), set(other)
    return 2 * len(first & second) / (len(first) + len(second)) if first or second else 0.0


def alike_tools(one: Tool, other: Tool) -> float:
    """The likeness of two tools; see the module."""
    parts = [(0.4, alike_names(one.name, other.name))]
    if one.description or other.description:
        parts.append((0.4, alike_texts(one.description, other.description)))
    if one.params or other.params:
        mine = {(p.name, str(p.schema.get("type"))) for p in one.params}
        theirs = {(p.name, str(p.schema.get("type"))) for p in other.params}
        parts.append((0.2, 2 * len(mine & theirs) / (len(mine) + len(theirs))))
    return sum(w * value for w, value in parts) / sum(w for w, _ in parts)


def alike_params(one: Param, other: Param) -> float:
    """The likeness of two parameters: names 0.5, descriptions 0.3, types 0.2."""
    told, said = (str(p.schema.get("description") or "") for p in (one, other))
    parts = [(0.5, alike_names(one.name, other.name))]
    if told or said:
        parts.append((0.3, alike_texts(told, said)))
    parts.append((0.2, float(one.schema.get("type") == other.schema.get("type"))))
    return sum(w * value for w, value in parts) / sum(w for w, _ in parts)


def pair(
    olds: Mapping[str, Any], news: Mapping[str, Any], alike: Callable[[Any, Any], float]
) -> list[Guess]:
    """Pairs what has gone with what has come, where they are alike at all.

    Both hold only what is not settled by its name, by name. The same whatever their order.
    """
    if not olds or not news:
        return []
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    rows, columns = sorted(olds), sorted(news)
    likeness = np.array([[alike(olds[old], news[new]) for new in columns] for old in rows])
    found = []
    for row, column in zip(*linear_sum_assignment(-likeness), strict=True):
        best = float(likeness[row, column])
        if best < POSSIBLE:
            continue
        rivals = [*np.delete(likeness[row], column), *np.delete(likeness[:, column], row)]
        clear = best - max(map(float, rivals), default=0.0) >= CLEAR
        found.append(Guess(rows[row], columns[column], round(best, 3), best >= SURE and clear))
    return found
