"""The good path of a task as a solution that any solver can walk through what is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from weakref import WeakKeyDictionary

from toolshift.core.formats import leaves
from toolshift.core.solver import Impossible, Known, Solver
from toolshift.core.statement import as_answer, passage, says
from toolshift.core.tool import Tool
from toolshift.episode.episode import Episode
from toolshift.episode.oracle import EpisodeBackend
from toolshift.worlds.own.expected_calls import Links, calls_of, resolved
from toolshift.worlds.own.file import REFERENCE, Given, is_free
from toolshift.worlds.own.sources import fact
from toolshift.worlds.own.stand_in import ActResult, carry_out

DONE = "Done."
_heard: WeakKeyDictionary[Episode, ActResult] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Walk:
    """Solves one turn of a task by making its expected calls, by whatever names are shown.

    Attributes:
        tools: the true tools by name.
        slots: the slot of each argument value that the user states, by call and argument.
        failing: places of the calls that the real tools refused.
    """

    given: Given
    turn: int
    tools: Mapping[str, Tool]
    links: Links
    slots: Mapping[tuple[int, str], str]
    failing: frozenset[int] = frozenset()

    def __call__(self, solver: Solver, env: Known) -> str:
        """Makes the calls, and says what is to be answered."""
        episode = cast("EpisodeBackend", solver.backend).episode
        heard = _heard.setdefault(episode, {})
        for place, call in calls_of(self.given, self.turn):
            tool = self.tools[call.name]
            values = {
                param.fact: self._value(place, param.name, heard, solver)
                for param in tool.params
                if param.name in call.arguments
            }
            try:
                heard[place] = carry_out(solver, tool, env.about(**values), heard)
            except Impossible:
                if place not in self.failing:
                    raise
        if self.turn + 1 < len(self.given.asks):
            return DONE
        if self.given.check.refuse:
            raise Impossible(self.given.check.refuse)
        return right_answer(self.given, heard, [step.text for step in episode.steps])

    def _value(self, place: int, key: str, heard: ActResult, solver: Solver) -> Any:
        """An argument: from an earlier result, from the user, or as it stands."""
        if (place, key) in self.slots:
            return solver.given(self.slots[place, key])
        value = self.given.calls[place].arguments[key]
        return self._filled(self.links.get((place, key), value), heard)

    def _filled(self, value: Any, heard: ActResult) -> Any:
        """An expected argument, its references read from what was heard."""
        if isinstance(value, list):
            return [self._filled(each, heard) for each in value]
        if isinstance(value, Mapping) and not is_free(value):
            return {key: self._filled(each, heard) for key, each in value.items()}
        if not isinstance(value, str):
            return resolved(value, {})
        whole = REFERENCE.fullmatch(value)
        if whole:
            return self._heard(heard, *whole.groups())
        return REFERENCE.sub(lambda each: str(self._heard(heard, *each.groups())), value)

    def _heard(self, heard: ActResult, call: str, record: str | None, path: str) -> Any:
        """A value as it was read from an earlier result."""
        records = heard.get(int(call), [])
        place = int(record or 0)
        if place >= len(records):
            raise Impossible("not_found")
        name = self.given.calls[int(call)].name
        value = records[place].get(fact(name, tuple(path.split("."))))
        if value is None:
            raise Impossible("not_found")
        return value


def right_answer(given: Given, heard: ActResult, texts: list[str]) -> str:
    """An answer that the check accepts: a value or words of a result, or the example."""
    wanted = given.check.answer
    if not wanted:
        return DONE
    told = [said for place in reversed(heard) for record in heard[place] for said in _said(record)]
    items = (wanted,) if isinstance(wanted, str) else wanted
    found = [_told_of(item, told, texts) for item in items]
    answer = ", ".join(dict.fromkeys(found))
    return answer if all(found) and says(answer, wanted) else given.check.example


def _said(record: Any) -> Iterator[str]:
    """The values of a record as answers, at every depth: a whole record is no answer."""
    if isinstance(record, Mapping):
        for value in record.values():
            yield from _said(value)
    elif isinstance(record, list) and any(isinstance(each, list | Mapping) for each in record):
        for value in record:
            yield from _said(value)
    else:
        yield as_answer(record)


def _told_of(wanted: str, told: list[str], texts: list[str]) -> str:
    """A value, or the words of a text, that says one thing that is wanted; "" where none does."""
    for value in told:
        if says(value, wanted):
            return value
    return next((part for text in reversed(texts) if (part := passage(text, wanted))), "")


# -- what the calls say about where their values come from ---------------------------------------


@dataclass
class Origins:
    """Where the argument values of a task come from.

    Attributes:
        links: from an earlier result, as `expected_calls.Links`.
        slots: from the user, with the goal of each turn.
        free: from nowhere: the agent must make them up, so a check of them is hard to meet.
    """

    links: dict[tuple[int, str], Any] = field(default_factory=dict)
    slots: dict[tuple[int, str], str] = field(default_factory=dict)
    goals: list[dict[str, Any]] = field(default_factory=list)
    free: list[tuple[int, str, Any]] = field(default_factory=list)

    def subject(self, given: Given) -> tuple[str, ...]:
        """The arguments by which the last expected call says what it looks up."""
        if not given.calls:
            return ()
        place, arguments = len(given.calls) - 1, given.calls[-1].arguments
        closed = {key: value for key, value in arguments.items() if not is_free(value)}
        told = [
            key
            for key, value in closed.items()
            if (place, key) in self.links
            or (isinstance(value, str) and REFERENCE.search(value))
            or any(states(ask, value) for ask in given.asks)
        ]
        return tuple(told or closed)


def trace(given: Given, tools: Mapping[str, Tool], results: Mapping[int, Any]) -> Origins:
    """Finds out where the values come from, by the texts of the user and the results."""
    origins = Origins(goals=[{} for _ in given.asks])
    for place, call in enumerate(given.calls):
        params = {param.name: param for param in tools[call.name].params}
        for key, value in call.arguments.items():
            spot = (place, key)
            if isinstance(value, str) and REFERENCE.search(value):
                continue
            if isinstance(value, list | Mapping) and not is_free(value):
                linked = _linked(value, given, call.turn, place, results)
                if linked != value:
                    origins.links[spot] = linked
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                continue
            turn = next((n for n in range(call.turn + 1) if states(given.asks[n], value)), None)
            if turn == call.turn:
                origins.slots[spot] = _slot(origins.goals[turn], call.name, key, value)
            elif turn is None and not _is_choice(value, params[key].schema):
                reference = _find(value, results, place)
                if reference:
                    origins.links[spot] = reference
                else:
                    origins.free.append((place, key, value))
    return origins


def _linked(value: Any, given: Given, turn: int, place: int, results: Mapping[int, Any]) -> Any:
    """A list or an object with references for what only an earlier result states."""
    if isinstance(value, list):
        return [_linked(each, given, turn, place, results) for each in value]
    if isinstance(value, Mapping):
        return {k: _linked(each, given, turn, place, results) for k, each in value.items()}
    told = any(states(ask, value) for ask in given.asks[: turn + 1])
    if told or isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    if isinstance(value, str) and REFERENCE.search(value):
        return value
    return _find(value, results, place) or value


def _slot(goal: dict[str, Any], tool: str, key: str, value: Any) -> str:
    """The slot of a value: one for each value, named after the argument."""
    for slot, known in goal.items():
        if known == value and type(known) is type(value):
            return slot
    name = re.sub(r"\W", "_", key)
    name = name if name not in goal else f"{re.sub(r'[^a-zA-Z0-9]', '_', tool)}_{name}"
    while name in goal:
        name += "_2"
    goal[name] = value
    return name


def _is_choice(value: Any, schema: Mapping[str, Any]) -> bool:
    return value in schema.get("enum", ()) or value in (schema.get("const"), schema.get("default"))


def _find(value: Any, results: Mapping[int, Any], before: int) -> str:
    """The reference to the first earlier result that has this value; "" for none."""
    for call in range(before):
        for record, path, other in _values(results.get(call)):
            if other == value and type(other) is type(value):
                place = "" if record is None else f"[{record}]"
                found = "{{" + f"calls[{call}]{place}.{'.'.join(path)}" + "}}"
                if REFERENCE.fullmatch(found) and not any("." in key for key in path):
                    return found  # else it has a key that no reference can name
    return ""


def _values(data: Any) -> Iterator[tuple[int | None, tuple[str, ...], Any]]:
    records = data if isinstance(data, list) else [data]
    for number, record in enumerate(records):
        if isinstance(record, dict):
            for path, value in leaves(record):
                yield (number if isinstance(data, list) else None), path, value


def states(text: str, value: Any) -> bool:
    """Whether a user's text states a value."""
    said = str(value)
    if not said.strip():
        return False
    return re.search(rf"(?<![\w.]){re.escape(said)}(?!\w|\.\d)", text, re.IGNORECASE) is not None
