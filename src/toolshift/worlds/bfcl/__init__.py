"""The Berkeley Function Calling Leaderboard as worlds, read from the user's own `bfcl-eval`.

world = find_bfcl("bfcl:multi_turn_base")   # a World like any other; so is "bfcl:multi_turn"
"""

from __future__ import annotations

from functools import cache

from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.worlds.bfcl import wheel
from toolshift.worlds.bfcl.world import COLLECTIONS, BfclWorld
from toolshift.worlds.names import BFCL

__all__ = ["BfclWorld", "find_bfcl"]


def find_bfcl(name: str) -> BfclWorld:
    """The world of a category, or of a collection of them; made once in a process."""
    category = name.removeprefix(BFCL)
    if category not in COLLECTIONS:
        raise UsageError(unknown("category of BFCL", category, COLLECTIONS))
    wheel.folder()
    return _made(category)


@cache
def _made(category: str) -> BfclWorld:
    return BfclWorld(f"{BFCL}{category}", COLLECTIONS[category])
