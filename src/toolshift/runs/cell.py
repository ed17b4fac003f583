"""A cell: one scene to run, as data, and how to rebuild the scene from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b

import msgspec

from toolshift.core.command_line import command
from toolshift.core.errors import ShiftFault, UsageError, described
from toolshift.core.scene import Applied, Scene, Stack
from toolshift.core.shift import NotApplicable
from toolshift.core.world import World
from toolshift.episode.draw import make_scene
from toolshift.shifts.registry import apply, find_shift
from toolshift.worlds.registry import find_world

Worlds = Callable[[str], World]


class Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    """One scene to run, as data. Cells of one `lineage` are the same task, clean and shifted.

    `task` is the content hash of the task (`scene.Task.id`), so that a world whose generator has
    changed cannot pass for the one that was planned.

    Attributes:
        under: the shifts that the clean scene of the task stands under as well.
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
    under: Stack = ()

    @property
    def lineage(self) -> str:
        """What joins the scenes of one task."""
        return f"{self.world}/{self.kind}/{self.pool}/{self.seed}/{self.size}/{self.index}"

    @property
    def stack(self) -> str:
        """The shifts as text, `a:2+b:1`; "" for the clean scene."""
        return write_stack(self.shifts)

    @property
    def said(self) -> str:
        """How messages call what the scene has been through."""
        under = f", under {write_stack(self.under)}" if self.under else ""
        return f"{self.stack or 'clean'}{under}"

    @property
    def id(self) -> str:
        """A short name, the same in every run that has this cell.

        A shift of version 1 stands in it by its name and a later version as `redirect@2`, whichever
        is that of today: so runs of before and after a new version can be compared.
        """
        stack, under = map(_versioned, (self.shifts, self.under))
        return _digest(self.lineage, stack, str(self.trial), self.task, *filter(None, [under]))


def _versioned(stack: Stack) -> str:
    found = [(find_shift(applied.shift), applied.severity) for applied in stack]
    return "+".join(
        f"{shift.base if shift.version == 1 else f'{shift.base}@{shift.version}'}:{severity}"
        for shift, severity in found
    )


def write_stack(stack: Stack) -> str:
    """A stack as text, `a:2+b:1`."""
    return "+".join(f"{applied.shift}:{applied.severity}" for applied in stack)


@lru_cache(maxsize=2048)
def _clean(
    find: Worlds, world: str, kind: str, index: int, seed: int, pool: str, size: int
) -> Scene:
    return make_scene(find(world), kind, index, seed, pool, size)


Placed = tuple[Applied, int]
"""A shift, and its place among those that were named with it."""


@lru_cache(maxsize=8192)
def _shifted(
    find: Worlds,
    world: str,
    kind: str,
    index: int,
    seed: int,
    pool: str,
    size: int,
    stack: tuple[Placed, ...],
) -> Scene:
    if not stack:
        return _clean(find, world, kind, index, seed, pool, size)
    below = _shifted(find, world, kind, index, seed, pool, size, stack[:-1])
    applied, place = stack[-1]
    return apply(below, applied.shift, applied.severity, place=place)


@lru_cache(maxsize=8192)
def _standing(
    find: Worlds,
    world: str,
    kind: str,
    index: int,
    seed: int,
    pool: str,
    size: int,
    under: Stack,
    stack: Stack,
) -> Scene:
    """A scene that stands under some shifts, and has its own beside them.

    All are applied together, the deepest first, so that its own reach what the others have made.
    What it is compared with is the scene under the others alone.
    """
    task = find, world, kind, index, seed, pool, size
    every = sorted(
        (*_places(under), *_places(stack)),
        key=lambda placed: (find_shift(placed[0].shift).order, placed[0].shift),
    )
    made = _shifted(*task, tuple(every))
    if stack:
        return replace(made, shifts=stack, origin=_standing(*task, under, ()))
    last = made.rehearsal[-1] if made.rehearsal else None
    if made.solvable and (last is None or last.kind != "answer"):
        raise NotApplicable(f"under {write_stack(under)}, the oracle does not reach the answer")
    return replace(made, shifts=(), origin=None)


def _places(stack: Stack) -> tuple[Placed, ...]:
    return tuple((applied, place) for place, applied in enumerate(stack))


def build(cell: Cell, find: Worlds = find_world) -> Scene:
    """The scene of a cell; scenes are values, so the last few thousand are kept.

    It may start the user's own tools and import the user's code. To look at a run only, use
    `RunFolder.scene`, which does neither.
    """
    task = find, cell.world, cell.kind, cell.index, cell.seed, cell.pool, cell.size
    if cell.under:
        scene = _standing(*task, cell.under, cell.shifts)
    else:
        scene = _shifted(*task, _places(cell.shifts))
    if cell.task and scene.task.id != cell.task:
        raise UsageError(
            f"{cell.lineage} is not the task that was planned: the world or its wording has "
            "changed since. Start a new run."
        )
    return scene


def check_solved(cell: Cell, scene: Scene) -> None:
    """Checks that the oracle can work through the scene of a cell."""
    try:
        scene.rehearsal  # noqa: B018  it is kept with the scene
    except (UsageError, ShiftFault):
        raise
    except Exception as fault:
        shifts = dict.fromkeys(applied.shift for applied in cell.shifts)
        check = command("check", *(shifts or [cell.world]))
        raise UsageError(
            f"the oracle cannot solve {cell.lineage} ({cell.said}): {described(fault)}. "
            f"`{check}` says more."
        ) from fault


def _digest(*parts: str) -> str:
    return blake2b("\x1f".join(parts).encode(), digest_size=5).hexdigest()
