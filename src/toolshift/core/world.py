"""The truth: the entities of a domain, its tools with their dependencies, its tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from random import Random
from typing import Any, Literal

from toolshift.core import seed as seeds
from toolshift.core.errors import (
    UsageError,
    WorldFault,
    defined_at,
    described,
    kind_of,
    place_of,
    placed,
)
from toolshift.core.fact import Fact, Goal
from toolshift.core.solver import Known, Solve, Solver
from toolshift.core.tables import table_beside
from toolshift.core.tool import Effect, Field, Param, Result, Tool, ToolFailure, error

POOLS = ("train", "dev", "test")
Action = Callable[["State", dict[str, Any]], Any]


class State:
    """The state of one episode over a database that never changes."""

    __slots__ = ("db", "effects", "memory")

    def __init__(self, db: Any) -> None:
        self.db = db
        self.effects: list[tuple[Any, ...]] = []
        self.memory: dict[Any, Any] = {}

    def record(self, *effect: object) -> None:
        """Notes a write: the tool and what it did, in terms of entities."""
        self.effects.append(effect)

    def code(self, *parts: object) -> str:
        """A code that belongs to these parts in this world, and cannot be guessed."""
        return seeds.code(self.db.seed, *parts)


@dataclass(frozen=True, eq=False)
class Truth:
    """The tools of a world, what they do, and the database they do it on."""

    tools: tuple[Tool, ...]
    actions: Mapping[str, Action]
    db: Any
    by_name: dict[str, Tool] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {tool.name: tool for tool in self.tools})

    def with_tools(
        self, add: Mapping[Tool, Action] | None = None, remove: tuple[str, ...] = ()
    ) -> Truth:
        """The truth after tools were removed and added; a tool of the same name is replaced.

        Args:
            add: new tools, and the action of each.
            remove: names of tools that are no longer there.

        Returns:
            Another truth over the same database.
        """
        add = add or {}
        new = {tool.name: tool for tool in add}
        kept = [new.pop(t.name, t) for t in self.tools if t.name not in remove]
        actions = {name: act for name, act in self.actions.items() if name not in remove}
        actions.update({tool.name: action for tool, action in add.items()})
        return replace(self, tools=(*kept, *new.values()), actions=actions)

    def open(self) -> TruthSession:
        """A fresh state of this truth, ready for calls."""
        return TruthSession(self)


class TruthSession:
    """A world at work in one episode; the upstream under a scene's layers."""

    __slots__ = ("effects", "state", "truth")

    def __init__(self, truth: Truth) -> None:
        self.truth = truth
        self.state = State(truth.db)
        self.effects = self.state.effects

    def tools(self) -> tuple[Tool, ...]:
        return self.truth.tools

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        """Carries out a true call."""
        tool = self.truth.by_name.get(name)
        if tool is None:
            return error("unknown_tool", f"There is no tool named {name}.")
        action = self.truth.actions[name]
        try:
            data = action(self.state, _whole(tool, arguments))
        except ToolFailure as failure:
            return error(failure.code, failure.message)
        except UsageError:
            raise
        except Exception as fault:
            place = "" if place_of(fault) else defined_at(action)
            message = placed(f"the action of {name} raised {described(fault)}", place)
            advice = "raise toolshift.ToolFailure(code, message) for what an agent may do wrong"
            advice = f": {advice}" if isinstance(fault, LookupError | ValueError) else ""
            raise WorldFault(f"{message}, called with {arguments}{advice}") from fault
        if tool.returns and not isinstance(data, list if tool.many else dict):
            raise WorldFault(_no_record(tool, data, defined_at(action)))
        return Result(True, data, tool.returns)


def _no_record(tool: Tool, data: object, place: str) -> str:
    """The message for an action that returns something else than its tool declares."""
    wanted = "a list of dicts, as it has many=True" if tool.many else "a dict"
    advice = "; a tool that returns a list has many=True" if isinstance(data, list) else ""
    message = f"the action of {tool.name} returned {kind_of(data)}, not {wanted}{advice}"
    return placed(message, place)


def _whole(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with 7.0 as 7 where an integer is required; JSON allows both."""
    whole = _integers(tool)
    if not whole:
        return dict(arguments)
    return {
        name: int(value) if name in whole and isinstance(value, float) else value
        for name, value in arguments.items()
    }


@lru_cache(maxsize=1024)
def _integers(tool: Tool) -> frozenset[str]:
    """The parameters of a tool that take whole numbers."""
    return frozenset(p.name for p in tool.params if p.schema.get("type") == "integer")


@dataclass(frozen=True, eq=False)
class Request:
    """One user turn of a task kind: its phrasings per pool and how it is solved.

    Attributes:
        phrasings: for "train", "dev" and "test" each a tuple of format strings over the goal's
            values ("Book {place}"), at least 12 a pool.
        solve: a function of (solver, env) that returns the answer as text. `env["price"]` is a
            fact, for which the tools are called that lead to it; `solver.records("price", env)` are
            the records of the tool that lists it.
    """

    phrasings: Mapping[str, tuple[str, ...]]
    solve: Solve


@dataclass(frozen=True, eq=False)
class TaskKind:
    """A family of tasks: a draw of goals, and one or more user turns.

    Attributes:
        name: its key in `kinds`.
        requests: one a user turn.
        draw: a function of (db, rng) that returns the goal: a dict from facts to the values that
            the user states. One that does not work out (a tie, no match) returns None and is made
            again.
    """

    name: str
    requests: tuple[Request, ...]
    draw: Callable[[Any, Random], Goal | None]


NameSource = Literal["synonyms", "description"]


class World:
    """A domain. Subclasses set the class attributes and `build`.

    A world whose tasks are given, not drawn, sets `counts` and is a `GivenTasks` (`core.scene`).

    Attributes:
        name: by which results know it.
        system: the system prompt.
        facts: what users can state or be asked for, by name.
        tools: what agents are shown.
        actions: for each tool's name a function of (state, arguments) that returns a record (a
            dict), or a list of them for `many`, and raises `ToolFailure`.
        kinds: the families of tasks, by name.
        counts: how many tasks each kind has, where they are given; empty where they are drawn.
        task_ids: by kind, the names that a user gave those tasks, in their order; empty where
            there are none.
        traceable: whether all that a solution says and passes stands in what is shown.
        names_from: where a rename finds names of the same meaning, the first choice first.
    """

    name: str
    system: str
    facts: Mapping[str, Fact]
    tools: tuple[Tool, ...]
    actions: Mapping[str, Action]
    kinds: Mapping[str, TaskKind]
    counts: Mapping[str, int] = {}
    task_ids: Mapping[str, list[str]] = {}
    traceable: bool = True
    names_from: tuple[NameSource, ...] = ("synonyms",)

    def build(self, seed: int, size: int, pool: str) -> Any:
        """Generates the entities: `size` of them, named by the generator of the pool.

        The database it returns is never changed and has an attribute `seed`.

        Args:
            seed: of all choices.
            size: how many entities.
            pool: whose generator names them.

        Returns:
            The database, the same for the same arguments.

        Raises:
            NotImplementedError: where a subclass does not override it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how to build its entities")

    def truth(self, seed: int, size: int, pool: str) -> Truth:
        """The truth for a seed; made once and kept.

        Args:
            seed: of the entities.
            size: how many there are.
            pool: whose generator names them.

        Returns:
            The tools over those entities.
        """
        return _truth(self, seed, size, pool)


@cache
def _truth(world: World, seed: int, size: int, pool: str) -> Truth:
    """The truth of a world."""
    called = f"world {world.name}: build({seed}, {size}, {pool!r})"
    try:
        db = world.build(seed, size, pool)
    except UsageError:
        raise
    except Exception as fault:
        place = "" if place_of(fault) else defined_at(world.build)
        raise WorldFault(f"{placed(f'{called} raised {described(fault)}', place)}") from fault
    if not hasattr(db, "seed"):
        message = f"{called} returned {kind_of(db)} without an attribute `seed`"
        raise WorldFault(
            f"{placed(message, defined_at(world.build))}: return an object with seed=seed, such as "
            "types.SimpleNamespace(seed=seed, ...)"
        )
    return Truth(world.tools, world.actions, db)


# -- words for declaring tools -----------------------------------------------------------------


def declare(
    action: Action,
    description: str,
    params: tuple[Param, ...],
    returns: tuple[Field, ...],
    many: bool = False,
    effect: Effect = "read",
) -> tuple[Tool, Action]:
    """A tool that is named after the function that carries it out."""
    name = action.__name__
    return Tool(name, description, params, returns, many, effect, origin=(name,)), action


def text(description: str, **more: Any) -> dict[str, Any]:
    """The schema of a string that is not empty."""
    return {"type": "string", "minLength": 1, "description": description, **more}


def plain(fact: str) -> Field:
    """A value that stands in the result under the name of its fact."""
    return Field((fact,), fact)


quantity = partial(Field, type="number")


def query_fact(fact: str) -> Solve:
    """The solution that queries one fact."""

    def solve(solver: Solver, env: Known) -> str:
        return str(env[fact])

    return solve


def read_requests(module: str, solutions: Mapping[str, Solve]) -> dict[str, Request]:
    """Reads the `wording.toml` beside a module into one request a solution.

    Its table `frames` and each request's table hold one list a pool; every body stands in every
    frame of its pool, where the frame says "%s".
    """
    wording = table_beside(module, "wording.toml")
    frames = wording["frames"]
    return {
        name: Request(
            {
                pool: tuple(
                    f.replace("%s", body) for body in wording[name][pool] for f in frames[pool]
                )
                for pool in POOLS
            },
            solve,
        )
        for name, solve in solutions.items()
    }
