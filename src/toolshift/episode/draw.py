"""Draws the clean scene of a task."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from toolshift.core import seed as seeds
from toolshift.core.errors import UsageError
from toolshift.core.scene import GivenTasks, Outcome, Scene, Task
from toolshift.core.tool import JSON
from toolshift.core.user import Ask
from toolshift.core.world import Request, Truth, World
from toolshift.episode.oracle import rehearse
from toolshift.episode.truth import solve_in_truth

if TYPE_CHECKING:
    pass


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
    """
    if isinstance(world, GivenTasks):
        return world.scene(kind, index, seed, pool, size)
    truth = world.truth(seed, size, pool)
    family = world.kinds[kind]
    goal = None
    for draw in range(MAX_DRAWS):
        goal = family.draw(truth.db, seeds.rng(seed, world.name, kind, pool, index, draw))
        if goal is not None:
            break
    if goal is None:
        raise UsageError(
            f"world {world.name} of size {size} has no task of kind {kind} (seed {seed}, index "
            f"{index}): try a larger size"
        )
    phrasing = seeds.derive(seed, world.name, kind, index, "phrasing")
    asks = tuple(phrase(request, goal, "train", phrasing) for request in family.requests)
    asks, effects = settle(world, truth, asks)
    lineage = f"{world.name}/{kind}/{pool}/{seed}/{size}/{index}"
    content = JSON.encode([lineage, goal, [(a.text, a.expected) for a in asks], effects])
    name = blake2b(content, digest_size=6).hexdigest()
    task = Task(world.name, kind, pool, seed, size, index, lineage, name)
    return Scene(task, world, truth, asks, Outcome(effects), world.system, rehearse)


def phrase(request: Request, goal: dict[str, Any], pool: str, choice: int) -> Ask:
    """States a request in one of the phrasings of a pool.

    Args:
        request: with its phrasings.
        goal: the values to state.
        pool: of the phrasings.
        choice: which of them, counted round.

    Returns:
        The user's turn.
    """
    bank = request.phrasings[pool]
    return Ask(bank[choice % len(bank)].format(**goal), goal, request.solve, None)


def settle(
    world: World, truth: Truth, asks: tuple[Ask, ...]
) -> tuple[tuple[Ask, ...], tuple[Any, ...]]:
    """Works out the answers and the effects of requests on the bare truth.

    Args:
        world: of the task.
        truth: without any layer.
        asks: what the user asks for, turn by turn.

    Returns:
        The requests with their right answers, and the writes that solving them makes.
    """
    answers, effects = solve_in_truth(world, truth, asks)
    settled = tuple(replace(ask, expected=text) for ask, text in zip(asks, answers, strict=True))
    return settled, effects
