"""BFCL's stateful tasks: its backends as an upstream, judged turn by turn as BFCL judges."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from toolshift.core.layer import Layer, Memory
from toolshift.core.solver import Impossible, Known, Solver
from toolshift.core.tool import Result, Tool, error
from toolshift.core.world import Truth
from toolshift.worlds.bfcl import wheel
from toolshift.worlds.own.reference_solution import DONE
from toolshift.worlds.own.sources import result_of

EXPECTED = "as expected"
NEVER = 1 << 30
REFUSAL = "tool_unavailable"
"""The reason for which a request is refused to which none of the functions fits."""


@dataclass(frozen=True)
class Spoken:
    """A call of the ground truth; `positional` arguments go by the place of a parameter."""

    name: str
    positional: tuple[Any, ...]
    named: Mapping[str, Any]

    def by_name(self, names: Sequence[str]) -> dict[str, Any]:
        """The arguments by name, given the names of the parameters in their order."""
        return {**dict(zip(names, self.positional, strict=False)), **self.named}


def read_call(text: str) -> Spoken:
    """Reads a call that is written as Python."""
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call) or any(keyword.arg is None for keyword in call.keywords):
        raise ValueError(f"{text!r} is not a call with values")
    return Spoken(
        ast.unparse(call.func),
        tuple(ast.literal_eval(value) for value in call.args),
        {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords},
    )


class Backends:
    """The backends of one entry at work.

    Args:
        entry: of the data set.

    Attributes:
        instances: the objects by class, as BFCL's checker takes them.
    """

    def __init__(self, entry: Mapping[str, Any]) -> None:
        long_context = "long_context" in str(entry["id"])
        self.instances = {
            name: wheel.backend(name, entry["initial_config"], long_context)
            for name in entry["involved_classes"]
        }
        self._owner = {
            function: name for name in self.instances for function in wheel.documents(name)
        }

    def call(self, name: str, /, *positional: Any, **named: Any) -> tuple[str, Any]:
        """Calls a function."""
        try:
            function = getattr(self.instances[self._owner[name]], name)
            made = function(*deepcopy(positional), **deepcopy(named))  # some keep and change a list
        except Exception as fault:  # whatever a function raises is shown to the model
            return f"Error during execution: {fault}", None
        return as_text(made), made


def as_text(made: Any) -> str:
    """The text that BFCL shows, and compares, of a result."""
    if not isinstance(made, dict):
        return made if isinstance(made, str) else str(made)
    try:
        return json.dumps(made)
    except (TypeError, ValueError):
        return str(made)


def as_result(tool: str, text: str, made: Any) -> Result:
    """A result of a backend as layers take it."""
    if isinstance(made, dict) and made.keys() == {"error"}:
        return error("tool_error", str(made["error"]))
    if made is None and text.startswith("Error during execution"):
        return error("tool_error", text)
    try:
        return result_of(tool, json.loads(text) if isinstance(made, dict) else text)
    except ValueError:  # some hold an object of the backend, which has no JSON
        return result_of(tool, text)


@dataclass(frozen=True)
class Blocked:
    """Solves a turn that cannot be done yet: says so, or asks for what the user has left out."""

    asks: bool

    def __call__(self, solver: Solver, env: Known) -> str:
        """Refuses, or asks; the script then goes on."""
        if not self.asks:
            raise Impossible(REFUSAL)
        solver.backend.ask("", "What is the missing detail?")
        return DONE


@dataclass(frozen=True, eq=False)
class BackendTruth(Truth):
    """The functions of an entry.

    Attributes:
        entry: of the data set.
        wanted: the calls of the ground truth, turn by turn.
    """

    entry: Mapping[str, Any]
    wanted: tuple[tuple[Spoken, ...], ...]

    def open(self) -> Any:
        """The backends in the first state of the entry."""
        return BackendUpstream(self)


class BackendUpstream:
    """An entry at work in one episode.

    After each turn the ground truth is carried out on backends of its own, and BFCL's checks
    compare the states, and what the calls have returned. `effects` says what they found.

    Args:
        truth: of the entry.
    """

    def __init__(self, truth: BackendTruth) -> None:
        self.truth = truth
        self.effects: list[tuple[Any, ...]] = []
        self.turn = 0
        self._made = 0
        self._texts: list[str] = []

    @cached_property
    def _own(self) -> Backends:
        return Backends(self.truth.entry)

    @cached_property
    def _right(self) -> Backends:
        return Backends(self.truth.entry)

    def tools(self) -> tuple[Tool, ...]:
        """The functions as they are documented."""
        return self.truth.tools

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        """Carries out a call."""
        if name not in self.truth.by_name:
            return error("unknown_tool", f"There is no tool named {name}.")
        text, made = self._own.call(name, **arguments)
        self._made += 1
        self._texts.append(text)
        return as_result(name, text, made)

    def request_over(self, attempts: int) -> None:
        """Judges the turn as BFCL does."""
        wanted = self.truth.wanted[self.turn]
        self.turn, self._made = self.turn + 1, 0
        right = [self._right.call(call.name, *call.positional, **call.named)[0] for call in wanted]
        if wanted:
            self.effects.append((f"turn {self.turn}", self._verdict(attempts, right)))

    def _verdict(self, attempts: int, right: list[str]) -> str:
        if not attempts:
            return "no call was made"
        checker = wheel.multi_turn_checker()
        if not self._same_state():
            return "the state is another"
        if not checker.response_checker(self._texts, right, self.turn - 1)["valid"]:
            return "a result is missing"
        return EXPECTED

    def _same_state(self) -> bool:
        report = wheel.multi_turn_checker().state_checker(
            self._own.instances, self._right.instances
        )
        return bool(report["valid"])

    def close(self) -> None:
        """Ends the episode; of a turn that was broken off, what it changed must be of its path."""
        if self.turn == len(self.truth.wanted) or not self._made or self._same_state():
            return
        for call in self.truth.wanted[self.turn]:
            self._right.call(call.name, *call.positional, **call.named)
            if self._same_state():
                return
        self.effects.append((f"turn {self.turn + 1}", "other changes were made"))


@dataclass(frozen=True, eq=False)
class HeldBack(Layer):
    """Offers some tools from a later request of the user on, or never.

    Before that a call of one is carried out all the same, as BFCL does it.

    Attributes:
        since: the number of the request, from 0, by the name of the tool.
    """

    since: Mapping[str, int]

    def phase(self, memory: Memory) -> int:
        """How many of them are there."""
        return sum(memory["asks"] >= place for place in self.since.values())

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        """The tools, those that are held back as retired ones."""
        return tuple(
            tool.with_(retired=True) if memory["asks"] < self.since.get(tool.name, 0) else tool
            for tool in tools
        )
