"""A plan: the cells that a selection stands for, and those that turned out not applicable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from itertools import count, cycle, product
from random import Random
from typing import Any

import msgspec

from toolshift.core import seed as seeds
from toolshift.core.errors import (
    FitsNoTask,
    ShiftFault,
    UsageError,
    WorldFault,
    defined_at,
    described,
    place_of,
    placed,
)
from toolshift.core.scene import Applied, Scene, Stack
from toolshift.core.shift import TIERS, NotApplicable
from toolshift.core.tool import JSON
from toolshift.runs.cell import Cell, build
from toolshift.runs.check_shift import changes_nothing, is_theirs, is_unproved, misnamed, misread
from toolshift.runs.suite import ResolvedSelection
from toolshift.shifts.registry import find_shift, shifts
from toolshift.shifts.stacks import Arm, as_applied
from toolshift.worlds.registry import find_world

PLACEBO = "placebo"
MAX_TRIES = 5


class Planned(msgspec.Struct, frozen=True, omit_defaults=True):
    """A cell of a plan.

    Attributes:
        not_applicable: why it cannot be run; "" where it can.
        broken: that is an exception in the code of a shift, and nothing about the task.
    """

    cell: Cell
    not_applicable: str = ""
    broken: bool = False


class Plan(msgspec.Struct, frozen=True):
    """The cells to run, and those that turned out not to be applicable."""

    selection: ResolvedSelection
    versions: dict[str, int]
    rows: tuple[Planned, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that can be run."""
        return tuple(row.cell for row in self.rows if not row.not_applicable)

    @property
    def skipped(self) -> tuple[Planned, ...]:
        """The cells that cannot."""
        return tuple(row for row in self.rows if row.not_applicable)

    @property
    def hash(self) -> str:
        """A hash of everything in the plan, the versions of its shifts included."""
        return blake2b(JSON.encode(self), digest_size=8).hexdigest()


class Visit(msgspec.Struct, frozen=True):
    """A task, and the stacks of shifts under which it is looked at; the clean scene comes first."""

    task: Cell
    stacks: tuple[Stack, ...]


Look = Callable[[Iterable[Visit]], Iterator[Planned]]
"""Checks tasks, here or in other processes, in any order."""
_Try = Callable[[Cell, Stack], Planned]


def visited(visit: Visit) -> Iterator[Planned]:
    """Makes the scenes of one task; nothing more where the clean one cannot be made."""
    for stack in visit.stacks:
        row = _try(visit.task, stack)
        yield row
        if row.not_applicable and not stack:
            return


def _look(visits: Iterable[Visit]) -> Iterator[Planned]:
    return (row for visit in visits for row in visited(visit))


def make_plan(
    selection: ResolvedSelection,
    watch: Callable[[int], None] = lambda done: None,
    look: Look = _look,
) -> Plan:
    """Plans the cells of a selection, and finds out which are not applicable."""
    planned: dict[tuple[str, Stack], Planned] = {}
    for row in _known_rows(selection, watch, look):  # arms may overlap, and a scene is run once
        planned.setdefault((row.cell.lineage, as_applied(row.cell.shifts)), row)
    rows = list(planned.values())
    if not any(not row.not_applicable for row in rows):
        why = rows[0].not_applicable if rows else "no task kind was selected"
        raise UsageError(f"there is nothing to run: {why}")
    shifted = [row for row in rows if row.cell.shifts and not is_placebo(row.cell)]
    if shifted and all(row.not_applicable and not row.broken for row in shifted):
        names = ", ".join(dict.fromkeys(row.cell.stack for row in shifted))
        raise FitsNoTask(
            f"{names} cannot be applied to any task of {', '.join(selection.worlds)}: "
            f"{shifted[0].not_applicable}. Choose other tasks (--world, --kind) or another shift.",
            {row.cell.lineage: row.not_applicable for row in shifted},
        )
    used = {applied.shift for row in rows for applied in (*row.cell.shifts, *row.cell.under)}
    versions = {name: find_shift(name).version for name in sorted(used)}
    return Plan(selection, versions, _with_trials(rows, selection.trials))


def is_placebo(cell: Cell) -> bool:
    """Whether a cell belongs to the placebo arm."""
    return [applied.shift for applied in cell.shifts] == [PLACEBO]


def _with_trials(rows: list[Planned], trials: int) -> tuple[Planned, ...]:
    change = msgspec.structs.replace
    return tuple(
        change(row, cell=change(row.cell, trial=trial)) for row in rows for trial in range(trials)
    )


def _known_rows(
    selection: ResolvedSelection, watch: Callable[[int], None], look: Look
) -> list[Planned]:
    """The rows of a plan, all the scenes of a task made one after the other.

    The order of a plan is another, and which scene comes next may depend on those before. So a plan
    is made as if all scenes that are not known yet were applicable; these are looked at, and it is
    made again until none is left.
    """
    known: dict[tuple[str, Stack], Planned] = {}
    while True:
        open_: dict[str, tuple[Cell, dict[Stack, None]]] = {}

        def try_(task: Cell, stack: Stack, open_: Any = open_) -> Planned:
            if (task.lineage, stack) in known:
                return known[task.lineage, stack]
            open_.setdefault(task.lineage, (task, {}))[1][stack] = None
            return Planned(msgspec.structs.replace(task, shifts=stack, task=""))

        rows = list(_rows(selection, try_))
        if not open_:
            return rows
        for row in look(Visit(task, tuple(stacks)) for task, stacks in open_.values()):
            known[row.cell.lineage, row.cell.shifts] = row
            watch(len(known))


def _rows(selection: ResolvedSelection, try_: _Try) -> Iterator[Planned]:
    placebo = selection.placebo and PLACEBO in shifts()
    for seed, name in product(selection.seeds, selection.worlds):
        rows = [try_(cell, ()) for cell in _tasks(selection, name, seed)]
        yield from rows
        tasks = [row.cell for row in rows if not row.not_applicable]
        if placebo:
            yield from (try_(task, (Applied(PLACEBO, 2),)) for task in tasks)
        if selection.rotate and any(arm.tasks for arm in selection.arms):
            deck = seeds.rng(seed, name, "deck of stacks")
            yield from _dealt(tasks, selection.arms, deck, try_)
        elif selection.rotate:
            yield from _rotate(tasks, selection.arms, try_)
        else:
            order = list(tasks)
            seeds.rng(seed, name, "order of tasks").shuffle(order)
            for arm in selection.arms:
                yield from _fill(tasks, arm, try_) if not arm.tasks else _limited(order, arm, try_)


def _tasks(selection: ResolvedSelection, world: str, seed: int) -> Iterator[Cell]:
    source = find_world(world)
    kinds = [k for k in source.kinds if not selection.kinds or k in selection.kinds]
    most = max((source.counts[kind] for kind in kinds), default=0) if source.counts else None
    wanted = selection.tasks if kinds else 0
    for number in count() if wanted else ():
        index, kind = divmod(number, len(kinds))
        if not wanted or (most is not None and index >= most):
            return
        if most is None or index < source.counts[kinds[kind]]:
            wanted -= 1
            drawn = Cell(world, kinds[kind], index, seed, selection.pool, selection.size)
            yield msgspec.structs.replace(drawn, under=selection.under)


def _fill(tasks: Iterable[Cell], arm: Arm, try_: _Try) -> Iterator[Planned]:
    for task in tasks:
        yield try_(task, arm.shifts)


def _limited(order: list[Cell], arm: Arm, try_: _Try) -> Iterator[Planned]:
    """Plans the number of tasks of an arm; one that is not applicable is replaced.

    Where the tasks run out, more are drawn of the kinds to which the arm applies, each with its
    clean scene; they join the order, so that the next arm may meet them too. A world whose tasks
    are given has no more.
    """
    kinds: dict[str, None] = {}
    number_planned = 0
    for number in range(arm.tasks * MAX_TRIES):
        if number_planned == arm.tasks:
            return
        if number >= len(order):
            if not kinds or find_world(order[0].world).counts:
                return
            task = try_(_another(order, list(kinds)[number % len(kinds)]), ())
            yield task
            if task.not_applicable:
                return
            order.append(task.cell)
        row = try_(order[number], arm.shifts)
        yield row
        if not row.not_applicable:
            number_planned += 1
            kinds[row.cell.kind] = None


def _another(order: list[Cell], kind: str) -> Cell:
    """The next task of a kind."""
    of_kind = [task for task in order if task.kind == kind]
    last = max(of_kind, key=lambda task: task.index)
    return msgspec.structs.replace(last, index=last.index + 1)


def _rotate(tasks: list[Cell], arms: tuple[Arm, ...], try_: _Try) -> Iterator[Planned]:
    """One arm of each tier for each task, in turn, over its shifts and then its severities."""
    for tier in TIERS:
        stacks = [arm.shifts for arm in arms if find_shift(arm.shifts[0].shift).tier == tier]
        stacks.sort(key=lambda stack: stack[0].severity)
        for number, task in enumerate(tasks):
            for turn in range(len(stacks)):
                row = try_(task, stacks[(number + turn) % len(stacks)])
                yield row
                if not row.not_applicable:
                    break


def _dealt(tasks: list[Cell], arms: tuple[Arm, ...], rng: Random, try_: _Try) -> Iterator[Planned]:
    """One arm for each task, from a shuffled deck that holds each as often as its number says.

    An arm that is not applicable to a task goes to the next task that has none, so that arms which
    seldom apply are as frequent as they should be.
    """
    deck = [arm.shifts for arm in arms for _ in range(max(1, arm.tasks))]
    rng.shuffle(deck)
    left, vain = list(tasks), 0
    for stack in cycle(deck):
        if not left or vain == len(deck):
            return
        vain += 1
        for task in left[:MAX_TRIES]:
            row = try_(task, stack)
            yield row
            if not row.not_applicable:
                left.remove(task)
                vain = 0
                break


def _try(task: Cell, stack: Stack) -> Planned:
    cell = msgspec.structs.replace(task, shifts=stack, task="")
    try:
        scene = build(cell)
        broken = _broken(scene)
    except NotApplicable as reason:
        return Planned(cell, str(reason) or "it cannot be applied truthfully here")
    except WorldFault as fault:  # without a shift it is the world that is broken, for all tasks
        if not stack:
            raise
        broken = str(fault)
    except UsageError as reason:
        if stack:
            raise
        return Planned(cell, str(reason))
    except ShiftFault as fault:
        broken = str(fault)
    except Exception as fault:
        broken = described(fault)
    if broken:
        return Planned(cell, broken, broken=True)
    if is_theirs(scene) and changes_nothing(scene):
        return Planned(cell, "it changes nothing here: let it raise NotApplicable with the reason")
    return Planned(msgspec.structs.replace(cell, task=scene.task.id))


def _broken(scene: Scene) -> str:
    """Why the oracle fails in a scene because of a shift; "" if it does not.

    A shift may fail only when its tools are called.
    """
    try:
        scene.rehearsal  # noqa: B018
    except (ShiftFault, UsageError):
        raise
    except Exception as fault:
        if not scene.shifts:
            raise
        place = place_of(fault) or defined_at(find_shift(scene.shifts[-1].shift).rule)
        return misread(scene) or placed(described(fault), place)
    if wrong := misnamed(scene) if is_theirs(scene) else "":
        return placed(wrong, defined_at(find_shift(scene.shifts[-1].shift).rule))
    if not scene.shifts or not is_unproved(scene):
        return ""
    why = misread(scene) or "the right answer cannot be reached through what it shows"
    return f"the oracle fails: {why}"
