"""Suites: named selections of worlds, tasks and shifts, and how to request them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import SupportsIndex, TypeVar

import msgspec

from toolshift.core.errors import IN_THE_LAB, UsageError
from toolshift.core.names import unknown
from toolshift.core.registry import Registry, no_such
from toolshift.core.scene import Stack
from toolshift.core.shift import split_version
from toolshift.core.tables import table_beside
from toolshift.core.world import POOLS, World
from toolshift.runs.cell import Cell, write_stack
from toolshift.shifts.registry import find_shift
from toolshift.shifts.stacks import Arm, distinct, read_arms, read_stack, shift_names
from toolshift.worlds.names import split_task
from toolshift.worlds.own.world import OwnWorld
from toolshift.worlds.registry import as_world, find_world, register, stored_name

MAX_COUNT = 10**7
"""The most tasks, trials or seeds of one run, since its plan is held in memory."""


class Selection(msgspec.Struct, frozen=True):
    """What is to be run: a suite, and the changes to it. What is left out is the suite's.

    `evaluate`, the command line, Inspect's tasks and the pytest plugin all take these fields.

    Attributes:
        suite: the name of a suite; where none is named, `standard` for worlds of the user's own of
            which no shifts are named, and `quick` for all else.
        worlds: worlds instead of the suite's.
        kinds: only these task kinds; `WORLD/KIND` names the world, too.
        shifts: shifts instead of the suite's; see `read_arms`.
        without: shifts, or whole tiers, to hold out.
        severities: 1 to 3, for shifts that name none.
        tasks: tasks of each world and seed; the suite's where None.
        trials: how often each scene is run.
        seed: the first seed.
        seeds: how many seeds, counted up from `seed`.
        pool: the pool of entities and wordings of the shifts: train, dev or test.
        size: entities in each world.
        placebo: whether a placebo arm is run, the noise floor of every contrast.
        max_repeats: an episode ends where the same call has had the same result this often; 0 for
            no such limit.
        under: a stack of shifts, `a:2+b`, that every scene stands under, the clean one too.
    """

    suite: str = ""
    worlds: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    shifts: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    severities: tuple[int, ...] = ()
    tasks: int | None = None
    trials: int = 1
    seed: int = 0
    seeds: int = 1
    pool: str = "dev"
    size: int = 200
    placebo: bool = True
    max_repeats: int = 0
    under: str = ""

    @classmethod
    def of(cls, **given: object) -> Selection:
        """A selection from arguments as a caller writes them: one name stands for a list of one.

        Args:
            given: the fields of a selection, by name.

        Returns:
            The selection, its values in tuples.

        Raises:
            UsageError: for an argument that is not known, and for one of the wrong type.
        """
        for name in given:
            if name not in cls.__struct_fields__:
                raise UsageError(unknown("argument", name, cls.__struct_fields__))
        return as_struct({name: _plain(name, one) for name, one in given.items()}, cls)


Arguments = TypeVar("Arguments", bound=msgspec.Struct)


def as_struct(given: Mapping[str, object], kind: type[Arguments]) -> Arguments:
    """Arguments of a caller as a struct."""
    try:
        return msgspec.convert(given, kind)
    except UnicodeEncodeError:
        raise UsageError(
            "an argument contains half of a character (a lone surrogate), which is not a text"
        ) from None
    except msgspec.ValidationError as fault:
        why, _, where = str(fault).partition(" - at `$.")
        raise UsageError(f"{where.rstrip('`') or 'arguments'}: {why}") from None


def whole(value: object) -> object:
    """A whole number of another library, such as numpy's, as an int; anything else as it is."""
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        return index(value)
    return value


def _plain(name: str, value: object) -> object:
    """A value as msgspec reads it; a single name or number becomes a list of one."""
    if name == "worlds":
        several = isinstance(value, Iterable) and not isinstance(value, str)
        return [_world(item) for item in (value if several else [value])]  # type: ignore[attr-defined]
    if name not in ("worlds", "kinds", "shifts", "without", "severities"):
        return whole(value)
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [whole(item) for item in value]
    return [whole(value)]


def _world(value: object) -> object:
    """The name of a world that is given as an object or a class, which is known from now on."""
    if isinstance(value, World) or (isinstance(value, type) and issubclass(value, World)):
        return register(as_world(value, "the world that is given"))
    return value


class ResolvedSelection(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a selection stands for: enough to plan the same cells again.

    Attributes:
        tasks: tasks of each world and seed, spread over its kinds.
        rotate: every task meets one arm of each tier in turn, instead of all the arms; where arms
            have numbers, one arm, dealt as often as its number says.
        max_repeats: the same call may have the same result this often; 0 for no such limit. Left
            out of the plan's hash where it is 0, as in plans from before it.
        under: the shifts that every scene stands under, the clean one too.
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
    max_repeats: int = 0
    under: Stack = ()


class Suite(msgspec.Struct, frozen=True):
    """A selection with a name. `shifts` are as on the command line (`read_arms`).

    `name` is `NAME@VERSION`; a version names its shifts one by one, so that none comes to it later.
    `rotate` is that of `ResolvedSelection`.
    """

    name: str
    summary: str
    worlds: tuple[str, ...]
    tasks: int
    shifts: tuple[str, ...]
    severities: tuple[int, ...] = (1, 2, 3)
    rotate: bool = False


_QUICK = (
    "identity_erasure:2",
    "semantic_trap:2",
    "format_drift:3",
    "redirect:2",
    "merged_tools:2",
    "reversed_order:2*12",
    "unseen_domain:2",
    "fatal_error:2*10",
    "fatal_error_lookalike:2*10",
    "no_such_entity:2*10",
    "no_such_entity_lookalike:2*10",
)

_REALISTIC = tuple(
    f"{stack}*{number}"
    for stack, number in table_beside(__file__, "realistic.toml")["stacks"].items()
)

_NAMES_3 = """
tool_name_noise semantic_rename identity_erasure semantic_trap parameter_rename schema_noise
description_paraphrase description_removal distractor_tools query_paraphrase query_typos
query_ambiguity query_underspecification query_redundancy format_drift csv_results
missing_values truncation verification_change transient_error permanent_error redirect
redirect_header tool_removed_midway tool_added tool_migrated type_change enum_change
default_change required_parameter tools_by_action tools_behind_search stale_tool_list
unit_change merged_tools split_tools reversed_order new_precondition conflicting_sources
incomplete_information unseen_domain rule_update intent_change fatal_error fatal_error_lookalike
tool_gone tool_gone_lookalike contradictory_request contradictory_request_lookalike
no_such_entity no_such_entity_lookalike
"""
SHIFTS_3 = tuple(_NAMES_3.split())
"""The shifts of the suites `standard@3` and `paper@3`. One that comes later, of ours or of another
package, is in a suite from its next version on: so a version stays the same everywhere."""

OURS: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            "quick@2",
            "20 tasks of poi, 11 shifts over the four tiers: about 220 episodes an agent",
            ("poi",),
            20,
            _QUICK,
            (2,),
        ),
        Suite(
            "standard@3",
            f"16 tasks of each world, {len(SHIFTS_3)} shifts at each of their severities",
            ("poi", "medical", "retail"),
            16,
            SHIFTS_3,
        ),
        Suite(
            "paper@3",
            "220 tasks of poi, each under one shift of each tier: 880 evaluation tasks",
            ("poi",),
            220,
            SHIFTS_3,
            rotate=True,
        ),
        Suite(
            "realistic@1",
            "48 tasks of each world, each under a combination of shifts that a release of a "
            "published server had",
            ("poi", "medical", "retail"),
            48,
            _REALISTIC,
            rotate=True,
        ),
    )
}
SUITES: Registry[Suite] = Registry(
    "suite", {}, "toolshift.suites", OURS, wrong=no_such(Suite, "suite"), modules=True
)
"""Suites by `NAME@VERSION`; of each name the version of today comes first."""


def find_suite(name: str) -> Suite:
    """The suite of this name: `quick` for the version of today, `quick@1` for version 1."""
    suites = SUITES.all()
    today = {split_version(version)[0]: suite for version, suite in reversed(suites.items())}
    known = {**suites, **today}
    if name not in known:
        lab = f" ({IN_THE_LAB})" if split_version(name)[0] in today and "@" in name else ""
        raise UsageError(unknown("suite", name, known) + lab)
    return known[name]


def suite_of(selection: Selection) -> Suite:
    """The suite that a selection names, or that of its worlds where it names none.

    What a release does to tools of one's own (parameters, types, choices, defaults) is in
    `standard` alone.
    """
    if selection.suite:
        return find_suite(selection.suite)
    quick = find_suite("quick")
    own = selection.worlds and all(isinstance(find_world(w), OwnWorld) for w in selection.worlds)
    if not own or selection.shifts:
        return quick
    return msgspec.structs.replace(find_suite("standard"), tasks=quick.tasks)


def select(selection: Selection) -> ResolvedSelection:
    """Resolves a suite and the changes to it."""
    selection = _without_worlds_in_kinds(selection)
    base = suite_of(selection)
    check_entities(selection.pool, selection.size)
    tasks = base.tasks if selection.tasks is None else selection.tasks
    for what, number in (
        ("tasks", tasks),
        ("trials", selection.trials),
        ("seeds", selection.seeds),
    ):
        if number < 1:
            raise UsageError(f"{what} must be at least 1, not {number}")
        if number > MAX_COUNT:
            raise UsageError(f"{what} must be at most {MAX_COUNT:,}, not {number:,}")
    if selection.max_repeats < 0 or selection.max_repeats == 1:
        raise UsageError(
            f"max_repeats must be 0 (no limit) or at least 2, not {selection.max_repeats}"
        )
    worlds = tuple(dict.fromkeys(map(stored_name, selection.worlds or base.worlds)))
    _check_worlds(selection, worlds)
    severities = selection.severities or ((2,) if selection.shifts else base.severities)
    without = {
        find_shift(barred).base for name in selection.without for barred in shift_names(name)
    }
    arms = (arm for text in selection.shifts or base.shifts for arm in read_arms(text, severities))
    changed = (
        selection.worlds,
        selection.kinds,
        selection.shifts,
        without,
        selection.severities,
        selection.tasks,
        selection.under,
    )
    standing = _standing_under(selection.under)
    under = f", under {write_stack(standing)}" if standing else ""
    return ResolvedSelection(
        suite=f"{base.name} (changed){under}" if any(changed) else base.name,
        worlds=worlds,
        kinds=selection.kinds,
        tasks=tasks,
        arms=distinct(
            arm
            for arm in arms
            if without.isdisjoint(find_shift(applied.shift).base for applied in arm.shifts)
        ),
        rotate=base.rotate and not selection.shifts,
        placebo=selection.placebo,
        trials=selection.trials,
        seeds=tuple(range(selection.seed, selection.seed + selection.seeds)),
        pool=selection.pool,
        size=selection.size,
        max_repeats=selection.max_repeats,
        under=standing,
    )


def given_tasks(world: str) -> int:
    """How many tasks a world has; 0 where they are drawn, so that there is no end of them."""
    return sum(find_world(stored_name(world)).counts.values())


def _standing_under(text: str) -> Stack:
    """The shifts that every scene stands under; they leave the right end as it is."""
    stack = read_stack(text)
    for applied in stack:
        if find_shift(applied.shift).preserves != "end_state":
            raise UsageError(
                f"under: {applied.shift} changes the right outcome of a task, so there would be "
                "nothing to compare with; use it as a shift (--shift)"
            )
    return stack


def _without_worlds_in_kinds(selection: Selection) -> Selection:
    """The same selection, with kinds that are named as `WORLD/KIND` as kinds of these worlds."""
    named = [split_task(kind) for kind in selection.kinds if "/" in kind]
    if not named:
        return selection
    for _, kind in named:
        if "/" in kind:
            raise UsageError(
                f"kind {kind}: a run draws the tasks of a kind, so leave the index out: "
                f"{kind.partition('/')[0]}"
            )
    worlds = tuple(dict.fromkeys(stored_name(world) for world, _ in named))
    given = tuple(map(stored_name, selection.worlds))
    if given and not set(worlds) <= set(given):
        raise UsageError(f"kinds of {', '.join(worlds)} are named, but other worlds are selected")
    kinds = tuple(split_task(kind)[1] if "/" in kind else kind for kind in selection.kinds)
    of = {(stored_name(world), kind) for world, kind in named}
    plain = {kind for kind in selection.kinds if "/" not in kind}
    for world in given or worlds:
        for kind in set(kinds) - plain:
            if kind in find_world(world).kinds and (world, kind) not in of:
                raise UsageError(
                    f"{world} has the kind {kind} too, but {world}/{kind} is not named: name it "
                    "as well, or run the worlds one after the other"
                )
    for world, kind in of:
        if kind not in find_world(world).kinds:
            raise UsageError(unknown(f"task kind of {world}", kind, find_world(world).kinds))
    return msgspec.structs.replace(selection, worlds=given or worlds, kinds=kinds)


def _check_worlds(selection: Selection, worlds: tuple[str, ...]) -> None:
    """Checks the kinds and the seeds of a selection against its worlds."""
    drawn = [find_world(name) for name in worlds]
    known = {kind for world in drawn for kind in world.kinds}
    for kind in selection.kinds:
        if kind not in known:
            raise UsageError(unknown("task kind", kind, known))
    for world in drawn if selection.seeds > 1 else ():
        if world.counts:
            raise UsageError(
                f"{world.name} has fixed tasks, so another seed has the same tasks: use --trials "
                "instead of --seeds"
            )


def check_entities(pool: str, size: int) -> None:
    """Checks the requested pool and size of entities."""
    if pool not in POOLS:
        raise UsageError(unknown("pool", pool, POOLS))
    if size < 10:
        raise UsageError(f"size must be at least 10, not {size}")


def read_task(
    task: str,
    shifts: str = "",
    seed: int = 0,
    pool: str = "dev",
    size: int = 200,
    trial: int = 0,
    under: str = "",
) -> Cell:
    """A cell from `world/kind/index` (index 0 where it is left out) and stacks of shifts."""
    world, rest = split_task(task)
    world = stored_name(world)
    kind, _, index = rest.partition("/")
    source = find_world(world)
    kinds, ids = source.kinds, source.task_ids.get(kind, ())
    if not kind or kind not in kinds:
        raise UsageError(unknown("task kind", kind, kinds))
    place = _place(f"{world}/{kind}", index, ids)
    check_entities(pool, size)
    standing = _standing_under(under)
    return Cell(world, kind, place, seed, pool, size, read_stack(shifts), trial, under=standing)


def _place(kind: str, index: str, ids: Sequence[str]) -> int:
    """The place of a task in its kind, by number or by the id that a user gave it."""
    if re.fullmatch(r"[0-9]{1,9}|", index):
        return int(index or 0)
    if index in ids:
        return ids.index(index)
    if ids:
        raise UsageError(unknown(f"task of {kind}", index, ids))
    raise UsageError(
        f"task {kind}: the index after the kind must be a number of at most 9 digits, not "
        f"{index[:40]!r}"
    )
