"""Solves a task by reading: backward chaining over the tools as they are shown.

A task kind states its solution as fact queries (`env["price"]`, or `solver.records(...)`). The
solver finds the shown tool that yields the fact, first gets what that tool needs, calls it and
reads the answer from the shown text. So the same solution works when tools are renamed, merged,
split or reversed, as long as the documentation says so; that is what proves a scene.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Protocol

from toolshift.core.codecs import replaced, texts_in
from toolshift.core.fact import Fact, Goal
from toolshift.core.operations import encode_call, split_operations
from toolshift.core.render import facts, records
from toolshift.core.tool import JSON, Hint, Result, Tool
from toolshift.core.values import as_json, as_list, as_text

MAX_ATTEMPTS = 8


class Impossible(Exception):
    """The request cannot be fulfilled.

    Args:
        reason: one of `core.message.REASONS`.
        fact: that could not be brought; "" where it is not known which.
        said: what the last error said to that; "" where none did.
    """

    def __init__(self, reason: str, fact: str = "", said: str = "") -> None:
        super().__init__(reason)
        self.reason, self.fact, self.said = reason, fact, said


class Untraceable(Exception):
    """The solver was about to use something that no shown text supports: the scene is broken."""


class SolverBackend(Protocol):
    """Where a solver acts: an episode, or the bare truth."""

    def tools(self) -> tuple[Tool, ...]:
        """The tools as shown now."""
        ...

    def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, Result]:
        """Makes a call; returns the shown text and the result behind it."""
        ...

    def ask(self, slot: str, question: str) -> str:
        """Asks the user about a slot."""
        ...

    def was_shown(self, value: object) -> bool:
        """Whether a value stands in the text shown so far."""
        ...

    def request(self) -> str:
        """What the user asks for now, in their words."""
        ...

    def user_said(self, value: object) -> bool:
        """Whether a value stands in what the user (or the system prompt) has said."""
        ...


class Known:
    """The facts known about one entity; those not known yet are looked up on demand."""

    __slots__ = ("facts", "parent", "solver")

    def __init__(self, solver: Solver, facts: dict[str, Any], parent: Known | None = None) -> None:
        self.solver = solver
        self.facts = facts
        self.parent = parent

    def __getitem__(self, fact: str) -> Any:
        return self.solver.require(fact, self)

    def find(self, fact: str) -> Any:
        """The value if it is known here or above, else None."""
        env: Known | None = self
        while env is not None:
            value = env.facts.get(fact)
            if value is not None:
                return value
            env = env.parent
        return None

    def says_none(self, fact: str) -> bool:
        """Whether the nearest that is said of a fact, here or above, is that there is none."""
        env: Known | None = self
        while env is not None and fact not in env.facts:
            env = env.parent
        return env is not None and env.facts[fact] is None

    def about(self, **facts: Any) -> Known:
        """A child in which some facts differ, as for a second entity."""
        return Known(self.solver, facts, self)


class Solver:
    """Solves one request at a backend. Planted agents override its steps to plant a weakness."""

    searches = 4
    """How often it searches with the same words; a search shows further tools each time."""

    def __init__(self, backend: SolverBackend, vocabulary: Mapping[str, Fact], goal: Goal) -> None:
        self.backend = backend
        self.vocabulary = vocabulary
        self.goal = goal
        self.confirmed: set[str] = set()
        self.seen: dict[tuple[str, bytes], tuple[Any, Result]] = {}
        self.renewed: dict[Any, Any] = {}
        self.gathering: list[str] = []
        self.searched = Counter[tuple[str, str]]()
        self._stated: dict[str, Any] = {}

    @property
    def root(self) -> Known:
        """A new root environment: facts that belong to no record."""
        return Known(self, self._stated)

    # -- fact queries, for the solutions of task kinds --------------------------------------------

    def require(self, fact: str, env: Known) -> Any:
        """Gets a fact: known already, stated by the user, or returned by a tool."""
        value = env.find(fact)
        if value is None and fact in self.goal:
            value = self.given(fact)
        if value is None:
            value = self._fetch(fact, env)
        return self.current(value)

    def current(self, value: Any) -> Any:
        """A value, with those in it that others were told in place of."""
        while self.renewed and any(text in self.renewed for text in texts_in(value)):
            value = replaced(value, self.renewed)
        return value

    def records(self, fact: str, env: Known) -> list[Known]:
        """The records of the tool that lists this fact, as children of `env`."""
        _, records = self._call_for(fact, env, many=True)
        if not records:
            raise Impossible("not_found", fact)
        return [Known(self, record, env) for record in records]

    def given(self, slot: str) -> Any:
        """Gets a value of the goal that the user has stated; asks the user if needed."""
        value = self.goal[slot]
        if slot not in self.confirmed:
            if isinstance(value, tuple) or not self.backend.user_said(value):
                value = self._look_up_or_ask(slot, value)
            self.confirmed.add(slot)
            self.goal = {**self.goal, slot: value}
        return value

    # -- choosing and calling tools ------------------------------------------------------------

    def offered(self) -> tuple[Tool, ...]:
        """The tools as shown now, each operation of one for itself."""
        return split_operations(self.backend.tools())

    def route(
        self, fact: str, env: Known, many: bool = False, without: frozenset[str] = frozenset()
    ) -> Tool | None:
        """The shown tool that returns a fact at the lowest cost, the authoritative one first."""
        best: tuple[tuple[int, int], Tool] | None = None
        for tool in _sources(self.offered(), fact, many):
            if tool.key in without:
                continue
            cost = self._cost(tool, env, without | {tool.key})
            if cost is None:
                continue
            rank = (-tool.authority, cost)
            if best is None or rank < best[0]:
                best = (rank, tool)
        return best[1] if best else None

    def perform(self, tool: Tool, arguments: dict[str, Any]) -> tuple[Any, Result]:
        """Calls a tool and follows what its results ask for, until it succeeds."""
        self.check_choice(tool)
        key = (tool.key, JSON.encode(arguments))
        if key in self.seen:
            return self.seen[key]
        pages: list[Any] = []
        for _ in range(MAX_ATTEMPTS):
            text, result = self.backend.call(*self.speak(tool, arguments))
            hint = self.notice(result)
            if hint is None:
                if not result.ok:
                    raise Impossible(self._reason(result), said=result.data["error"]["message"])
                data = records(text, result)
                data = [*pages, *data] if pages and isinstance(data, list) else data
                if tool.effect == "write":
                    self.seen.clear()
                self.seen[key] = (data, result)
                return data, result
            tool, arguments = self.follow(hint, tool, arguments, text, result, pages)
        raise Impossible("service_failure")

    def speak(self, tool: Tool, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The call as it is made: the tool by its shown name, the values as it takes them."""
        return tool.name, encode_call(tool, arguments)

    def follow(
        self,
        hint: Hint,
        tool: Tool,
        arguments: dict[str, Any],
        text: str,
        result: Result,
        pages: list[Any],
    ) -> tuple[Tool, dict[str, Any]]:
        """The next call that a hint asks for."""
        if hint.kind == "fatal":
            raise Impossible("service_failure")
        if hint.kind == "use":
            self._evident(hint.tool, text)
            wanted = tool.with_(name=hint.tool).key
            successor = self._offered_that(lambda other: other.key == wanted, tool)
            for value in hint.arguments.values():
                self._evident(as_text(value), text)
            return successor, {**self._carry_over(tool, successor, arguments), **hint.arguments}
        if hint.kind == "refresh":
            successor = self._offered_that(lambda other: _does_the_same(other, tool), tool)
            self.check_choice(successor)
            return successor, self._carry_over(tool, successor, arguments)
        if hint.kind == "page":
            page = records(text, result)
            pages.extend(as_list(page))
            for value in hint.arguments.values():
                if isinstance(value, str):  # a number is counted on from the page before
                    self._evident(value, text)
            return tool, {**arguments, **hint.arguments}
        if hint.kind == "value":
            self._evident(hint.new, text)
            self.renewed[hint.old] = hint.new
            return tool, replaced(arguments, {hint.old: hint.new})
        return tool, arguments

    def _offered_that(self, fits: Callable[[Tool], bool], old: Tool) -> Tool:
        """The tool on offer that takes the place of another; it may have to be searched for."""
        found = next(filter(fits, self.offered()), None)
        while found is None and self.look_further([f"{old.name} {old.description}"]):
            found = next(filter(fits, self.offered()), None)
        if found is None:
            raise Impossible("tool_unavailable")
        return found

    def notice(self, result: Result) -> Hint | None:
        """The hint of a result, if the solver notices it."""
        return result.hint

    def read(self, data: object, result: Result) -> list[dict[str, Any]]:
        """The facts of each record of a result."""
        records = data if isinstance(data, list) else [data]
        return [facts(record, result.fields) for record in records]

    def check_choice(self, tool: Tool) -> None:
        """Checks that the shown name or description still says what the tool does."""
        if not tool.channels:
            raise Untraceable(f"nothing that is shown tells what {tool.name} does")

    # -- inside --------------------------------------------------------------------------------

    def _fetch(self, fact: str, env: Known) -> Any:
        tool, records = self._call_for(fact, env, many=False)
        self._home(tool, env).facts.update(records[0])
        value = env.find(fact)
        if value is None:
            raise Impossible("not_found", fact)
        return value

    def _call_for(self, fact: str, env: Known, many: bool) -> tuple[Tool, list[dict[str, Any]]]:
        """Routes, gathers the arguments and calls; routes again if that has changed the tools."""
        for _ in range(MAX_ATTEMPTS):
            tool = self.route(fact, env, many, without=frozenset(self.gathering))
            if tool is None:
                if self.look_further(self.queries(fact, env)):
                    continue
                break
            self.gathering.append(tool.key)  # what it needs must come from another tool
            arguments = self.arguments(tool, env)
            self.gathering.pop()
            now = self.offered()
            if tool in now or any(t.key == tool.key and t.params == tool.params for t in now):
                return tool, self.read(*self.perform(tool, arguments))
        raise Impossible("tool_unavailable", fact)

    def look_further(self, queries: Iterable[str]) -> bool:
        """Asks a tool for what there is beside; returns whether anything new was shown.

        A search that wants words is given one query after the other.
        """
        words = tuple(queries)
        before = {tool.key for tool in self.offered()}
        for tool in self.backend.tools():
            by_words = bool(_by_words(tool))
            for arguments in self._searches(tool, words) if tool.lists else ():
                if by_words:  # it shows others now
                    self.seen.pop((tool.key, JSON.encode(arguments)), None)
                self.perform(tool, arguments)
                if by_words and not {one.key for one in self.offered()} <= before:
                    return True
        return not {tool.key for tool in self.offered()} <= before

    def _searches(self, tool: Tool, queries: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        """The calls of a search, each query once before any is made again."""
        given = {p.name: p.given for p in tool.params if p.given is not None}
        words = _by_words(tool)
        if not words:
            yield given
            return
        for times in range(self.searches):
            for query in filter(None, queries):
                if self.searched[tool.key, query] == times:
                    self.searched[tool.key, query] += 1
                    yield {**given, words: query}

    def queries(self, fact: str, env: Known) -> Iterator[str]:
        """Words to search with: of a fact, of what tools need that lead to it; the request."""
        wanted, done = [fact], set[str]()
        while wanted:
            one = wanted.pop(0)
            if one in done or one in self.goal or env.find(one) is not None:
                continue
            done.add(one)
            yield self._words_for(one)
            for tool in self.offered():
                if tool.yields(one):
                    wanted += [p.fact for p in tool.params if p.required and p.given is None]
        yield self.backend.request()

    def _words_for(self, fact: str) -> str:
        """How a fact is called: by the label of the world's vocabulary, and by its name."""
        known = self.vocabulary.get(fact)
        name = fact.replace("_", " ")
        return f"{known.label} {name}" if known is not None and known.label != name else name

    def _home(self, tool: Tool, env: Known) -> Known:
        """The environment of a result: the one that holds a value it was called with."""
        needs = set(tool.needs)
        home = env
        while home.parent is not None and not needs & home.facts.keys():
            home = home.parent
        return home

    def arguments(self, tool: Tool, env: Known) -> dict[str, Any]:
        """The arguments of a call: all that are required, and the optional ones that are known."""
        arguments = {}
        for param in tool.params:
            known = param.fact in self.goal or env.find(param.fact) is not None
            if param.given is not None:
                arguments[param.name] = param.given
            elif param.required or known:
                arguments[param.name] = self.require(param.fact, env)
        return arguments

    def _cost(self, tool: Tool, env: Known, without: frozenset[str]) -> int | None:
        """The number of calls needed to make this one; None if a need cannot be met."""
        cost = 1
        for param in tool.params:
            free = not param.required or param.given is not None
            if free or param.fact in self.goal or env.find(param.fact) is not None:
                continue
            source = self.route(param.fact, env, without=without)
            if source is None:
                return None
            further = self._cost(source, env, without | {source.key})
            if further is None:
                return None
            cost += further
        return cost

    def _look_up_or_ask(self, slot: str, value: Any) -> Any:
        profile = (t for t in self.offered() if _asks_nothing(t) and not t.many and t.yields(slot))
        if not isinstance(value, tuple) and any(profile):
            return self._fetch(slot, self.root)
        label = self.vocabulary[slot].label
        reply = self.backend.ask(slot, f"What is the {label}?")
        if isinstance(value, tuple):
            named = [option for option in value if self._names(reply, option)]
            if len(named) != 1:
                raise Impossible("contradictory_request")
            return named[0]
        if not self._names(reply, value):
            raise Impossible("contradictory_request")
        return value

    @staticmethod
    def _names(reply: str, value: Any) -> bool:
        return re.search(rf"(?<!\w){re.escape(str(value))}(?!\w)", reply, re.IGNORECASE) is not None

    def _carry_over(self, old: Tool, new: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
        """The same arguments under the successor's parameter names, matched by fact.

        One that was given as null is given so again, for a call without it is another call.
        """
        by_fact = {p.fact: arguments[p.name] for p in old.params if p.name in arguments}
        carried = {}
        for param in new.params:
            if param.given is not None:
                carried[param.name] = param.given
            elif param.fact in by_fact:
                carried[param.name] = by_fact[param.fact]
            elif param.required or param.fact in self.goal:
                carried[param.name] = self.require(param.fact, self.root)
        return carried

    def _evident(self, value: Any, text: str) -> None:
        written = as_json(str(value))[1:-1]  # as it stands in a text of JSON
        if str(value) not in text and written not in text:
            raise Untraceable(f"{value!r} is not in the shown text: {text[:200]}")

    @staticmethod
    def _reason(result: Result) -> str:
        code = result.data["error"]["code"]
        return {"not_found": "not_found", "unknown_tool": "tool_unavailable"}.get(
            code, "service_failure"
        )


@lru_cache(maxsize=8192)
def _sources(tools: tuple[Tool, ...], fact: str, many: bool) -> tuple[Tool, ...]:
    """The tools that bring a fact, in one record or in a list of them."""
    return tuple(tool for tool in tools if tool.many is many and tool.yields(fact))


def _by_words(tool: Tool) -> str:
    """The parameter of a search that takes any words; "" where it lists all that there is."""
    return next((p.name for p in tool.params if p.free and p.given is None), "")


def _asks_nothing(tool: Tool) -> bool:
    return all(p.given is not None for p in tool.params if p.required)


def _does_the_same(tool: Tool, other: Tool) -> bool:
    """Whether two tools have the same origin and return the same facts, whatever their names."""
    return (tool.origin, tool.returns) == (other.origin, other.returns)


Solve = Callable[[Solver, Known], str]
"""Works out the answer to a request from what is known at its start."""
