"""Whether a change matters to a task: how a careless solver ends, beside the careful one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from toolshift.core.layer import Layer
from toolshift.core.render import facts
from toolshift.core.scene import Scene
from toolshift.core.solver import Impossible, Known, Solver
from toolshift.core.step import Step
from toolshift.core.tool import Param, Result, Tool
from toolshift.episode.budget import Budget
from toolshift.episode.episode import Episode, Over
from toolshift.episode.grading_rules import effects_of, is_decisive
from toolshift.episode.oracle import EpisodeBackend

Ending = tuple[Any, ...]


def ending(scene: Scene, steps: tuple[Step, ...]) -> Ending:
    """How a trace ends: in what, with which writes, after the evidence for a refusal or not."""
    if not steps:
        return ()
    seen = scene.solvable or any(is_decisive(scene, step) for step in steps)
    last = steps[-1]
    return last.kind, last.name if last.kind == "refuse" else last.said, effects_of(steps), seen


def oracle_unchanged(scene: Scene, *layers: Layer) -> bool:
    """Whether the oracle still comes to the same end behind some more layers."""
    return _end(scene.with_(layers=(*scene.layers, *layers))) == _end(scene)


def _end(scene: Scene) -> Ending:
    return ending(scene, scene.rehearsal)


class AssumesDefaults(Solver):
    """Leaves out what a call can do without."""

    def arguments(self, tool: Tool, env: Known) -> dict[str, Any]:
        """The arguments that are required, and those that the request names."""
        optional = {p.name for p in tool.params if p.given is not None and not p.required}
        arguments = super().arguments(tool, env)
        return {name: value for name, value in arguments.items() if name not in optional}


class IgnoresUnits(Solver):
    """Takes every number and every time of day as it stands, and passes it on so."""

    def read(self, data: Any, result: Result) -> list[dict[str, Any]]:
        """The facts as the numbers are."""
        plain = tuple(replace(field, scale=1.0, minutes=0) for field in result.fields)
        return [facts(one, plain) for one in (data if isinstance(data, list) else [data])]

    def speak(self, tool: Tool, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The call with the numbers as they are."""
        return super().speak(without_shapes(tool, ("unit", "clock")), arguments)


def without_shapes(tool: Tool, kinds: tuple[str, ...]) -> Tool:
    """A tool as who does not know of some shapes of its parameters takes it."""

    def kept(param: Param) -> Param:
        return replace(param, shapes=tuple(s for s in param.shapes if s.kind not in kinds))

    return tool.with_(params=tuple(map(kept, tool.params)))


def naive_fails(scene: Scene, solver: type[Solver], *layers: Layer) -> bool:
    """Whether a careless solver comes to another end behind some layers than the oracle does."""
    changed = scene.with_(layers=(*scene.layers, *layers))
    episode = Episode(changed, Budget(calls=60, turns=60), live=False)
    backend = EpisodeBackend(episode, strict=False)
    try:
        while not episode.end:
            _work(episode, solver(backend, scene.world.facts, episode.ask_now.goal))
    except (Impossible, Over, ArithmeticError, LookupError, StopIteration, TypeError, ValueError):
        pass  # it came to nothing, which is another end
    return ending(changed, tuple(episode.steps)) != _end(scene)


def _work(episode: Episode, solver: Solver) -> None:
    """Works on one request; what cannot be done ends the episode, but where a script goes on."""
    ask, asked = episode.ask_now, episode.asked
    try:
        answer = ask.solve(solver, solver.root)
    except Impossible as impossible:
        if not ask.scripted:
            raise
        episode.refuse(impossible.reason)
    else:
        if episode.asked == asked:
            episode.answer(answer)
    if not episode.end or episode.asked == asked:
        episode.next_turn()
