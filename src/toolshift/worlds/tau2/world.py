"""A world whose tasks are those of a domain of tau2-bench, without a model that acts the user."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any

from toolshift.core.ask import Ask
from toolshift.core.errors import UsageError
from toolshift.core.fact import Fact
from toolshift.core.scene import Declared, Outcome, Scene, Task
from toolshift.core.tool import JSON, Result, Tool, error
from toolshift.core.world import TaskKind, Truth, World
from toolshift.episode.oracle import rehearse
from toolshift.interop.tools import from_mcp
from toolshift.worlds.own.file import SYSTEM, Call, Check, Given
from toolshift.worlds.own.reference_solution import ScriptedSolution, trace
from toolshift.worlds.own.sources import result_of
from toolshift.worlds.own.world import NoEntities, as_fact, never, not_truthful
from toolshift.worlds.tau2 import package

EXPECTED = "as expected"


@dataclass(frozen=True)
class Domain:
    """A domain, and how its tasks are put to an agent.

    Attributes:
        name: of tau2-bench's.
        tickets: whether a task has a ticket, which the agent works on alone, with the user's tools.
    """

    name: str
    tickets: bool = False


DOMAINS = {
    "mock": Domain("mock", tickets=True),
    "telecom": Domain("telecom", tickets=True),
    "retail": Domain("retail"),
    "airline": Domain("airline"),
}
"""Every world `tau2:NAME`."""


@dataclass(frozen=True, eq=False)
class EnvironmentTruth(Truth):
    """The tools of a task.

    Attributes:
        task: of tau2-bench.
        domain: that it is of.
    """

    task: Any
    domain: Domain

    def open(self) -> Any:
        """The environment in the first state of the task."""
        return EnvironmentUpstream(self)


class EnvironmentUpstream:
    """A task at work in one episode; tau2-bench's own checks judge its end.

    Args:
        truth: of the task.
    """

    def __init__(self, truth: EnvironmentTruth) -> None:
        self.truth = truth
        self.effects: list[tuple[Any, ...]] = []
        self._made: list[Any] = []
        self._over = False

    @cached_property
    def _environment(self) -> Any:
        return package.environment(
            self.truth.domain.name, self.truth.task, self.truth.domain.tickets
        )

    def tools(self) -> tuple[Tool, ...]:
        """The tools as they truly are."""
        return self.truth.tools

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        """Carries out a call."""
        if name not in self.truth.by_name:
            return error("unknown_tool", f"There is no tool named {name}.")
        call = package.part("tau2.data_model.message").ToolCall(
            id=str(len(self._made)), name=name, arguments=arguments, requestor="assistant"
        )
        self._made.append(call)
        return _as_result(name, self._environment.get_response(call))

    def request_over(self, attempts: int) -> None:
        """Judges the end."""
        self._over = True
        outcomes = checks(self.truth, self._environment, self._made)
        self.effects += [(name, EXPECTED if held else "not as expected") for name, held in outcomes]

    def close(self) -> None:
        """Ends the episode; where it was broken off, what it changed must be of its path."""
        if self._over or not self._made:
            return
        mine = _hashes(self._environment)
        if all(_hashes(state) != mine for state in _path(self.truth.domain, self.truth.task)):
            self.effects.append(("DB", "other changes were made"))


def _as_result(name: str, answer: Any) -> Result:
    if answer.error:
        return error("tool_error", answer.content.removeprefix("Error: "))
    try:
        data = json.loads(answer.content)
    except ValueError:
        data = answer.content
    records = isinstance(data, dict) or (
        isinstance(data, list) and data and all(isinstance(one, dict) for one in data)
    )
    return result_of(name, data if records else answer.content)


def basis_of(task: Any) -> list[str]:
    """What the reward of a task is based on that can be checked without a model."""
    criteria = task.evaluation_criteria
    basis = {part.value for part in criteria.reward_basis} if criteria else set()
    return [part for part in ("DB", "ENV_ASSERTION", "ACTION") if part in basis]


def checks(truth: EnvironmentTruth, environment: Any, made: list[Any]) -> list[tuple[str, bool]]:
    """What tau2-bench checks of an end without a model, and whether it holds."""
    criteria, basis = truth.task.evaluation_criteria, basis_of(truth.task)
    outcomes = []
    if "DB" in basis:
        outcomes.append(("DB", _hashes(environment) == _right_hashes(truth.domain, truth.task.id)))
    if "ENV_ASSERTION" in basis:
        held = [_asserted(environment, assertion) for assertion in criteria.env_assertions or ()]
        outcomes.append(("ENV_ASSERTION", all(held)))
    if "ACTION" in basis:
        matched = [
            any(action.compare_with_tool_call(call) for call in made)
            for action in criteria.actions or ()
        ]
        outcomes.append(("ACTION", all(matched)))
    return outcomes


def _value(criterion: Any) -> str:
    return str(criterion.value)


def _asserted(environment: Any, assertion: Any) -> bool:
    """Whether an assertion holds; some raise where what they are about is not there."""
    try:
        return bool(environment.run_env_assertion(assertion, raise_assertion_error=False))
    except ValueError:
        return False


def _hashes(environment: Any) -> tuple[Any, ...]:
    return environment.get_db_hash(), environment.get_user_db_hash()


def _path(domain: Domain, task: Any) -> Iterator[Any]:
    """The environment at the start, and after each expected call; one and the same object."""
    right = package.environment(domain.name, task, domain.tickets)
    yield right
    message = package.part("tau2.data_model.message")
    for place, action in enumerate(task.evaluation_criteria.actions or ()):
        right.get_response(
            message.ToolCall(
                id=str(place), name=action.name, arguments=action.arguments, requestor="assistant"
            )
        )
        yield right


@lru_cache(maxsize=4096)
def _right_hashes(domain: Domain, id: str) -> tuple[Any, ...]:
    """The hashes of the databases after the expected calls of a task."""
    task = next(known for known in package.tasks(domain.name) if known.id == id)
    *_, end = _path(domain, task)
    return _hashes(end)


@dataclass(frozen=True, eq=False)
class TauScene(Scene):
    """A task as a scene.

    Attributes:
        expected: the calls of its good path.
    """

    expected: tuple[Call, ...] = ()

    def not_applicable_reason(self, shift: Declared) -> str:
        """What draws tasks or entities cannot be truthful here."""
        return not_truthful(self, shift, self.expected)


class TauWorld(World):
    """A domain of tau2-bench.

    Args:
        name: of the world.
        domain: that it has the tasks of.

    Attributes:
        given: the tasks of which scenes can be made, by task kind.
        left_out: the id of every other task, and why.
    """

    traceable = False
    names_from = ("synonyms", "description")
    actions: Mapping[str, Any] = {}
    facts: Mapping[str, Fact] = {}

    def __init__(self, name: str, domain: Domain) -> None:
        self.name, self.domain = name, domain
        self.left_out: dict[str, str] = {}
        self.given: dict[str, list[Any]] = {}
        every = package.tasks(domain.name)
        sample = package.environment(domain.name, every[0], domain.tickets)
        self.tools = _tools(sample, domain.tickets)
        self._tools = {tool.name: tool for tool in self.tools}
        self.system = f"{SYSTEM}\n\n{sample.get_policy()}"
        for task in every:
            why = self._unfit(task)
            if why:
                self.left_out[task.id] = why
            else:
                self.given.setdefault(_kind(task, name), []).append(task)
        self.counts = {kind: len(tasks) for kind, tasks in self.given.items()}
        self.kinds = {kind: TaskKind(kind, (), never) for kind in self.given}

    def _unfit(self, task: Any) -> str:
        """Why no scene can be made of a task; "" where one can."""
        criteria = task.evaluation_criteria
        basis, start = basis_of(task), task.initial_state
        asserted = "ENV_ASSERTION" in basis
        reasons: dict[str, Callable[[], bool]] = {
            "it begins in the middle of a conversation": lambda: bool(
                start and start.message_history
            ),
            "it has no ticket, and its user is acted by a model": lambda: bool(
                self.domain.tickets and not task.ticket
            ),
            "nothing of it can be checked without a model": lambda: not basis,
            "it checks what the agent says in words of its own": lambda: bool(
                criteria.communicate_info and "COMMUNICATE" in map(_value, criteria.reward_basis)
            ),
            "its expected calls are not all among the tools": lambda: any(
                action.name not in self._tools for action in criteria.actions or ()
            ),
            "doing nothing would pass": lambda: (
                self._holds(task, ()) if asserted else not self._needs_calls(task)
            ),
            "its expected calls do not pass its own checks": lambda: (
                asserted and not self._holds(task, criteria.actions or ())
            ),
        }
        return next((why for why, is_so in reasons.items() if is_so()), "")

    def _needs_calls(self, task: Any) -> bool:
        """Whether the checks want a call made, where the state alone does not say so."""
        actions = task.evaluation_criteria.actions or ()
        if "ACTION" in basis_of(task):
            return bool(actions)
        return any(self._tools[action.name].effect == "write" for action in actions)

    def _holds(self, task: Any, actions: Any) -> bool:
        """Whether the checks of a task hold after some calls."""
        made = EnvironmentUpstream(
            EnvironmentTruth(self.tools, {}, NoEntities(), task, self.domain)
        )
        for call in actions:
            made.call(call.name, call.arguments)
        made.request_over(len(actions))
        return all(held == EXPECTED for _, held in made.effects)

    def scene(self, kind: str, index: int, seed: int, pool: str, size: int) -> Scene:
        """The clean scene of a task; seed and pool only choose what shifts draw."""
        tasks = self.given[kind]
        if index >= len(tasks):
            raise UsageError(f"world {self.name} has {len(tasks)} tasks of kind {kind}")
        task = tasks[index]
        truth = EnvironmentTruth(self.tools, {}, NoEntities(seed), task, self.domain)
        calls = tuple(
            Call(action.name, action.arguments) for action in task.evaluation_criteria.actions or ()
        )
        given = Given(task.id, kind, (_request(task, self.domain),), (), calls, Check(), (), ())
        upstream = truth.open()
        results = {
            n: upstream.call(call.name, dict(call.arguments)) for n, call in enumerate(calls)
        }
        origins = trace(given, truth.by_name, {n: result.data for n, result in results.items()})
        failing = frozenset(n for n, result in results.items() if not result.ok)
        walk = ScriptedSolution(given, 0, truth.by_name, origins.links, origins.slots, failing)
        ask = Ask(given.asks[0], origins.goals[0], walk, None, scripted=True)
        own = copy(self)
        own.facts = {slot: as_fact(slot) for slot in origins.goals[0]}
        lineage = f"{self.name}/{kind}/{pool}/{seed}/{size}/{index}"
        shown = [[tool.name, tool.description, tool.params] for tool in self.tools]
        content = [lineage, self.system, task.model_dump(mode="json"), shown]
        identity = blake2b(JSON.encode(content), digest_size=6).hexdigest()
        named = Task(self.name, kind, pool, seed, size, index, lineage, identity)
        outcome = Outcome(tuple((part, EXPECTED) for part in basis_of(task)), calls_alone=True)
        return TauScene(named, own, truth, (ask,), outcome, self.system, rehearse, expected=calls)


def _tools(environment: Any, alone: bool) -> tuple[Tool, ...]:
    """The tools of the agent, and where it is alone those of the user."""
    kits = [environment.tools, *([environment.user_tools] if alone else [])]
    listed = []
    for kit in kits:
        for tool in kit.get_tools().values():
            function = tool.openai_schema["function"]
            listed.append(
                {
                    "name": function["name"],
                    "description": function["description"],
                    "inputSchema": _plain(function["parameters"]),
                    "annotations": {"readOnlyHint": not kit.tool_mutates_state(tool.name)},
                }
            )
    return from_mcp(listed).tools


def _plain(schema: Any) -> Any:
    """A schema without the titles that pydantic makes of names."""
    if isinstance(schema, dict):
        kept = {k: v for k, v in schema.items() if k != "title" or not isinstance(v, str)}
        return {key: _plain(value) for key, value in kept.items()}
    return [_plain(item) for item in schema] if isinstance(schema, list) else schema


def _kind(task: Any, name: str) -> str:
    """The group that a task belongs to: the issue that its id begins with, or the domain."""
    match = re.match(r"\[(\w+)\]", task.id)
    return match[1] if match else name.partition(":")[2]


def _request(task: Any, domain: Domain) -> str:
    """What the user says: the ticket, or all that a model would have been told to act by."""
    if domain.tickets:
        return str(task.ticket)
    instructions = task.user_scenario.instructions
    if isinstance(instructions, str):
        return f"{CASE}\n\n{instructions}"
    parts = (
        ("Why the customer calls", instructions.reason_for_call),
        ("What the customer knows", instructions.known_info),
        ("What the customer does not know", instructions.unknown_info),
        ("How the customer decides", instructions.task_instructions),
    )
    return "\n\n".join([CASE, *(f"{title}: {text}" for title, text in parts if text)])


CASE = (
    'A customer has left the following, in which "you" is the customer. They confirm whatever they '
    "are asked for below, and cannot be asked anything else. Do what they want as far as the "
    "policy allows."
)
"""Stands before what is told of a customer."""
