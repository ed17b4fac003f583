"""Why the oracle fails under a shift: what it cannot read in a result, or cannot pass in a call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from toolshift.core.errors import defined_at, placed
from toolshift.core.names import MAX_NAME, is_taken_by_all
from toolshift.core.render import facts
from toolshift.core.scene import Scene
from toolshift.core.solver import Solver
from toolshift.core.tool import Result
from toolshift.episode.budget import Budget
from toolshift.episode.episode import Episode
from toolshift.episode.oracle import OracleAgent
from toolshift.shifts.registry import find_shift


def is_theirs(scene: Scene) -> bool:
    """Whether a plugin's shift is among those that have made a scene; ours are checked."""
    return any(
        not find_shift(applied.shift).rule.__module__.startswith("toolshift.")
        for applied in scene.shifts
    )


def changes_nothing(scene: Scene) -> bool:
    """Whether shifts have left all as it was: no layer came, and no part of the task is another."""
    clean = scene.clean
    values = ("layers", "asks", "outcome", "system", "task")
    return (
        bool(scene.shifts)
        and all(getattr(scene, part) == getattr(clean, part) for part in values)
        and scene.truth is clean.truth
        and scene.world is clean.world
    )


def misnamed(scene: Scene) -> str:
    """A name that two shown tools have, or that a shift has made and not all clients would take;
    "" for none."""
    names = [tool.name for tool in scene.tools]
    own = {tool.name for tool in scene.truth.tools}
    for name in names:
        if names.count(name) > 1:
            return f"two tools are shown as {name!r}"
        if name not in own and not is_taken_by_all(name):
            advice = f"a name is up to {MAX_NAME} letters, digits, _ and -"
            return f"a tool is shown as {name!r}: {advice}"
    return ""


def is_unproved(scene: Scene) -> bool:
    """Whether the oracle refuses a scene that a plugin's shift has made, and that has an answer.

    Ours are proved before they ship, and scenes over the user's own tools when they are made.
    """
    world = scene.world
    if not is_theirs(scene) or not scene.solvable or not world.traceable or world.counts:
        return False
    return not scene.rehearsal or scene.rehearsal[-1].kind != "answer"


def misread(scene: Scene) -> str:
    """What its fields no longer describe of a result, or a parameter that nothing fills."""
    if not scene.layers:
        return ""
    lost: list[str] = []

    class Watching(Solver):
        """Records what the layers lose of a result."""

        def read(self, data: object, result: Result) -> list[dict[str, Any]]:
            made = episode.session.true_calls if episode.steps[-1].true else ()
            lost.extend(_lost(made[-1][2] if made else None, data, result))
            return super().read(data, result)

    agent = OracleAgent()
    agent.solver = Watching
    with suppress(Exception):  # it is known to fail; the budget is one that needs no rehearsal
        episode = Episode(scene, budget=Budget.of(scene.clean), live=False)
        agent.play(episode)
    if not lost:
        return _unfed(scene)
    theirs = [
        other for other in scene.layers if not type(other).__module__.startswith("toolshift.")
    ]
    layer = (theirs or list(scene.layers))[-1]
    advice = f"{type(layer).__name__} changes the data: it must move `fields` with it"
    return f"{lost[0]}; {placed(advice, defined_at(type(layer)))}"


def _unfed(scene: Scene) -> str:
    """A required parameter that the shift has added, and for which nothing says a value."""
    before = {param.fact for tool in scene.clean.reachable for param in tool.params}
    told = before.union(*(ask.goal for ask in scene.asks))
    told |= {field.fact for tool in scene.reachable for field in tool.returns}
    for tool in scene.reachable:
        for param in tool.params:
            if param.required and param.given is None and param.fact not in told:
                return (
                    f"{tool.name} requires {param.name!r}, and nothing says its value: let a tool "
                    f"yield the fact {param.fact!r}, set `given`, or make it optional"
                )
    return ""


def _lost(true: Result | None, shown: object, result: Result) -> Iterator[str]:
    """The facts that the true result states, and that the shown one declares where nothing is."""
    if true is None or not true.ok or not result.ok:
        return
    try:
        stated = [fact for record in _records(shown) for fact in facts(record, result.fields)]
    except (TypeError, ValueError) as fault:
        yield f"a value is not of the type that its field declares ({fault})"
        return
    had = [fact for record in _records(true.data) for fact in facts(record, true.fields)]
    for field in result.fields:
        if field.fact in had and field.fact not in stated:
            where = ".".join(map(str, field.path))
            yield f"the fact {field.fact!r} is declared at {where!r}, where nothing stands"


def _records(data: object) -> list[object]:
    return list(data) if isinstance(data, list) else [data]
