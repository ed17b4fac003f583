"""Draws the clean scene of a task."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from random import Random
from typing import Any

from toolshift.core import seed as seeds
from toolshift.core.ask import Ask
from toolshift.core.errors import UsageError, WorldFault, defined_at, described, place_of, placed
from toolshift.core.fact import Goal
from toolshift.core.names import unknown
from toolshift.core.scene import GivenTasks, Outcome, Scene, Task
from toolshift.core.tool import JSON
from toolshift.core.world import Request, TaskKind, Truth, World
from toolshift.episode.oracle import rehearse
from toolshift.episode.truth import solve_in_truth

MAX_DRAWS = 200


def make_scene(
    world: World, kind: str, index: int, seed: int = 0, pool: str = "dev", size: int = 200
) -> Scene:
    """Makes the clean scene of one task.

    The phrasing is of the training pool whatever `pool` says, for in a clean scene nothing has
    moved; the entities are of `pool`.

    Args:
        world: of the task.
        kind: of the task.
        index: of the task among those of its kind.
        seed: of the entities.
        pool: of the entities: "train", "dev" or "test".
        size: how many entities there are.

    Returns:
        A scene without shifts, the same for the same arguments.

    Raises:
        UsageError: where the world cannot make a task of this kind at this size.
        WorldFault: where the code of the world fails.
    """
    if isinstance(world, GivenTasks):
        return world.scene(kind, index, seed, pool, size)
    truth = world.truth(seed, size, pool)
    family = world.kinds[kind]
    goal = None
    for draw in range(MAX_DRAWS):
        rng = seeds.rng(seed, world.name, kind, pool, index, draw)
        goal = _drawn(world, family, truth.db, rng)
        if goal is not None:
            break
    if goal is None:
        raise UsageError(
            f"world {world.name} of size {size} has no task of kind {kind} (seed {seed}, index "
            f"{index}): try a larger size"
        )
    phrasing = seeds.derive(seed, world.name, kind, index, "phrasing")
    try:
        asks = tuple(phrase(request, goal, "train", phrasing) for request in family.requests)
        asks, effects = settle(world, truth, asks)
    except WorldFault as fault:
        place = "" if ", line " in str(fault) else defined_at(type(world))
        message = placed(str(fault), place)
        raise WorldFault(f"world {world.name}, task kind {kind}: {message}") from fault
    lineage = f"{world.name}/{kind}/{pool}/{seed}/{size}/{index}"
    content = JSON.encode([lineage, goal, [(a.text, a.expected) for a in asks], effects])
    name = blake2b(content, digest_size=6).hexdigest()
    task = Task(world.name, kind, pool, seed, size, index, lineage, name)
    return Scene(task, world, truth, asks, Outcome(effects), world.system, rehearse)


def _drawn(world: World, family: TaskKind, db: Any, rng: Random) -> Goal | None:
    """One draw of a kind."""
    where = f"world {world.name}, task kind {family.name}: its draw"
    try:
        goal: object = family.draw(db, rng)
    except Exception as fault:
        place = "" if place_of(fault) else defined_at(family.draw)
        raise WorldFault(placed(f"{where} raised {described(fault)}", place)) from fault
    if goal is None:
        return None
    if not isinstance(goal, dict):
        message = f"{where} returned {type(goal).__name__}, not a dict of facts and values"
        raise WorldFault(placed(message, defined_at(family.draw)))
    for slot in goal:
        if slot not in world.facts:
            message = f"{where} returned a value of {slot!r}, which is not in `facts`"
            message = placed(message, defined_at(family.draw))
            raise WorldFault(f"{message}: {unknown('fact', str(slot), world.facts)}")
    return goal


def phrase(request: Request, goal: dict[str, Any], pool: str, choice: int) -> Ask:
    """States a request in one of the phrasings of a pool."""
    bank = request.phrasings[pool]
    template = bank[choice % len(bank)]
    try:
        text = template.format(**goal)
    except (KeyError, IndexError, ValueError, AttributeError) as fault:
        why = unknown("value", str(fault.args[0]), goal) if type(fault) is KeyError else str(fault)
        raise WorldFault(f"the phrasing {template!r} does not fit what is drawn: {why}") from fault
    return Ask(text, goal, request.solve, None)


def settle(
    world: World, truth: Truth, asks: tuple[Ask, ...]
) -> tuple[tuple[Ask, ...], tuple[Any, ...]]:
    """Works out the answers and the effects of requests on the bare truth."""
    answers, effects = solve_in_truth(world, truth, asks)
    settled = tuple(replace(ask, expected=text) for ask, text in zip(asks, answers, strict=True))
    return settled, effects
