"""The good path of a task as a solution that any solver can walk through what is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, cast
from weakref import WeakKeyDictionary

from toolshift.core.solver import Impossible, Known, Solver
from toolshift.core.tool import Tool
from toolshift.episode.episode import Episode
from toolshift.episode.oracle import EpisodeBackend
from toolshift.reading.answers.by_words import as_answer, data_values, is_pattern, single_values
from toolshift.reading.answers.example import says_right
from toolshift.reading.answers.none import is_none
from toolshift.worlds.own.expected_calls import Links, calls_of, resolved
from toolshift.worlds.own.file import (
    REFERENCE,
    Call,
    Given,
    is_free,
    keys_of,
    path_of,
    value_at,
)
from toolshift.worlds.own.sources import fact
from toolshift.worlds.own.spare import (
    Reference,
    Spare,
    states,
    value_says,
    values_at,
    words_saying,
)
from toolshift.worlds.own.stand_in import ActResult, carry_out, takes

DONE = "Done."
_LONG, _MAX_COMPARED = 80, 5_000
"""Letters of a value, and values, that are compared with what no result has."""
_SIGNS = (", ", "; ", "\n")
"""What stands between the parts of an answer: the first by which it is read as all of them."""
_heard: WeakKeyDictionary[Episode, ActResult] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class ScriptedSolution:
    """Solves one turn of a task by making its expected calls, by whatever names are shown.

    Attributes:
        tools: the true tools by name.
        slots: the slot of each argument value that the user states, by call and argument.
        failing: places of the calls that the real tools refused.
        spare: what the check can do without; None where every call is made, or the walk ends.
        recites: the author's example may be said, for no result of the task says the answer. Where
            one does, an example would hide that a shift has taken the answer away.
    """

    given: Given
    turn: int
    tools: Mapping[str, Tool]
    links: Links
    slots: Mapping[tuple[int, str], str]
    failing: frozenset[int] = frozenset()
    spare: Spare | None = None
    recites: bool = True

    def __call__(self, solver: Solver, env: Known) -> str:
        """Makes the calls, and says what is to be answered."""
        episode = cast("EpisodeBackend", solver.backend).episode
        heard = _heard.setdefault(episode, {})
        skipped: dict[int, Impossible] = {}
        for place, call in calls_of(self.given, self.turn):
            try:
                values = self._values(place, call, heard, solver)
                heard[place] = carry_out(solver, self.tools[call.name], env.about(**values), heard)
            except Impossible as reason:
                if self.spare is not None and self.spare.may_skip(place):
                    skipped[place] = reason
                elif place not in self.failing:
                    raise next(iter(skipped.values()), reason) from None
        if self.turn + 1 < len(self.given.asks):
            return DONE
        if self.spare is not None and not self.spare.is_said_without(skipped, heard):
            raise next(iter(skipped.values()))  # the first is why the others failed
        if self.given.check.refuse:
            raise Impossible(self.given.check.refuse)
        said = answer_of_results(self.given, heard, [step.text for step in episode.steps])
        wanted = self.given.check.answer
        none = isinstance(wanted, str) and is_none(wanted)  # which no result has to say
        if not said and not self.recites and not none:
            raise Impossible("not_found")
        return said or self.given.check.example

    def _values(self, place: int, call: Call, heard: ActResult, solver: Solver) -> dict[str, Any]:
        """The arguments of a call, by their facts.

        One that no result says any more is left out where nothing takes it either, as the cursor of
        a list that has no pages now.
        """
        true, values = self.tools[call.name], {}
        for param in true.params:
            if param.name not in call.arguments:
                continue
            try:
                values[param.fact] = self._value(place, param.name, heard, solver)
            except Impossible:
                if takes(solver.offered(), true, param.fact):
                    raise
        return values

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
        if self.spare is not None and int(call) not in heard:
            other = self.spare.instead(self.turn, heard, call, record, path)
            if not isinstance(other, Reference):
                return other
            call, record, path = other
        records = heard.get(int(call), [])
        place = int(record or 0)
        if place >= len(records):
            raise Impossible("not_found")
        name = self.given.calls[int(call)].name
        true = None if self.spare is None else self.spare.results.get(int(call))
        if isinstance(true, list):
            true = true[place] if place < len(true) else None
        value = _below(records[place], true, name, keys_of(path))
        if value is None:
            raise Impossible("not_found")
        return value


def _below(record: Mapping[str, Any], true: Any, tool: str, keys: tuple[str | int, ...]) -> Any:
    """A value among the facts of a record, or inside of a list that is one of them."""
    for size in range(len(keys), 0, -1):
        whole = record.get(fact(tool, tuple(map(str, keys[:size]))))
        if whole is not None:
            return _inside(whole, value_at(true, keys[:size]), keys[size:])
    return None


def _inside(shown: Any, true: Any, keys: tuple[str | int, ...]) -> Any:
    """A value of a list as it is shown: in a cell as its JSON, with keys that may be renamed.

    Renamed keys stand in the order of the true ones.
    """
    for key in keys:
        if isinstance(shown, str):
            shown = _as_data(shown)
        same_keys = isinstance(shown, dict) and isinstance(true, dict) and len(shown) == len(true)
        if same_keys and key not in shown and key in true:
            shown = [*shown.values()][[*true].index(key)]
        else:
            shown = value_at(shown, (key,))
        true = value_at(true, (key,))
    return shown


def _as_data(text: str) -> Any:
    """The JSON that a text is; the text itself where it is none."""
    try:
        return json.loads(text) if text[:1] in ("[", "{") else text
    except (ValueError, RecursionError):
        return text


def answer_of_results(given: Given, heard: ActResult, texts: list[str]) -> str:
    """An answer that the check accepts: a value or words of a result; "" where none says it."""
    wanted = given.check.answer
    if not wanted:
        return DONE
    items = (wanted,) if isinstance(wanted, str) else wanted
    kind = given.check.kind
    found = list(dict.fromkeys(_told_of(item, heard, texts, kind) for item in items))
    joined = (sign.join(found) for sign in _SIGNS)
    return (
        next((text for text in joined if says_right(text, wanted, kind)), "") if all(found) else ""
    )


def unsaid(given: Given, heard: ActResult, texts: list[str]) -> list[str]:
    """Those of the things that an answer has to say which no result says."""
    wanted = given.check.answer
    items = (wanted,) if isinstance(wanted, str) else wanted
    return [item for item in items if not _told_of(item, heard, texts, given.check.kind)]


def near_values(wanted: str, heard: ActResult, texts: list[str]) -> list[str]:
    """Up to three values of some results that are written nearly like what is wanted."""
    told = dict.fromkeys(_told_values(heard, texts))
    short = [value for value in told if len(value) <= _LONG]
    return get_close_matches(wanted, short[:_MAX_COMPARED], n=3)


def _told_of(wanted: str, heard: ActResult, texts: list[str], kind: str) -> str:
    """A value, or the words of a text, that says one thing that is wanted; "" where none does."""
    for value in _told_values(heard, texts):
        if value_says(value, wanted, kind):
            return value
    if kind and is_pattern(wanted) and kind != "regex":
        return wanted if any(wanted in text for text in texts) else ""
    return next((part for text in reversed(texts) if (part := words_saying(text, wanted))), "")


def _told_values(heard: ActResult, texts: list[str]) -> Iterator[str]:
    """Every value of some results as an answer says it; the last result comes first."""
    for place in reversed(heard):
        for record in heard[place]:
            for value in record.values():
                if isinstance(value, str):  # a list in a cell of a table is a text
                    yield from data_values(value)
                yield from map(as_answer, single_values(value))
    for text in reversed(texts):
        yield from data_values(text)


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
        for record, path, other in values_at(results.get(call)):
            if other == value and type(other) is type(value):
                place = "" if record is None else f"[{record}]"
                found = "{{" + f"calls[{call}]{place}.{path_of(path)}" + "}}"
                if REFERENCE.fullmatch(found) and keys_of(path_of(path)) == path:
                    return found  # else it has a key that no reference can name
    return ""
