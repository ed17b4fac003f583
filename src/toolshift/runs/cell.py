"""A cell: one scene to run, as data, and how to rebuild the scene from it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.scene import Applied, Scene
from toolshift.core.world import World
from toolshift.episode.draw import make_scene
from toolshift.shifts.registry import apply, find_shift
from toolshift.worlds.registry import find_world

Stack = tuple[Applied, ...]
Worlds = Callable[[str], World]


class Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    """One scene to run, as data. Cells of one `lineage` are the same task, clean and shifted.

    `task` is the content hash of the task (`scene.Task.id`), so that a world whose generator has
    changed cannot pass for the one that was planned.
    """

    world: str
    kind: str
    index: int
    seed: int
    pool: str
    size: int
    shifts: Stack = ()
    trial: int = 0
    task: str = ""

    @property
    def lineage(self) -> str:
        """What joins the scenes of one task."""
        return f"{self.world}/{self.kind}/{self.pool}/{self.seed}/{self.size}/{self.index}"

    @property
    def stack(self) -> str:
        """The shifts as text, `a:2+b:1`; "" for the clean scene."""
        return write_stack(self.shifts)

    @property
    def id(self) -> str:
        """A short name, the same in every run that has this cell.

        A shift of version 1 stands in it by its name and a later version as `redirect@2`, whichever
        is that of today: so runs of before and after a new version can be compared.
        """
        stack = "+".join(
            f"{_versioned(applied.shift)}:{applied.severity}" for applied in self.shifts
        )
        return _digest(self.lineage, stack, str(self.trial), self.task)


def _versioned(name: str) -> str:
    shift = find_shift(name)
    return shift.base if shift.version == 1 else f"{shift.base}@{shift.version}"


def write_stack(stack: Stack) -> str:
    """A stack as text, `a:2+b:1`."""
    return "+".join(f"{applied.shift}:{applied.severity}" for applied in stack)


@lru_cache(maxsize=2048)
def _clean(
    find: Worlds, world: str, kind: str, index: int, seed: int, pool: str, size: int
) -> Scene:
    return make_scene(find(world), kind, index, seed, pool, size)


@lru_cache(maxsize=8192)
def _shifted(
    find: Worlds, world: str, kind: str, index: int, seed: int, pool: str, size: int, stack: Stack
) -> Scene:
    if not stack:
        return _clean(find, world, kind, index, seed, pool, size)
    below = _shifted(find, world, kind, index, seed, pool, size, stack[:-1])
    return apply(below, stack[-1].shift, stack[-1].severity)


def build(cell: Cell, find: Worlds = find_world) -> Scene:
    """The scene of a cell; scenes are values, so the last few thousand are kept.

    It may start the user's own tools and import the user's code. To look at a run only, use
    `RunFolder.scene`, which does neither.
    """
    scene = _shifted(
        find, cell.world, cell.kind, cell.index, cell.seed, cell.pool, cell.size, cell.shifts
    )
    if cell.task and scene.task.id != cell.task:
        raise UsageError(
            f"{cell.lineage} is another task now than when it was planned: the world or its "
            "wording has changed. Start a new run."
        )
    return scene


def _digest(*parts: str) -> str:
    return blake2b("\x1f".join(parts).encode(), digest_size=5).hexdigest()
