"""Solves requests on the bare truth."""

from __future__ import annotations

from typing import Any

from toolshift.core.form import show
from toolshift.core.solver import Known, Solver
from toolshift.core.tool import Result, Tool
from toolshift.core.user import Ask
from toolshift.core.world import Truth, TruthSession, World


class TruthBackend:
    """The bare truth as a backend: nothing is hidden, nobody needs to be asked."""

    def __init__(self, session: TruthSession) -> None:
        self.session = session

    def tools(self) -> tuple[Tool, ...]:
        return self.session.tools()

    def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, Result]:
        result = self.session.call(name, arguments)
        return show(result), result

    def ask(self, slot: str, question: str) -> str:
        return ""

    def was_shown(self, value: object) -> bool:
        return True

    def user_said(self, value: object) -> bool:
        return True


def solve_in_truth(
    world: World, truth: Truth, asks: tuple[Ask, ...]
) -> tuple[list[str], tuple[Any, ...]]:
    """The answers to requests, and the effects of solving them, on the bare truth.

    Args:
        world: of the task.
        truth: without any layer.
        asks: what the user asks for, turn by turn.

    Returns:
        An answer for each request, and the writes in order.
    """
    session = truth.open()
    backend = TruthBackend(session)
    answers = []
    for ask in asks:
        solver = Solver(backend, world.facts, ask.goal)
        answers.append(ask.solve(solver, Known(solver, {})))
    return answers, tuple(session.state.effects)
