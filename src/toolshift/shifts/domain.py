"""The domain and its rules: an unseen world, a rule that is updated, a user who thinks again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Any

import msgspec

from toolshift.core import seed as seeds
from toolshift.core.ask import Ask
from toolshift.core.layer import Below, Memory
from toolshift.core.scene import Outcome, Scene, kind_of
from toolshift.core.shift import Change, NotApplicable, Severity, shift
from toolshift.core.tables import table_beside
from toolshift.core.tool import Param, Result, Tool, error
from toolshift.episode.draw import make_scene, phrase, settle
from toolshift.episode.truth import solve_in_truth
from toolshift.shifts.dependency import used
from toolshift.shifts.rewiring import Rewired
from toolshift.worlds.registry import find_world

TEXTS = table_beside(__file__, "domain.toml")

_in_other_domain = lru_cache(maxsize=64)(make_scene)
"""Tasks of one index look at the same scenes of the other domain, at every severity."""


@dataclass(frozen=True, eq=False)
class Policed:
    """Lets a call through that carries the code of the rule in force at this request."""

    tool: Tool
    codes: tuple[str, ...]

    def __call__(self, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        own = {name: value for name, value in arguments.items() if name != "rule_code"}
        if arguments["rule_code"] != self.codes[memory["asks"]]:
            return error("rule_outdated", f"{arguments['rule_code']} is not the rule in force.")
        return below(self.tool.name, own)


@shift(
    tier="internalization",
    dimension="domain",
    level=3,
    preserves="solvability",
    order=0,
    imitates="The assistant is rolled out to another business unit.",
)
def unseen_domain(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Ask for a task of another domain; severity is the length of its chain."""
    if scene.task.world == "medical" or scene.shifts:
        raise NotApplicable("this is the unseen domain" if not scene.shifts else "must come first")
    world, task = find_world("medical"), scene.task
    for kind in rng.sample(sorted(world.kinds), len(world.kinds)):
        other = _in_other_domain(world, kind, task.index, task.seed, task.pool, task.size)
        if min(3, max(1, len(other.calls) - 1)) == severity:
            moved = msgspec.structs.replace(other.task, lineage=task.lineage)
            return Change(
                world=world,
                truth=other.truth,
                asks=other.asks,
                outcome=other.outcome,
                system=other.system,
                task=moved,
            )
    raise NotApplicable("the other domain has no task of this length")


@shift(
    tier="internalization",
    dimension="domain",
    level=3,
    preserves="solvability",
    imitates="Policy update 14:00: calls carry the new rule code from now on.",
)
def rule_update(scene: Scene, rng: Random, severity: Severity) -> Change:
    """A rule of the domain is updated during a session of several tasks."""
    if len(scene.asks) > 1:
        raise NotApplicable("the session has several requests already")
    tool = used(scene)[-1]
    earlier = other_goals(scene, rng)
    asks = [*(_ask(scene, next(earlier)) for _ in range(severity)), scene.asks[0]]
    codes = [seeds.code("rule", scene.task.id, number) for number in range(len(asks))]
    state, update = TEXTS["rule"][scene.task.pool]
    schema = {"type": "string", "description": "Code of the rule in force."}
    policed = tool.with_(
        params=(*tool.params, Param("rule_code", "rule_code", schema)),
        description=f"{tool.description}. Takes the code of the rule in force",
    )
    layer = Rewired(frozenset((tool.name,)), ((policed, Policed(tool, tuple(codes))),))
    settled, effects = settle(scene.world, scene.truth, tuple(asks))
    ruled = tuple(
        replace(
            ask,
            goal={**ask.goal, "rule_code": code},
            notice=update.format(code=code) if number else "",
        )
        for number, (ask, code) in enumerate(zip(settled, codes, strict=True))
    )
    system = f"{scene.system} {state.format(code=codes[0])}"
    return Change(layer=layer, asks=ruled, outcome=Outcome(effects), system=system)


@shift(
    tier="reasoning",
    dimension="query",
    level=3,
    preserves="solvability",
    imitates="Customers edit their request after the first reply in 1 of 5 chats.",
)
def intent_change(scene: Scene, rng: Random, severity: Severity) -> Change:
    """The user changes their mind after the first reply; severity is how often."""
    others = other_goals(scene, rng)
    lead = TEXTS["changed_mind"][scene.task.pool]
    asks = [*scene.asks]
    for _ in range(severity):
        following = _ask(scene, next(others))
        asks.append(replace(following, text=lead + following.text))
    settled, _ = settle(scene.world, scene.truth, (*scene.asks[:-1], asks[-1]))
    wanted = effects(scene, (*scene.asks[:-1], asks[-1]))
    taken_back = tuple(e for a in asks[len(scene.asks) - 1 : -1] for e in effects(scene, (a,)))
    moot = [replace(a, expected=None) for a in asks[len(scene.asks) - 1 : -1]]
    outcome = Outcome(wanted, forgiven=taken_back)
    return Change(asks=(*scene.asks[:-1], *moot, settled[-1]), outcome=outcome)


def effects(scene: Scene, asks: tuple[Ask, ...]) -> tuple[Any, ...]:
    """What the user wants written by these requests."""
    return solve_in_truth(scene.world, scene.truth, asks)[1]


def other_goals(scene: Scene, rng: Random) -> Iterator[dict[str, Any]]:
    """Further goals of the scene's kind, each about another entity than those before."""
    entity = next(iter(scene.asks[-1].goal))
    seen = {scene.asks[-1].goal[entity]}
    for _ in range(400):
        goal = kind_of(scene).draw(scene.truth.db, rng)
        if goal is not None and goal[entity] not in seen:
            seen.add(goal[entity])
            yield goal
    raise NotApplicable("the world is too small for a second task of this kind")


def _ask(scene: Scene, goal: dict[str, Any]) -> Ask:
    choice = seeds.derive(scene.task.id, sorted(map(str, goal.values())))
    return phrase(kind_of(scene).requests[-1], goal, "train", choice)
