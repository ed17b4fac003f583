"""Which scenes a training set is drawn from: a mix of clean and shifted ones, as data."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from toolshift import seed as seeds
from toolshift.cell import Stack
from toolshift.errors import UsageError
from toolshift.scene import Scene, make_scene
from toolshift.shift import SEVERITIES, TIERS, NotApplicable, compose, unknown
from toolshift.shift import shifts as registered
from toolshift.suite import read_arms
from toolshift.worlds import find_world

FAMILIES: dict[str, tuple[str, ...]] = {
    "EFP": ("transient_error", "permanent_error", "redirect"),
    "SBP": (
        "identity_erasure",
        "semantic_rename",
        "semantic_trap",
        "tool_name_noise",
        "parameter_rename",
    ),
    "SRP": ("description_paraphrase", "query_paraphrase", "schema_noise"),
    "formats": ("format_drift", "missing_values", "truncation", "verification_change"),
    "midway": ("tool_removed_midway", "tool_added", "tool_migrated"),
    "graph": ("merged_tools", "split_tools", "reversed_order", "new_precondition"),
    "limits": (
        "fatal_error",
        "fatal_error_lookalike",
        "tool_gone",
        "tool_gone_lookalike",
        "no_such_entity",
        "no_such_entity_lookalike",
        "contradictory_request",
        "contradictory_request_lookalike",
    ),
    "diverse": ("placebo", "tool_subset", "placebo+tool_subset", "distractor_tools+placebo"),
}
"""Perturbations by family. EFP (error feedback), SBP (symbols) and SRP (semantics of descriptions)
are the three of the paper; `limits` pairs each unsolvable scene with a solvable one like it;
`diverse` leaves names, results and solvability alone."""

PAFT = ("EFP", "SBP", "SRP", "limits")
MOST_DRAWS = 20


class Mix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which scenes to draw.

    Attributes:
        worlds: their names.
        kinds: only these task kinds; () for all.
        alpha: the share of scenes that are shifted, from 0 to 1.
        shifts: what shifts them: families, tiers, shifts `NAME[:SEVERITY]`, or several joined by
            `+`. Each entry is drawn equally often, and one that is named twice twice as often.
        severities: for shifts that name none; each equally often.
        seed: of the worlds and of all choices.
        size: entities in each world.
        pool: "train"; "dev" for what is looked at during training.
        share: so many scenes in a row are of one kind and meet one draw of their shift, and so are
            shown the same tools: a trainer can then read the tool list once for all of them.
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


def check(mix: Mix) -> None:
    """Checks a mix before anything is made from it.

    Raises:
        UsageError: for a share out of range, and for anything unknown.
    """
    if not 0 <= mix.alpha <= 1:
        raise UsageError(f"alpha is a share of the trajectories, from 0 to 1, not {mix.alpha:g}")
    if mix.share < 1:
        raise UsageError(f"share is a number of scenes, at least 1, not {mix.share}")
    if not mix.worlds:
        raise UsageError("name at least one world")
    if mix.pool == "test":
        raise UsageError("the test pool is for planned studies; train on train, look at dev")
    known = {kind for world in mix.worlds for kind in find_world(world).kinds}
    for kind in mix.kinds:
        if kind not in known:
            raise UsageError(unknown("task kind", kind, known))
    if mix.alpha > 0 and not mix.shifts:
        raise UsageError("alpha is above 0, but no shift is named")
    stacks_of(mix)


def draw(mix: Mix, number: int) -> Scene:
    """The scene of one number: the same whatever else is drawn.

    Kinds take turns in shuffled rounds; shifted scenes are spread evenly at the share alpha.
    """
    block, part = divmod(number, mix.share)
    kinds = kinds_of(mix)
    turn, place = divmod(block, len(kinds))
    world, kind = seeds.rng(mix.seed, "mix", turn).sample(kinds, len(kinds))[place]
    index = turn * mix.share + part
    scene = make_scene(find_world(world), kind, index, mix.seed, mix.pool, mix.size)
    shifted = int((block + 1) * mix.alpha + 1e-9) > int(block * mix.alpha + 1e-9)
    return _shifted(scene, mix, block) if shifted else scene


def draws(mix: Mix, count: int, begin: int = 0) -> Iterator[Scene]:
    """The scenes of `count` numbers, from `begin` up."""
    check(mix)
    return (draw(mix, number) for number in range(begin, begin + count))


def kinds_of(mix: Mix) -> list[tuple[str, str]]:
    """The pairs of world and task kind that a mix is drawn from."""
    pairs = [(world, kind) for world in mix.worlds for kind in find_world(world).kinds]
    return [pair for pair in pairs if not mix.kinds or pair[1] in mix.kinds]


def stacks_of(mix: Mix) -> tuple[tuple[Stack, ...], ...]:
    """For each entry of `mix.shifts`, the stacks of shifts that it stands for.

    Raises:
        UsageError: for an unknown name or severity.
    """
    return tuple(_stacks(entry, mix.severities) for entry in mix.shifts)


@lru_cache(maxsize=256)
def _stacks(entry: str, severities: tuple[int, ...]) -> tuple[Stack, ...]:
    name, colon, severity = entry.partition(":")
    texts = [text + colon + severity for text in FAMILIES[name]] if name in FAMILIES else [entry]
    known = {*FAMILIES, *TIERS, "all", *registered()}
    for part in () if name in FAMILIES else entry.partition("*")[0].split("+"):
        if part.partition(":")[0] not in known and ".json" not in part:
            raise UsageError(unknown("shift or family", part.partition(":")[0], known))
    return tuple(arm.shifts for text in texts for arm in read_arms(text, severities))


def _shifted(scene: Scene, mix: Mix, block: int) -> Scene:
    """The scene under a stack drawn from the mix; clean where none of twenty can be applied."""
    rng = seeds.rng(mix.seed, "shift", block)
    draw = f"{mix.seed}/{mix.pool}/{block}"
    families = stacks_of(mix)
    for _ in range(MOST_DRAWS):
        try:
            return compose(scene, rng.choice(rng.choice(families)), draw)
        except NotApplicable:
            continue
    return scene
