"""What a task can do without of its expected calls, as far as its check and the results tell.

A call that somebody has recorded may not have been needed: nothing that the check wants depends on
it, or another result has the same value. Where such a call can no longer be made, as when a release
removes the tool, the task is still solvable.

A call is needed where the check names it, where its tool is not known to read only, in a turn
before the last (what is answered there is not checked), and where a right answer is the author's
`example`, for then no result tells where it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from toolshift.core.codecs import leaves
from toolshift.core.solver import Impossible
from toolshift.core.values import as_json, as_list
from toolshift.reading.answers.by_words import as_answer, matches, passage, single_values
from toolshift.reading.answers.example import says_right
from toolshift.worlds.own.arguments import same
from toolshift.worlds.own.expected_calls import found
from toolshift.worlds.own.file import Given, keys_of, path_of
from toolshift.worlds.own.stand_in import ActResult

Path = tuple[str | int, ...]


class Reference(NamedTuple):
    """A value of a result, as `{{calls[0][2].order_id}}` names it."""

    call: str
    record: str | None
    path: str


@dataclass(frozen=True, eq=False)
class Spare:
    """What the check of a task can do without.

    Attributes:
        given: the task.
        results: what each expected call returned when the task was prepared.
        once: the arguments that it was made with.
        reads: the tools that are known to change nothing.
    """

    given: Given
    results: Mapping[int, Any]
    once: Mapping[int, Mapping[str, Any]]
    reads: frozenset[str]

    def may_skip(self, place: int) -> bool:
        """Whether nothing but the answer may depend on an expected call."""
        given, check = self.given, self.given.check
        call = given.calls[place]
        last_of_refusal = bool(check.refuse) and place == len(given.calls) - 1
        wanted = place in (check.calls or ()) or last_of_refusal
        in_last_turn = call.turn == len(given.asks) - 1
        return call.name in self.reads and in_last_turn and not wanted and None not in self._sources

    def is_said_without(self, skipped: Iterable[int], heard: ActResult) -> bool:
        """Whether the results that came say what the answer takes from those that did not.

        Another record says it where it has the same value under the same name, and beside it the
        values that the call was made with, so that it is about the same thing.
        """
        missing = set(skipped)
        lost = [s for s in self._sources if s and s[0] in missing] if missing else []
        return all(self._elsewhere(*source, heard) for source in lost)

    def instead(self, turn: int, heard: ActResult, call: str, record: str | None, path: str) -> Any:
        """Where the value of a result that did not come is found as well."""
        value = found(self.results, call, record, path)
        if value is None:
            raise Impossible("not_found")
        if any(states(ask, value) for ask in self.given.asks[: turn + 1]):
            return value
        for place in heard:
            for number, keys, other in values_at(self.results.get(place)):
                named = isinstance(value, str) or _name(keys) == _name(keys_of(path))
                plain = keys_of(path_of(keys)) == keys
                if named and plain and type(other) is type(value) and other == value:
                    record = None if number is None else str(number)
                    return Reference(str(place), record, path_of(keys))
        raise Impossible("not_found")

    @cached_property
    def _sources(self) -> tuple[tuple[int, str, Any] | None, ...]:
        """For each thing that is wanted, the last result that says it, and the key and the value.

        The key is "" where it stands in a text; None stands for what no result says.
        """
        wanted = self.given.check.answer
        items = (wanted,) if isinstance(wanted, str) else wanted
        return tuple(self._source(item) for item in items if item)

    def _source(self, item: str) -> tuple[int, str, Any] | None:
        for place in sorted(self.results, reverse=True):
            for _, path, value in values_at(self.results[place]):
                said = map(as_answer, single_values(value))
                if any(value_says(one, item, self.given.check.kind) for one in said):
                    return place, _name(path), value
        for place in sorted(self.results, reverse=True):
            if words_saying(as_json(self.results[place]), item):
                return place, "", None
        return None

    def _elsewhere(self, place: int, key: str, value: Any, heard: ActResult) -> bool:
        made = [one for one in self.once.get(place, {}).values() if isinstance(one, str | int)]
        for other in heard:
            data = self.results.get(other)
            for each in data if isinstance(data, list) else [data]:
                pairs = leaves(each) if isinstance(each, dict) else []
                has = any(path[-1] == key and same(one, value) for path, one in pairs)
                if key and has and all(any(same(one, arg) for _, one in pairs) for arg in made):
                    return True
        return False


@lru_cache(maxsize=1 << 16)
def value_says(value: str, wanted: str, kind: str = "") -> bool:
    """Whether a value says what is wanted; kept, for each rehearsal of a task asks it again."""
    return says_right(value, wanted, kind) if kind else matches(value, wanted)


@lru_cache(maxsize=1 << 8)
def words_saying(text: str, wanted: str) -> str:
    """The words of a text that say what is wanted, "" where none do; kept, as above."""
    return passage(text, wanted)


def values_at(data: Any) -> Iterator[tuple[int | None, Path, Any]]:
    """The values of a result that is a record or a list of such; of lists in it each value too."""
    records = data if isinstance(data, list) else [data]
    for number, record in enumerate(records):
        if isinstance(record, dict):
            for path, value in leaves(record):
                spot = number if isinstance(data, list) else None
                yield spot, path, value
                for inner, one in _inside(value):
                    yield spot, (*path, *inner), one


def _inside(value: Any) -> Iterator[tuple[Path, Any]]:
    """What lies inside of a list, at every depth."""
    if isinstance(value, dict):
        for keys, one in leaves(value):
            yield keys, one
            yield from (((*keys, *inner), each) for inner, each in _inside(one))
    for place, one in enumerate(as_list(value)):
        if not isinstance(one, dict):
            yield (place,), one
        yield from (((place, *inner), each) for inner, each in _inside(one))


def _name(keys: Path) -> str:
    """The last key of a path, without places of lists."""
    return next((key for key in reversed(keys) if isinstance(key, str)), "")


def states(text: str, value: Any) -> bool:
    """Whether a user's text states a value."""
    said = str(value)
    if not said.strip():
        return False
    return re.search(rf"(?<![\w.]){re.escape(said)}(?!\w|\.\d)", text, re.IGNORECASE) is not None
