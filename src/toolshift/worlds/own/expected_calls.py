"""The true calls of one episode against those expected of its task; and the upstream it meets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toolshift.core.errors import ConnectionDropped
from toolshift.core.tool import NOT_RECORDED, Result, Tool, error
from toolshift.reading.text import fold
from toolshift.worlds.own.arguments import plain_value, same, without_defaults
from toolshift.worlds.own.file import (
    ANY,
    EXAMPLE,
    LIKE,
    REFERENCE,
    Call,
    Given,
    is_free,
    keys_of,
    value_at,
)
from toolshift.worlds.own.recording import Recording, Write, as_write
from toolshift.worlds.own.sources import Opened

CALLS, STATE = "expected calls", "expected state"
Links = Mapping[tuple[int, str], Any]
"""For an argument of a call, the same with references to the earlier results that hold it."""
Holds = Callable[[Any], bool]


def resolved(value: Any, results: Mapping[int, Any]) -> Any:
    """An expected argument with its references filled in, at every depth.

    None where one of them leads nowhere.
    """
    if is_free(value):
        return value[EXAMPLE] if LIKE in value else value[ANY]
    if isinstance(value, Mapping | list):
        inner = value.values() if isinstance(value, Mapping) else value
        made = [resolved(each, results) for each in inner]
        if any(new is None and old is not None for old, new in zip(inner, made, strict=True)):
            return None
        return dict(zip(value, made, strict=True)) if isinstance(value, Mapping) else made
    if not isinstance(value, str):
        return value
    whole = REFERENCE.fullmatch(value)
    if whole:
        return found(results, *whole.groups())
    if any(found(results, *each) is None for each in REFERENCE.findall(value)):
        return None
    return REFERENCE.sub(lambda each: str(found(results, *each.groups())), value)


def found(results: Mapping[int, Any], call: str, record: str | None, path: str) -> Any:
    """A value of an earlier result."""
    value = results.get(int(call))
    if isinstance(value, list):
        place = int(record or 0)
        value = value[place] if place < len(value) else None
    return value_at(value, keys_of(path))


def agrees(expected: Any, value: Any, results: Mapping[int, Any]) -> bool:
    """Whether an argument is as expected, at every depth."""
    if is_free(expected):
        return LIKE not in expected or re.search(expected[LIKE], str(value)) is not None
    if isinstance(expected, Mapping) and isinstance(value, Mapping):
        return expected.keys() == value.keys() and all(
            agrees(expected[key], value[key], results) for key in expected
        )
    if isinstance(expected, list) and isinstance(value, list):
        return len(expected) == len(value) and all(
            agrees(one, other, results) for one, other in zip(expected, value, strict=True)
        )
    wanted = resolved(expected, results)
    if wanted is None and expected is not None:
        return False  # the result that it refers to is not there yet, or has no such value
    return same(wanted, value)


class Ledger:
    """Which of the expected calls have been made, with their results."""

    def __init__(
        self,
        given: Given,
        tools: Mapping[str, Tool],
        links: Links,
        once: Mapping[int, Mapping[str, Any]],
    ) -> None:
        self.given, self.tools, self.links, self.once = given, tools, links, once
        self.results: dict[int, Any] = {}
        self.order: list[int] = []

    def note(self, name: str, arguments: Mapping[str, Any], result: Result) -> int | None:
        """Takes a call down; returns the place of the expected call that it is, if any."""
        place = self.place_of(name, arguments)
        if place is not None and (result.ok or self.given.check.refuse):
            self.results[place] = result.data
            self.order.append(place)
        return place

    def place_of(self, name: str, arguments: Mapping[str, Any]) -> int | None:
        """The place of the expected call, not made yet, that a call is; None where it is none."""
        for place, call in enumerate(self.given.calls):
            if place not in self.results and call.name == name and self._agrees(place, arguments):
                return place
        return None

    def _agrees(self, place: int, arguments: Mapping[str, Any]) -> bool:
        expected, once = self.given.calls[place].arguments, self.once.get(place, {})
        tool = self.tools[self.given.calls[place].name]
        schemas = {param.name: param.schema for param in tool.params}
        given = without_defaults(tool, arguments)
        if not set(given) <= set(expected):
            return False
        for key, value in expected.items():
            left_open = is_free(value) and LIKE not in value
            if key not in given and not left_open and "default" not in schemas.get(key, {}):
                return False
            said = given.get(key, schemas.get(key, {}).get("default"))
            wanted = value if is_free(value) else plain_value(value, schemas.get(key))
            linked = self.links.get((place, key), wanted)
            as_once = not is_free(value) and key in once and same(said, once[key])
            if not as_once and not agrees(linked, said, self.results):
                return False
        return True

    @property
    def complete(self) -> bool:
        """Whether the calls that the check wants have been made."""
        wanted = self.given.check.calls or ()
        if not self.given.check.ordered:
            return set(wanted) <= set(self.order)
        return [place for place in self.order if place in wanted] == sorted(wanted)


@dataclass(frozen=True, eq=False)
class Setting:
    """What an episode of a task needs to know of its world.

    Attributes:
        tools: as they truly are.
        writes: the tools known to change something.
        links: see `Links`.
        once: the arguments of each expected call as they were made when the task was prepared.
        subject: what the last expected call looks up: those of its arguments that the user or an
            earlier result states, or else all that are not left open.
        holds: the state check; None where the task has none.
    """

    given: Given
    tools: tuple[Tool, ...]
    writes: frozenset[str]
    links: Links
    once: Mapping[int, Mapping[str, Any]]
    holds: Holds | None
    subject: tuple[str, ...] = ()

    def looks_up(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Whether a true call looks up the very thing that the last expected call does."""
        place = len(self.given.calls) - 1
        wanted = self.once.get(place, {})
        return self.given.calls[place].name == name and all(
            key in arguments and same(_folded(wanted[key]), _folded(arguments[key]))
            for key in self.subject
        )


def _folded(value: Any) -> Any:
    return fold(value).casefold() if isinstance(value, str) else value


class OwnUpstream:
    """Real or recorded tools in one episode: an upstream that grades as it goes.

    Its `effects` are the writes, in terms of the expected calls where they are such; at the end
    there come whether the calls that are wanted were made, and whether the state is as wanted.

    Args:
        setting: of the task.
        open: opens the real tools when the first call comes; None replays `recording`.
        recording: where answers are looked up, or kept.
    """

    def __init__(
        self, setting: Setting, open: Callable[[], Opened] | None, recording: Recording | None
    ) -> None:
        self.setting, self.recording = setting, recording
        self.effects: list[tuple[Any, ...]] = []
        self.by_name = {tool.name: tool for tool in setting.tools}
        self.ledger = Ledger(setting.given, self.by_name, setting.links, setting.once)
        self.after: tuple[Write, ...] = ()
        self._open, self._opened = open, None if open is None else _Later(open)

    def tools(self) -> tuple[Tool, ...]:
        """The tools as they truly are."""
        return self.setting.tools

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        """Carries out a true call."""
        if name not in self.by_name:
            return error("unknown_tool", f"There is no tool named {name}.")
        plain = without_defaults(self.by_name[name], arguments)
        if self._opened is None:
            plain, result = self._recorded(name, arguments, plain)
        else:
            result = self._opened.get().call(name, arguments)
            if self.recording is not None:
                self.recording.keep(self.setting.given.id, self.after, name, plain, result)
        place = self.ledger.note(name, arguments, result)
        if result.ok and name in self.setting.writes:
            made = as_write(name, plain)
            self.effects.append(made if place is None else (name, f"expected call {place + 1}"))
            self.after = (*self.after, made)
            self.judge()
        return result

    def _recorded(
        self, name: str, arguments: Mapping[str, Any], plain: dict[str, Any]
    ) -> tuple[dict[str, Any], Result]:
        """A call as it was recorded, and its answer.

        Where only arguments differ that the task leaves open, the expected call stands for it.
        """
        assert self.recording
        task = self.setting.given.id
        result = self.recording.answer(task, self.after, name, plain)
        place = self.ledger.place_of(name, arguments)
        if place is None or result.ok or result.data["error"]["code"] != NOT_RECORDED:
            return plain, result
        expected = without_defaults(self.by_name[name], self.setting.once[place])
        return expected, self.recording.answer(task, self.after, name, expected)

    def close(self) -> None:
        """Ends the episode: judges the calls and the state, and lets the tools go."""
        check = self.setting.given.check
        if check.calls is not None and self.ledger.complete:
            self.effects.append((CALLS,))
        try:
            verdict = self.judge() if check.state else False
        except ConnectionDropped:  # what the state is can no longer be known
            verdict = None
        if verdict is None:
            self.effects.append((NOT_RECORDED,))
        elif verdict:
            self.effects.append((STATE, check.state))
        if self._opened is not None:
            self._opened.close()

    def judge(self) -> bool | None:
        """What the state check says now; None where a recording cannot tell."""
        given, holds = self.setting.given, self.setting.holds
        if not given.check.state:
            return None
        if self._opened is None:
            assert self.recording
            return self.recording.verdicts.get((given.id, self.after))
        assert holds
        verdict = holds(self._opened.get().state)
        if self.recording is not None:
            self.recording.judge(given.id, self.after, verdict)
        return verdict


class _Later:
    """Tools that are opened when they are first needed."""

    def __init__(self, open: Callable[[], Opened]) -> None:
        self._open = open
        self._opened: Opened | None = None

    def get(self) -> Opened:
        self._opened = self._opened or self._open()
        return self._opened

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def calls_of(given: Given, turn: int) -> list[tuple[int, Call]]:
    """The expected calls of a turn, with their places."""
    return [(place, call) for place, call in enumerate(given.calls) if call.turn == turn]
