"""A world of the user's own: real or recorded tools, and the tasks of a file, as any other world.

For each task the expected calls are made once on the real tools, and kept in memory. Shifts pick
their targets, and the oracle rehearses, on what was kept; only an agent's episode meets the real
tools, which are opened afresh for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

from toolshift.core.ask import Ask
from toolshift.core.errors import UsageError
from toolshift.core.fact import Fact
from toolshift.core.importing import load
from toolshift.core.installation import extra
from toolshift.core.layer import Session
from toolshift.core.names import unknown
from toolshift.core.scene import Calls, Declared, Outcome, Scene, Task
from toolshift.core.tool import JSON, NOT_RECORDED, Result, Tool
from toolshift.core.values import as_json
from toolshift.core.world import Request, TaskKind, Truth, World
from toolshift.episode.contract import finished
from toolshift.episode.oracle import rehearse
from toolshift.interop.tools import from_mcp
from toolshift.worlds.own.expected_calls import Holds, OwnUpstream, Setting, resolved
from toolshift.worlds.own.file import Call, Given, Place, WorldFile
from toolshift.worlds.own.openapi import OpenAPISource
from toolshift.worlds.own.python import PythonSource, load_own
from toolshift.worlds.own.recording import Head, Recording, read_recording
from toolshift.worlds.own.reference_solution import (
    Origins,
    ScriptedSolution,
    answer_of_results,
    near_values,
    trace,
    unsaid,
)
from toolshift.worlds.own.sources import Opened, Source
from toolshift.worlds.own.spare import Spare
from toolshift.worlds.own.stand_in import ActResult

DRAWN = (
    "unseen_domain", "rule_update", "intent_change", "contradictory_request",
    "contradictory_request_lookalike", "no_such_entity", "no_such_entity_lookalike",
    "incomplete_information",
)  # fmt: skip
"""Shifts that draw further tasks or entities, or another domain."""


@dataclass(frozen=True)
class NoEntities:
    """The database of a world whose tasks are given."""

    seed: int = 0


@dataclass(frozen=True, eq=False)
class OwnTruth(Truth):
    """The tools of a task, as its recording answers."""

    setting: Setting
    recording: Recording

    def open(self) -> Any:
        """The recorded tools, in their first state."""
        return OwnUpstream(self.setting, None, self.recording)


@dataclass(frozen=True, eq=False)
class OwnScene(Scene):
    """A task over tools of the user's; an agent meets the real ones."""

    own_tools = True

    def open_live(self) -> Session:
        """The real tools in a first state of their own, or the recorded ones."""
        world, truth = self.world, self.truth
        assert isinstance(world, OwnWorld)
        assert isinstance(truth, OwnTruth)
        return Session(world.upstream(truth.setting), self.layers)

    def not_applicable_reason(self, shift: Declared) -> str:
        """What draws tasks or entities cannot be truthful here."""
        assert isinstance(self.world, OwnWorld)
        return self.world.not_applicable_reason(self, shift)

    def known_results(self, tool: str) -> Iterable[Any]:
        """What the expected calls of all tasks returned; nothing is called."""
        assert isinstance(self.truth, OwnTruth)
        return self.truth.recording.results(tool)

    def looks_up(self, calls: Calls) -> bool:
        """Whether one of some true calls looks up what the last expected call does."""
        truth = self.truth
        if not self.outcome.witness or not isinstance(truth, OwnTruth):
            return super().looks_up(calls)
        return any(truth.setting.looks_up(name, made) for name, made in calls)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A task that has been tried: its outcome and where its values come from."""

    given: Given
    setting: Setting
    outcome: Outcome
    origins: Origins
    walks: tuple[ScriptedSolution, ...]
    answer: str


class OwnWorld(World):
    """A file of tasks over the user's own tools.

    Args:
        file: as it was read.
        kept: the tools and answers that a run folder keeps of it, which then stand for the real
            ones: nothing is started or read; None for the tools that the file names.

    Attributes:
        file: as it was read.
        toolbox: the tools with the documents that they were read from.
        listed_writes: the tools that the file or the recording names as writing; None where neither
            says so.
        shared: what episodes share, "" where each has its own tools.
        recording: what the real tools answered so far.
        keeping: further calls, of agents too, are kept in `recording`.
    """

    traceable = False
    names_from = ("synonyms", "description")
    actions: Mapping[str, Any] = {}

    def __init__(self, file: WorldFile, kept: tuple[Head, Recording] | None = None) -> None:
        self.file = file
        self.keeping = False
        self.source: Source | None = None
        self.recording = Recording()
        written: list[str] | None = None
        if kept is None and file.source == "recording":
            kept = read_recording(file)
        if kept is not None:
            head, self.recording = kept
            listed, written = head.tools, head.writes
        else:
            self.source = find_source(file)
            listed = self.source.listed
        self.shared = self.source.shared if self.source else ""
        try:
            self.toolbox = from_mcp(listed)
        except UsageError as wrong:
            raise file.near(("tools",), str(wrong)) from None
        known = {tool.name: tool for tool in self.toolbox.tools}
        for place, name in enumerate(file.writes or ()):
            if name not in known:
                raise file.near(("writes", place), unknown("tool", name, known))
        self.listed_writes = written if file.writes is None else list(file.writes)
        self.writes = _writes(self.listed_writes, listed)
        self._known = self.listed_writes is not None
        self.name = f"{file.name}@{self._digest()}"
        self.system = file.system
        self._prepare()

    def _digest(self) -> str:
        said = [self.file.digest, self.toolbox.hash]
        said += [as_json(line) for line in self.recording.lines]
        return blake2b("\n".join(said).encode(), digest_size=4).hexdigest()

    def _prepare(self) -> None:
        tools = {tool.name: self._as_known(tool) for tool in self.toolbox.tools}
        for given in self.file.given:
            self._check_calls(given, tools)
        tried = {given.id: self._try(given, tools) for given in self.file.given}
        lists = {
            call.name
            for given in self.file.given
            for place, call in enumerate(given.calls)
            if isinstance(tried[given.id][1].get(place), list)
        }
        self.tools = tuple(
            tool.with_(many=True) if tool.name in lists else tool for tool in tools.values()
        )
        self.by_kind: dict[str, list[Prepared]] = {}
        for given in self.file.given:
            task = self._prepared(given, *tried[given.id])
            self.by_kind.setdefault(given.kind, []).append(task)
        self.counts = {kind: len(tasks) for kind, tasks in self.by_kind.items()}
        self.task_ids = {k: [task.given.id for task in ts] for k, ts in self.by_kind.items()}
        every = [task for tasks in self.by_kind.values() for task in tasks]
        self.facts = {s: as_fact(s) for t in every for goal in t.origins.goals for s in goal}
        self.kinds = {
            kind: TaskKind(kind, tuple(r for t in tasks for r in _requests(t)), never)
            for kind, tasks in self.by_kind.items()
        }

    def _as_known(self, tool: Tool) -> Tool:
        if not self._known:
            return tool
        return tool.with_(effect="write" if tool.name in self.writes else "read")

    # -- one task ------------------------------------------------------------------------------

    def _check_calls(self, given: Given, tools: Mapping[str, Tool]) -> None:
        base = given.calls_at
        for place, call in enumerate(given.calls):
            if call.name not in tools:
                raise self.file.near((*base, place, "name"), unknown("tool", call.name, tools))
            params = {param.name: param for param in tools[call.name].params}
            for key in call.arguments:
                if key not in params:
                    why = unknown(f"argument of {call.name}", key, params)
                    raise self.file.near((*base, place, "arguments", key), why)
            for param in params.values():
                if param.required and param.name not in call.arguments:
                    why = f"{call.name} needs the argument {param.name!r}"
                    raise self.file.near((*base, place), why)

    def _try(
        self, given: Given, tools: Mapping[str, Tool]
    ) -> tuple[OwnUpstream, dict[int, Any], frozenset[int]]:
        """Makes the expected calls; returns what came of them and the places that failed."""
        holds = self._holds(given)
        once: dict[int, dict[str, Any]] = {}
        setting = Setting(given, tuple(tools.values()), self.writes, {}, once, holds)
        upstream = OwnUpstream(setting, self.source.open if self.source else None, self.recording)
        results: dict[int, Any] = {}
        failing = set()
        if holds is not None and upstream.judge():
            why = "the state check holds before anything is done, so doing nothing would pass"
            raise self.file.near((*given.place, "check", "state"), why)
        for place, call in enumerate(given.calls):
            arguments = {key: resolved(v, results) for key, v in call.arguments.items()}
            spot = (*given.calls_at, place)
            for key, value in arguments.items():
                if value is None and call.arguments[key] is not None:
                    why = f"{call.arguments[key]} leads nowhere in the earlier results"
                    raise self.file.near((*spot, "arguments", key), why)
            once[place] = arguments
            result = upstream.call(call.name, arguments)
            results[place] = result.data
            if not result.ok:
                failing.add(place)
                self._allow(given, place, result)
        upstream.close()
        return upstream, results, frozenset(failing)

    def _allow(self, given: Given, place: int, result: Result) -> None:
        """Lets an expected call fail where a refusal is right, and at no other time."""
        said = result.data["error"]
        if given.check.refuse and said["code"] != NOT_RECORDED:
            return
        name = given.calls[place].name
        why = f"the expected call of {name} failed: {said['code']}: {said['message']}"
        if said["code"] == NOT_RECORDED:
            why = f"the expected call of {name} is not in the recording: record it again"
        raise self.file.near((*given.calls_at, place), why)

    def _prepared(
        self,
        given: Given,
        upstream: OwnUpstream,
        results: dict[int, Any],
        failing: frozenset[int],
    ) -> Prepared:
        self._check_end(given, upstream)
        by_name = {tool.name: tool for tool in self.tools}
        origins = trace(given, by_name, results)
        subject = origins.subject(given) if given.check.refuse else ()
        setting = replace(upstream.setting, tools=self.tools, links=origins.links, subject=subject)
        reads = frozenset(tool.name for tool in self.tools if tool.effect == "read")
        spare = Spare(given, results, setting.once, reads)
        heard = {n: [_told(r)] for n, r in results.items()}
        texts = [as_json(r) for r in results.values()]
        said = answer_of_results(given, heard, texts)
        answer = said or given.check.example
        slots, links = origins.slots, origins.links
        walks = tuple(
            ScriptedSolution(given, turn, by_name, links, slots, failing, spare, not said)
            for turn in range(len(given.asks))
        )
        if given.check.answer and not answer:
            raise self._unsaid(given, heard, texts)
        outcome = Outcome(tuple(upstream.effects))
        if given.check.refuse:
            called = tuple(dict.fromkeys(call.name for call in given.calls[-1:]))
            outcome = Outcome((), tuple(upstream.effects), given.check.refuse, witness=called)
        return Prepared(given, setting, outcome, origins, walks, answer)

    def _unsaid(self, given: Given, heard: ActResult, texts: list[str]) -> UsageError:
        """The error for an answer that no result of the expected calls has."""
        wanted = given.check.answer
        items = (wanted,) if isinstance(wanted, str) else wanted
        place: Place = (*given.place, "check", "answer")
        ways = (
            "Mend it, add the call whose result says it to `calls`, or give under `example` a "
            "whole answer that is right, if none of them has it"
        )
        missing = unsaid(given, heard, texts)
        if not missing:
            told = " and ".join(map(repr, items))
            why = f"the results say {told}, but an answer with these is not read as saying each: "
            return self.file.near(place, why + "give under `example` a whole answer that is right")
        near = near_values(missing[0], heard, texts)
        offer = f" (nearest: {', '.join(map(repr, near))})" if near else ""
        if not isinstance(wanted, str):
            place = (*place, items.index(missing[0]))
        said = " or ".join(map(repr, missing))
        why = f"no result of the expected calls contains {said}{offer}"
        return self.file.near(place, f"{why}, as a value, an item of a list or words. {ways}")

    def _check_end(self, given: Given, upstream: OwnUpstream) -> None:
        if given.check.calls is not None and not upstream.ledger.complete:
            why = "the expected calls themselves do not meet this check"
            raise self.file.near((*given.place, "check", "calls"), why)
        state = given.check.state
        if state and not any(effect[-1] == state for effect in upstream.effects):
            why = f"{state} does not hold after the expected calls"
            if not self.source:
                why = "the recording does not say what it found: record it again"
            raise self.file.near((*given.place, "check", "state"), why)

    def _holds(self, given: Given) -> Holds | None:
        if not given.check.state or self.source is None:
            return None
        place = (*given.place, "check", "state")
        function = load_own(given.check.state, self.file, place)

        def holds(state: Any) -> bool:
            try:
                return bool(finished(function(state)))
            except (Exception, SystemExit) as fault:
                why = f"{given.check.state} raised {type(fault).__name__}: {fault}"
                raise self.file.near(place, why) from fault

        return holds

    # -- as a world ----------------------------------------------------------------------------

    def upstream(self, setting: Setting) -> OwnUpstream:
        """What an agent's episode stands on."""
        opening: Callable[[], Opened] | None = self.source.open if self.source else None
        kept = self.recording if self.keeping or opening is None else None
        return OwnUpstream(setting, opening, kept)

    def scene(self, kind: str, index: int, seed: int, pool: str, size: int) -> Scene:
        """The clean scene of a task of the file; seed and pool only choose what shifts draw."""
        tasks = self.by_kind[kind]
        if index >= len(tasks):
            raise UsageError(f"world {self.name} has {len(tasks)} tasks of kind {kind}")
        task = tasks[index]
        truth = OwnTruth(self.tools, {}, NoEntities(seed), task.setting, self.recording)
        lineage = f"{self.name}/{kind}/{pool}/{seed}/{size}/{index}"
        content = JSON.encode([lineage, task.given.id, self.toolbox.hash, task.outcome.effects])
        identity = blake2b(content, digest_size=6).hexdigest()
        named = Task(self.name, kind, pool, seed, size, index, lineage, identity)
        return OwnScene(named, self, truth, _asks(task), task.outcome, self.system, rehearse)

    def not_applicable_reason(self, scene: Scene, shift: Declared) -> str:
        """What draws tasks or entities cannot be truthful here."""
        truth = scene.truth
        calls = truth.setting.given.calls if isinstance(truth, OwnTruth) else ()
        return not_truthful(scene, shift, calls)

    @cached_property
    def head(self) -> Head:
        """The first line of a recording of this world."""
        written = sorted(self.writes) if self._known or self.writes else None
        return Head(1, [dict(s.raw) for s in self.toolbox.sources.values()], written)


def not_truthful(scene: Scene, shift: Declared, expected: Iterable[Call]) -> str:
    """Why a shift cannot be truthful where tasks are given; "" where it may be."""
    if shift.base in DRAWN:
        return "it draws other tasks or entities, and the tasks of this world are given"
    if shift.level > 1 and not scene.calls:
        return "the task makes no call"
    silent = [call.name for call in expected if not scene.truth.by_name[call.name].returns]
    if shift.base == "conflicting_sources" and silent:
        return f"{silent[0]} does not declare what its results hold"
    keeps = shift.preserves == "end_state" or shift.file  # a change of tools says itself
    if scene.clean.outcome.refusal and not keeps:
        return "the right end is a refusal already"
    return ""


def never(db: Any, rng: Any) -> None:
    """Draws nothing: the tasks are given."""


def _writes(named: Any, listed: list[dict[str, Any]]) -> frozenset[str]:
    """The tools known to change something: those named, or those that say so themselves."""
    if named is not None:
        return frozenset(named)
    return frozenset(
        str(raw.get("name"))
        for raw in listed
        if (raw.get("annotations") or {}).get("readOnlyHint") is False
    )


def _asks(task: Prepared) -> tuple[Ask, ...]:
    last = len(task.given.asks) - 1
    pattern = task.given.check.answer
    return tuple(
        Ask(
            text,
            task.origins.goals[turn],
            task.walks[turn],
            task.answer if turn == last and pattern else None,
            pattern=pattern if turn == last else "",
            kind=task.given.check.kind if turn == last else "",
        )
        for turn, text in enumerate(task.given.asks)
    )


def _requests(task: Prepared) -> list[Request]:
    """The first turn with its paraphrases; a task without any has no other wording."""
    said = task.given.paraphrases
    if not said:
        return []
    bank = {"train": (task.given.asks[0],), "dev": said, "test": said}
    return [Request(bank, task.walks[0])]


def _told(data: Any) -> dict[str, Any]:
    records = data if isinstance(data, list) else [data]
    found: dict[str, Any] = {}
    for number, record in enumerate(records):
        if isinstance(record, dict):
            found |= {f"{number}.{key}": value for key, value in record.items()}
    return found


def as_fact(slot: str) -> Fact:
    """The fact that a slot named after an argument holds, in the words of its name."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|\d+|[A-Z]+", slot)] or [slot]
    label = " ".join(words)
    first, last = words[0], words[-1]
    sure = (label, f"{last} ... {first}", f"{first}'s {last}") if len(words) > 1 else ()
    return Fact(label, tuple(words), sure)


def find_source(file: WorldFile) -> Source:
    """The source that a file names."""
    if file.source == "python":
        return PythonSource(file)
    if file.source == "openapi":
        return OpenAPISource(file)
    try:
        make: Callable[[WorldFile], Source] = load("toolshift.worlds.own.mcp:McpSource")
    except ImportError:
        why = f'MCP servers need the extra "connect": {extra("connect")}'
        raise file.near(("tools", file.source), why) from None
    return make(file)
