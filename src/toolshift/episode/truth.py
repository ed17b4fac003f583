"""Solves requests on the bare truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolshift.core.ask import Ask
from toolshift.core.errors import UsageError, WorldFault, defined_at, described, place_of, placed
from toolshift.core.names import nearest
from toolshift.core.render import facts, show
from toolshift.core.solver import Impossible, Known, Solver
from toolshift.core.tool import Result, Tool
from toolshift.core.world import Truth, TruthSession, World


class TruthBackend:
    """The bare truth as a backend: nothing is hidden, nobody needs to be asked."""

    def __init__(self, session: TruthSession) -> None:
        self.session = session
        self.seen: list[tuple[str, Result]] = []

    def tools(self) -> tuple[Tool, ...]:
        return self.session.tools()

    def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, Result]:
        result = self.session.call(name, arguments)
        self.seen.append((name, result))
        try:
            return show(result), result
        except (TypeError, ValueError) as fault:
            action = self.session.truth.actions.get(name)
            message = f"the action of {name} returned what is not JSON: {fault}"
            raise WorldFault(placed(message, defined_at(action))) from fault

    def ask(self, slot: str, question: str) -> str:
        return ""

    def was_shown(self, value: object) -> bool:
        return True

    def request(self) -> str:
        return ""

    def user_said(self, value: object) -> bool:
        return True


def solve_in_truth(
    world: World, truth: Truth, asks: tuple[Ask, ...]
) -> tuple[list[str], tuple[Any, ...]]:
    """The answers to requests, and the effects of solving them, on the bare truth."""
    session = truth.open()
    backend = TruthBackend(session)
    answers = [_answer(world, backend, ask) for ask in asks]
    return answers, tuple(session.state.effects)


def _answer(world: World, backend: TruthBackend, ask: Ask) -> str:
    solver = Solver(backend, world.facts, ask.goal)
    try:
        answer: object = ask.solve(solver, Known(solver, {}))
    except UsageError:
        raise
    except Impossible as fault:
        message = f"solving {ask.text!r} needs {_lacking(fault, backend, ask)}"
        raise WorldFault(placed(message, place_of(fault) or defined_at(ask.solve))) from fault
    except Exception as fault:
        message = f"solving {ask.text!r} raised {described(fault)}"
        place = "" if place_of(fault) else defined_at(ask.solve)
        raise WorldFault(placed(message, place)) from fault
    if not isinstance(answer, str):
        message = f"solving {ask.text!r} returned {type(answer).__name__}, not the answer as text"
        raise WorldFault(placed(message, defined_at(ask.solve)))
    return answer


def _lacking(fault: Impossible, backend: TruthBackend, ask: Ask) -> str:
    """The fact that was needed and could not be found, and why."""
    absent = next(_absent(backend), "")
    if absent:
        return f"the fact {fault.fact!r}; {absent}" if fault.fact else absent
    return _unreached(fault, backend.tools(), ask)


def _absent(backend: TruthBackend) -> Iterator[str]:
    """Fields that are missing in every record of a result."""
    for name, result in backend.seen:
        records = result.data if isinstance(result.data, list) else [result.data]
        read = [facts(record, result.fields) for record in records] if result.ok else []
        for field in result.fields if read else ():
            if not any(field.fact in one for one in read):
                where = ".".join(map(str, field.path))
                keys = sorted(_paths(records[0])) if isinstance(records[0], dict) else []
                yield (
                    f"the field {where!r} of {name}, which yields the fact {field.fact!r}, is in "
                    f"none of its results: {nearest(where, keys)}"
                )


def _paths(record: dict[str, Any], above: str = "") -> Iterator[str]:
    """The keys of a record, as "data.price"."""
    for key, value in record.items():
        if isinstance(value, dict):
            yield from _paths(value, f"{above}{key}.")
        else:
            yield f"{above}{key}"


def _unreached(fault: Impossible, tools: tuple[Tool, ...], ask: Ask) -> str:
    """Why no chain of tools returns a fact."""
    if not fault.fact:
        return f"a call that failed: {fault.said or fault.reason}"
    fact = f"the fact {fault.fact!r}"
    if fault.reason == "not_found":
        bring = ", ".join(tool.name for tool in tools if tool.yields(fault.fact))
        return f"{fact}, which no result of {bring} held" if bring else f"{fact}: {fault.reason}"
    sources = [tool for tool in tools if tool.yields(fault.fact)]
    known = {field.fact for tool in tools for field in tool.returns} | set(ask.goal)
    if not sources:
        near = nearest(fault.fact, known)
        return f"{fact}, which no tool yields and the user does not state: {near}"
    for tool in sources:
        for need in tool.needs:
            if need not in known:
                return (
                    f"{fact} from {tool.name}, which takes the fact {need!r}; no tool yields this "
                    f"and the user does not state it: {nearest(need, known)}"
                )
    if all(tool.many for tool in sources):
        return (
            f"{fact}, which {sources[0].name} yields in a list: take it from "
            f"solver.records({fault.fact!r}, env)"
        )
    message = f"{fact}, to which no chain of tools leads from what the user states"
    single = ", ".join(tool.name for tool in sources if not tool.many)
    return f"{message} (solver.records takes it from a tool with many=True; {single} has it not)"
