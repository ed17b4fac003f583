"""Which scenes a training set is drawn from: a mix of clean and shifted ones, as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from toolshift.core import seed as seeds
from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.core.scene import Scene, Stack
from toolshift.core.shift import SEVERITIES, NotApplicable, without_versions
from toolshift.episode.draw import make_scene
from toolshift.runs.suite import check_entities
from toolshift.shifts.registry import compose, find_shift
from toolshift.shifts.stacks import stacks_of
from toolshift.shifts.training_families import PAFT
from toolshift.worlds.registry import find_world

MAX_DRAWS = 20
MAX_LOOKED_AT = 64
"""Scenes that are drawn beforehand, to see whether shifts can be applied to them."""


class Mix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which scenes to draw.

    Attributes:
        worlds: their names.
        kinds: only these task kinds; () for all.
        alpha: the share of scenes that are shifted, from 0 to 1.
        shifts: what shifts them: families, tiers, shifts `NAME[:SEVERITY]`, or several joined by
            `+`. Each entry is drawn equally often, and one that is named twice twice as often.
        severities: for shifts that name none; all parts of a composition have the same.
        seed: of the worlds and of all choices.
        size: entities in each world.
        pool: "train"; "dev" for what is looked at during training.
        share: so many scenes in a row are of one kind, and where a shift changes the tools that are
            shown, they meet one draw of it: a trainer can then read the tool list once for all.
        slips: the share of trajectories in which the expert first errs
            (`toolshift.train.injected_errors`); no matter to GRPO.
    """

    worlds: tuple[str, ...] = ("poi",)
    kinds: tuple[str, ...] = ()
    alpha: float = 0.0
    shifts: tuple[str, ...] = PAFT
    severities: tuple[int, ...] = SEVERITIES
    seed: int = 0
    size: int = 2000
    pool: str = "train"
    share: int = 1
    slips: float = 0.0


DEV_SIZE = 200
"""Entities of a world in an evaluation: as many as `toolshift run` makes."""


def dev_arms(mix: Mix, count: int, limits: bool = False) -> dict[str, list[Scene]]:
    """Scenes of the dev pool that training on a mix is looked at with, `count` of each arm."""

    def scenes(alpha: float, **changes: Any) -> list[Scene]:
        there = {"pool": "dev", "size": DEV_SIZE, "share": 1, "alpha": alpha, **changes}
        found = list(draws(msgspec.structs.replace(mix, **there), count))
        return [scene for scene in found if scene.shifts or not alpha]

    arms = {
        "clean": scenes(0.0),
        "shifted": scenes(1.0) if mix.alpha else [],
        "limits": scenes(1.0, shifts=("limits",)) if limits else [],
    }
    return {name: made for name, made in arms.items() if made}


def check(mix: Mix) -> None:
    """Checks a mix before anything is made from it."""
    for name, share in (("alpha", mix.alpha), ("slips", mix.slips)):
        if not 0 <= share <= 1:
            raise UsageError(f"{name} is a share of the trajectories from 0 to 1, not {share:g}")
    check_entities(mix.pool, mix.size)
    if mix.seed < 0:
        raise UsageError(f"seed must be 0 or more, not {mix.seed}")
    if mix.share < 1:
        raise UsageError(f"share must be a number of scenes, at least 1, not {mix.share}")
    if not mix.worlds:
        raise UsageError("name at least one world")
    if mix.pool == "test":
        raise UsageError(
            "the test pool is for planned studies; train on the pool train, evaluate on dev"
        )
    _check_kinds(mix)
    _check_shifts(mix)


def _check_shifts(mix: Mix) -> None:
    """Checks what is to shift the shifted scenes."""
    if mix.alpha > 0 and not mix.shifts:
        raise UsageError("alpha is above 0, but no shift is named")
    if not mix.severities:
        raise UsageError("name at least one severity")
    for entry in mix.shifts:
        for severity in mix.severities:
            stacks_of(entry, severity)


def _check_kinds(mix: Mix) -> None:
    """Checks that there is each kind that is asked for, and one of them in each world."""
    known = {kind for world in mix.worlds for kind in find_world(world).kinds}
    for kind in mix.kinds:
        if kind not in known:
            raise UsageError(unknown("task kind", kind, known))
    drawn = {world for world, _ in kinds_of(mix)}
    for world in mix.worlds:
        if world not in drawn:
            raise UsageError(
                f"the world {world} has none of the kinds {', '.join(mix.kinds)}; it has: "
                f"{', '.join(find_world(world).kinds)}"
            )


def draw(mix: Mix, number: int) -> Scene:
    """The scene of one number: the same whatever else is drawn.

    Kinds take turns in shuffled rounds; shifted scenes are spread evenly at the share alpha, and
    the entries of `shifts` take turns among them.
    """
    block, part = divmod(number, mix.share)
    kinds = kinds_of(mix)
    turn, place = divmod(block, len(kinds))
    world, kind = seeds.rng(mix.seed, "mix", turn).sample(kinds, len(kinds))[place]
    index = turn * mix.share + part
    scene = _clean(mix, world, kind, index)
    return _shifted(scene, mix, _rank(mix, block), part) if due(mix, number) else scene


def due(mix: Mix, number: int) -> bool:
    """Whether the scene of a number is to be shifted, if a shift can be applied to it."""
    block = number // mix.share
    return _rank(mix, block + 1) > _rank(mix, block)


def _rank(mix: Mix, block: int) -> int:
    """How many blocks before this one are to be shifted."""
    return int(block * mix.alpha + 1e-9)


def _clean(mix: Mix, world: str, kind: str, index: int) -> Scene:
    """A clean scene. Where tasks are given and not drawn, each is met again, under a new seed."""
    world_found, seed = find_world(world), mix.seed
    if world_found.counts:
        lap, index = divmod(index, world_found.counts[kind])
        seed = seeds.derive(seed, "lap", lap) if lap else seed
    return make_scene(world_found, kind, index, seed, mix.pool, mix.size)


def draws(mix: Mix, count: int, begin: int = 0) -> Iterator[Scene]:
    """The scenes of `count` numbers, from `begin` up."""
    check(mix)
    return (draw(mix, number) for number in range(begin, begin + count))


def check_share(shifted: int, mix: Mix, count: int, what: str = "trajectories") -> str:
    """Makes sure that shifts reached what is trained on."""
    wanted = sum(due(mix, number) for number in range(count))
    if mix.alpha and not wanted:
        raise UsageError(
            f"alpha {mix.alpha:g} of {count} "
            f"{what}{f' that come {mix.share} at a time' if mix.share > 1 else ''} is less than "
            "one: raise --alpha or --count"
        )
    if wanted and not shifted:
        raise UsageError(
            f"{', '.join(mix.shifts)} cannot be applied to any of the {count} {what}, so all would "
            "be clean: choose another world, other kinds or other shifts"
        )
    if shifted < 0.9 * wanted:
        return (
            f"Only {shifted} of the {wanted} {what} that alpha asks for are shifted: the "
            "shifts cannot be applied to the others, which are clean."
        )
    return ""


def check_scenes(mix: Mix, count: int) -> str:
    """Draws the first scenes of a run, to see whether its shifts can be applied to them."""
    played = min(MAX_LOOKED_AT, count)
    if mix.alpha * played < 1:  # of so few, none need be among the first
        return ""
    return check_share(
        sum(bool(scene.shifts) for scene in draws(mix, played)), mix, played, "scenes"
    )


def kinds_of(mix: Mix) -> list[tuple[str, str]]:
    """The pairs of world and task kind that a mix is drawn from."""
    pairs = [(world, kind) for world in mix.worlds for kind in find_world(world).kinds]
    return [pair for pair in pairs if not mix.kinds or pair[1] in mix.kinds]


def _shifted(scene: Scene, mix: Mix, rank: int, part: int) -> Scene:
    """The scene under the next draw of the entry whose turn it is; clean where none applies.

    `rank` counts the shifted blocks. What is drawn depends on the entry and on how often it was
    drawn before, not on the entries beside it: so mixes that share a family share its draws.
    """
    turn, place = divmod(rank, len(mix.shifts))
    order = seeds.rng(mix.seed, "entries", turn).sample(range(len(mix.shifts)), len(mix.shifts))
    entry = mix.shifts[order[place]]
    earlier = sum(mix.shifts[index] == entry for index in order[:place])
    shared = turn * mix.shifts.count(entry) + earlier
    alone = shared * mix.share + part
    for attempt in range(MAX_DRAWS):
        stack, number = _drawn(mix, entry, shared, attempt), shared
        if not _changes_what_is_shown(stack):
            stack, number = _drawn(mix, entry, alone, attempt), alone
        try:
            draw = f"{mix.seed}/{mix.pool}/{without_versions(entry)}/{number}"
            return compose(scene, stack, draw)
        except NotApplicable:
            continue
    return scene


def _drawn(mix: Mix, entry: str, number: int, attempt: int) -> Stack:
    """The stack of one draw of an entry: its stacks take turns in shuffled rounds."""
    name = without_versions(entry)
    severity = seeds.rng(mix.seed, "severity", name, number).choice(mix.severities)
    stacks = stacks_of(entry, severity)
    turn, place = divmod(number, len(stacks))
    order = seeds.rng(mix.seed, "stacks", name, turn).sample(range(len(stacks)), len(stacks))
    return stacks[order[(place + attempt) % len(stacks)]]


def _changes_what_is_shown(stack: Stack) -> bool:
    """Whether scenes under one draw of a stack are shown the same new list of tools."""
    kinds = [find_shift(applied.shift) for applied in stack]
    return all(found.level == 1 and found.dimension in ("action", "none") for found in kinds)
