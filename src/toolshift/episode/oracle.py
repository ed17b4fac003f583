"""The oracle knows the goal and acts only through what is shown, which proves a scene solvable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolshift.core.ask import is_said
from toolshift.core.scene import Scene
from toolshift.core.solver import Impossible, Solver, Untraceable
from toolshift.core.step import Step
from toolshift.core.tool import Result, Tool
from toolshift.core.values import held_in
from toolshift.episode.budget import Budget
from toolshift.episode.episode import Episode, Over


class OracleAgent:
    """Solves every solvable scene and refuses the others for the right reason."""

    name = "oracle"
    solver: type[Solver] = Solver

    def play(self, episode: Episode) -> None:
        """Works through the user's turns."""
        backend = EpisodeBackend(episode, strict=episode.scene.world.traceable)
        try:
            while not episode.end:
                self.work(episode, backend)
        except Over:
            return

    def work(self, episode: Episode, backend: EpisodeBackend) -> None:
        """Works on one request, to an answer or a refusal."""
        solver = self.solver(backend, episode.scene.world.facts, episode.ask_now.goal)
        number = episode.asked
        try:
            answer = episode.ask_now.solve(solver, solver.root)
        except Impossible as impossible:
            episode.refuse(impossible.reason)
            if not episode.end:  # the user goes by a script
                episode.next_turn()
            return
        if episode.asked != number:  # and a question was enough to end the turn
            return
        if backend.strict and not backend.was_shown(answer):
            raise Untraceable(f"the answer {answer!r} was never shown")
        episode.answer(answer)
        episode.next_turn()


class EpisodeBackend:
    """An episode as a solver's backend: one call a turn, or, where `at_once`, all in one.

    A strict backend lets no string pass as an argument that has not been shown before.
    """

    def __init__(self, episode: Episode, strict: bool = True, at_once: bool = False) -> None:
        self.episode = episode
        self.at_once = at_once
        self.strict = strict
        self._told = ""
        self._said = ""
        self._steps = 0

    def tools(self) -> tuple[Tool, ...]:
        return self.episode.tools

    def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, Result]:
        for value in self._passed(name, arguments) if self.strict else ():
            if isinstance(value, str) and not self.was_shown(value):
                raise Untraceable(f"{name}: the argument {value!r} was never shown")
        shown = self.episode.call(name, arguments)
        if not self.at_once:
            self.episode.next_turn()
        return shown

    def ask(self, slot: str, question: str) -> str:
        reply = self.episode.ask(question)
        self.episode.next_turn()
        return reply

    def was_shown(self, value: object) -> bool:
        self._catch_up()
        return str(value) in self._told or self.user_said(value) or self._in_schema(value)

    def request(self) -> str:
        return self.episode.ask_now.text

    def user_said(self, value: object) -> bool:
        self._catch_up()
        return is_said(value, self._said)

    def _passed(self, name: str, arguments: dict[str, Any]) -> Iterator[Any]:
        """The values of a call by themselves, as they were before a shape was given to them."""
        shown = (tool for tool in self.episode.tools if tool.name == name)
        params = {param.name: param for tool in shown for param in tool.params}
        for key, value in arguments.items():
            param = params.get(key)
            if param is None or not param.free:
                yield from _leaves(param.read(value) if param else value)

    def _in_schema(self, value: Any) -> bool:
        """Whether a parameter documents a value: among its choices, or as the one to pass."""
        return any(
            value in param.schema.get("enum", ())
            or value == param.schema.get("const")
            or (value == param.given and str(value) in param.schema.get("description", ""))
            for tool in self.episode.tools
            for param in tool.params
        )

    def _catch_up(self) -> None:
        """Reads the messages since the last call."""
        steps = self.episode.steps
        if self._said and self._steps == len(steps):
            return
        if not self._said:
            scene = self.episode.scene
            self._said = f"{scene.system}\n{scene.asks[0].text}".lower()
        for step in steps[self._steps :]:
            if step.kind == "call":
                self._told += "\n" + step.text
            else:
                self._said += f"\n{step.notice}\n{step.text}".lower()
        self._steps = len(steps)


def _leaves(value: Any) -> Iterator[Any]:
    inner = held_in(value)
    if isinstance(value, dict | list):
        for one in inner:
            yield from _leaves(one)
    else:
        yield value


def rehearse(scene: Scene) -> tuple[Step, ...]:
    """The oracle's steps through a scene."""
    episode = Episode(scene, Budget(calls=200, turns=200), live=False)
    OracleAgent().play(episode)
    if episode.fault is not None:
        raise episode.fault
    return tuple(episode.steps)
