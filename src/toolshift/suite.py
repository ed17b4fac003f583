"""What a study runs, as data: cells, the suites that choose them, and the plan that results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import product

import msgspec

from toolshift import seed as seeds
from toolshift.errors import UsageError
from toolshift.scene import Applied, Scene, make_scene
from toolshift.shift import TIERS, NotApplicable, apply, find_shift, shifts, unknown
from toolshift.tool import JSON
from toolshift.world import POOLS
from toolshift.worlds import find_world

Stack = tuple[Applied, ...]
PLACEBO = "placebo"


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
        """A short name, the same in every run that has this cell."""
        return _digest(self.lineage, self.stack, str(self.trial), self.task)


class Arm(msgspec.Struct, frozen=True):
    """A stack of shifts and how many tasks of a world meet it (0: all of them)."""

    shifts: Stack
    tasks: int = 0


class Selection(msgspec.Struct, frozen=True):
    """What was asked for: enough to plan the same cells again.

    Attributes:
        tasks: tasks of each world and seed, spread over its kinds.
        rotate: every task meets one arm of each tier in turn, instead of all the arms.
    """

    suite: str
    worlds: tuple[str, ...]
    kinds: tuple[str, ...]
    tasks: int
    arms: tuple[Arm, ...]
    rotate: bool
    placebo: bool
    trials: int
    seeds: tuple[int, ...]
    pool: str
    size: int


class Suite(msgspec.Struct, frozen=True):
    """A selection with a name. `shifts` are as on the command line (`read_arms`)."""

    name: str
    summary: str
    worlds: tuple[str, ...]
    tasks: int
    shifts: tuple[str, ...]
    severities: tuple[int, ...] = (1, 2, 3)
    rotate: bool = False


class Planned(msgspec.Struct, frozen=True, omit_defaults=True):
    """A cell of a plan; `not_applicable` says why it cannot be run."""

    cell: Cell
    not_applicable: str = ""


class Plan(msgspec.Struct, frozen=True):
    """The cells to run, and those that turned out not to be applicable."""

    selection: Selection
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


SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            "quick",
            "20 tasks of poi, ten shifts over the four tiers: about 220 episodes",
            ("poi",),
            20,
            (
                "identity_erasure:2",
                "semantic_trap:2",
                "format_drift:3",
                "redirection:2",
                "merged_tools:2",
                "reversed_order:2",
                "unseen_domain:2",
                "fatal_error:2*10",
                "fatal_error_lookalike:2*10",
                "no_such_entity:2*10",
            ),
            (2,),
        ),
        Suite(
            "standard",
            "16 tasks of each world, every shift at three severities",
            ("poi", "medical", "retail"),
            16,
            ("all",),
        ),
        Suite(
            "paper",
            "220 tasks of poi, each under one shift of each tier: 880 evaluation tasks",
            ("poi",),
            220,
            ("all",),
            rotate=True,
        ),
    )
}


def find_suite(name: str) -> Suite:
    """The suite of this name.

    Raises:
        UsageError: where there is none; offers the nearest names.
    """
    if name not in SUITES:
        raise UsageError(unknown("suite", name, SUITES))
    return SUITES[name]


def select(
    suite: str = "quick",
    *,
    worlds: tuple[str, ...] = (),
    kinds: tuple[str, ...] = (),
    shifts: tuple[str, ...] = (),
    severities: tuple[int, ...] = (),
    tasks: int = 0,
    trials: int = 1,
    seed: int = 0,
    seeds: int = 1,
    pool: str = "dev",
    size: int = 200,
    placebo: bool = True,
) -> Selection:
    """Turns a suite and the changes to it into a selection; what is left out is the suite's.

    Args:
        suite: the name of a suite.
        worlds: worlds instead of the suite's.
        kinds: only these task kinds.
        shifts: shifts instead of the suite's; see `read_arms`.
        severities: for shifts that name none.
        tasks: tasks of each world and seed.
        trials: how often each cell is run.
        seed: the first seed.
        seeds: how many seeds, counted up from `seed`.
        pool: the pool of entities and wordings of the shifts: train, dev or test.
        size: entities in each world.
        placebo: whether a placebo arm is run.

    Raises:
        UsageError: for anything unknown or out of range.
    """
    base = find_suite(suite)
    if pool not in POOLS:
        raise UsageError(unknown("pool", pool, POOLS))
    for what, number, least in (("tasks", tasks or 1, 1), ("trials", trials, 1),
                                ("seeds", seeds, 1), ("size", size, 10)):
        if number < least:
            raise UsageError(f"{what} must be at least {least}, not {number}")
    if tasks < 0:
        raise UsageError(f"tasks must be at least 1, not {tasks}")
    named = worlds or base.worlds
    known = {kind for name in named for kind in find_world(name).kinds}
    for kind in kinds:
        if kind not in known:
            raise UsageError(unknown("task kind", kind, known))
    given = severities or ((2,) if shifts else base.severities)
    return Selection(
        suite=suite,
        worlds=named,
        kinds=kinds,
        tasks=tasks or base.tasks,
        arms=tuple(arm for text in shifts or base.shifts for arm in read_arms(text, given)),
        rotate=base.rotate and not shifts,
        placebo=placebo,
        trials=trials,
        seeds=tuple(range(seed, seed + seeds)),
        pool=pool,
        size=size,
    )


def read_arms(text: str, severities: tuple[int, ...] = (2,)) -> list[Arm]:
    """Reads `NAME[:SEVERITY][+NAME[:SEVERITY]...][*TASKS]`.

    NAME may be a tier, which stands for its shifts, `all`, or `clean` for no shift at all.

    Raises:
        UsageError: for an unknown shift, or a severity or a number that is none.
    """
    body, _, limit = text.partition("*")
    if limit and not limit.isdigit():
        raise UsageError(f"shift {text!r}: what follows * is a number of tasks")
    if body == "clean":
        return []
    for severity in severities:
        _check_severity(severity, text)
    parts = [part.partition(":") for part in body.split("+")]
    choices = [
        [
            Applied(name, severity)
            for name in _names(raw)
            for severity in ((_severity(number, text),) if colon else severities)
        ]
        for raw, colon, number in parts
    ]
    return [Arm(_deepest_first(stack), int(limit or 0)) for stack in product(*choices)]


def _deepest_first(stack: Stack) -> Stack:
    """The order in which shifts are applied, whatever the order they were named in."""
    return tuple(sorted(stack, key=lambda each: (find_shift(each.shift).order, each.shift)))


def read_stack(text: str) -> Stack:
    """Reads `a:2+b:1` as one stack of shifts; severity 2 where none is given."""
    if not text:
        return ()
    arms = read_arms(text)
    if len(arms) != 1:
        raise UsageError(f"{text!r} stands for {len(arms)} stacks of shifts: name one")
    return arms[0].shifts


def write_stack(stack: Stack) -> str:
    """A stack as text, `a:2+b:1`."""
    return "+".join(f"{applied.shift}:{applied.severity}" for applied in stack)


def _names(raw: str) -> list[str]:
    if raw == "all":
        return [name for name, found in shifts().items() if found.tier != "none"]
    if raw in TIERS:
        return [name for name, found in shifts().items() if found.tier == raw]
    return [find_shift(raw).name]


def _severity(text: str, where: str) -> int:
    if not text.isdigit():
        raise UsageError(f"shift {where!r}: the severity after : is 1, 2 or 3, not {text!r}")
    return _check_severity(int(text), where)


def _check_severity(severity: int, where: str) -> int:
    if severity not in (1, 2, 3):
        raise UsageError(f"severity {severity} of {where}: it goes from 1 to 3")
    return severity


# -- cells and scenes --------------------------------------------------------------------------


@lru_cache(maxsize=2048)
def _clean(world: str, kind: str, index: int, seed: int, pool: str, size: int) -> Scene:
    return make_scene(find_world(world), kind, index, seed, pool, size)


@lru_cache(maxsize=4096)
def _shifted(
    world: str, kind: str, index: int, seed: int, pool: str, size: int, stack: Stack
) -> Scene:
    if not stack:
        return _clean(world, kind, index, seed, pool, size)
    below = _shifted(world, kind, index, seed, pool, size, stack[:-1])
    return apply(below, stack[-1].shift, stack[-1].severity)


def build(cell: Cell) -> Scene:
    """The scene of a cell; scenes are values, so the last few thousand are kept.

    Raises:
        NotApplicable: where a shift cannot be applied truthfully.
        UsageError: where the world makes another task than the one planned.
    """
    scene = _shifted(
        cell.world, cell.kind, cell.index, cell.seed, cell.pool, cell.size, cell.shifts
    )
    if cell.task and scene.task.id != cell.task:
        raise UsageError(
            f"{cell.lineage} is another task now than when it was planned: the world or its "
            "wording has changed. Start a new run."
        )
    return scene


# -- planning ----------------------------------------------------------------------------------


def make_plan(selection: Selection, watch: Callable[[int], None] = lambda done: None) -> Plan:
    """Plans the cells of a selection, and finds out which are not applicable.

    Raises:
        UsageError: where nothing is left to run, or a shift of a plugin fails.
    """
    rows: list[Planned] = []
    for row in _rows(selection):
        rows.append(row)
        watch(len(rows))
    if not any(not row.not_applicable for row in rows):
        why = rows[0].not_applicable if rows else "no task kind was selected"
        raise UsageError(f"there is nothing to run: {why}")
    used = {applied.shift for row in rows for applied in row.cell.shifts}
    versions = {name: find_shift(name).version for name in sorted(used)}
    return Plan(selection, versions, _with_trials(rows, selection.trials))


def _with_trials(rows: list[Planned], trials: int) -> tuple[Planned, ...]:
    change = msgspec.structs.replace
    return tuple(
        change(row, cell=change(row.cell, trial=trial)) for row in rows for trial in range(trials)
    )


def _rows(selection: Selection) -> Iterator[Planned]:
    placebo = selection.placebo and PLACEBO in shifts()
    for seed, name in product(selection.seeds, selection.worlds):
        rows = [_try(cell, ()) for cell in _tasks(selection, name, seed)]
        yield from rows
        tasks = [row.cell for row in rows if not row.not_applicable]
        if placebo:
            yield from (_try(task, (Applied(PLACEBO, 2),)) for task in tasks)
        if selection.rotate:
            yield from _rotate(tasks, selection.arms)
        else:
            order = list(tasks)
            seeds.rng(seed, name, "order of tasks").shuffle(order)
            for arm in selection.arms:
                yield from _fill(order if arm.tasks else tasks, arm)


def _tasks(selection: Selection, world: str, seed: int) -> Iterator[Cell]:
    kinds = [k for k in find_world(world).kinds if not selection.kinds or k in selection.kinds]
    for number in range(selection.tasks if kinds else 0):
        index, kind = divmod(number, len(kinds))
        yield Cell(world, kinds[kind], index, seed, selection.pool, selection.size)


def _fill(tasks: list[Cell], arm: Arm) -> Iterator[Planned]:
    """As many tasks as the arm wants; one that is not applicable is replaced by another."""
    found = 0
    for task in tasks:
        if arm.tasks and found == arm.tasks:
            return
        row = _try(task, arm.shifts)
        found += not row.not_applicable
        yield row


def _rotate(tasks: list[Cell], arms: tuple[Arm, ...]) -> Iterator[Planned]:
    """One arm of each tier for each task, in turn, over its shifts and then its severities."""
    for tier in TIERS:
        those = [arm.shifts for arm in arms if find_shift(arm.shifts[0].shift).tier == tier]
        those.sort(key=lambda stack: stack[0].severity)
        for number, task in enumerate(tasks):
            for turn in range(len(those)):
                row = _try(task, those[(number + turn) % len(those)])
                yield row
                if not row.not_applicable:
                    break


def _try(task: Cell, stack: Stack) -> Planned:
    cell = msgspec.structs.replace(task, shifts=stack, task="")
    try:
        scene = build(cell)
    except NotApplicable as reason:
        return Planned(cell, str(reason) or "it cannot be applied truthfully here")
    except UsageError as reason:
        if stack:
            raise
        return Planned(cell, str(reason))
    except Exception as fault:
        raise UsageError(
            f"shift {cell.stack or 'none'} failed on {cell.lineage} with "
            f"{type(fault).__name__}: {fault}. `toolshift check` says more."
        ) from fault
    return Planned(msgspec.structs.replace(cell, task=scene.task.id))


def _digest(*parts: str) -> str:
    return blake2b("\x1f".join(parts).encode(), digest_size=5).hexdigest()
