"""Drift as typed events along the four dimensions, with their severities.

found = drift_events(lock, tools, calls)
found.events, found.broken, found.signs, found.worst
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from toolshift.drift.calls import BrokenCall, RecordedCall, broken_calls
from toolshift.drift.changes import ToolChange, worst_severity
from toolshift.drift.lock import Drift, Lock, verify
from toolshift.drift.other_locks import HashLock
from toolshift.drift.poisoning import Sign, signs_in
from toolshift.drift.schemas import SEVERITIES, Severity
from toolshift.interop.request import Request
from toolshift.shifts.release.mapping import Answers

INSTRUCTIONS = "instructions"
"""The kind of an event for a text that instructs the model."""
HASH_CHANGED = "hash_changed"
"""The kind of an event for a part whose hash changed, with no further detail."""


class DriftEvent(msgspec.Struct, frozen=True):
    """One thing that drifted.

    Attributes:
        kind: one of `changes.KINDS`, or "instructions".
        tool: as it was called, or as it is called where it is new.
        dimension: query, action, observation or domain.
        severity: harmless, maybe or breaking.
        sentence: the event in words.
        calls: recorded calls of this tool; None where no calls were given.
        change: the change; None for "instructions".
        sign: the sign, for "instructions".
    """

    kind: str
    tool: str
    dimension: str
    severity: Severity
    sentence: str
    calls: int | None = None
    change: ToolChange | None = None
    sign: Sign | None = None


class DriftReport(msgspec.Struct, frozen=True):
    """The comparison of a list of tools with its lock.

    Attributes:
        lock: what was locked.
        source: what it was compared with.
        events: what drifted; none where nothing did.
        broken: by old tool a call that breaks: one that was recorded, else one that was made from
            the old schema.
        calls: how many recorded calls were looked at; None where none were given.
        breaks: by old tool, how many recorded calls of it break.
        elsewhere: how many recorded calls are of tools that the lock does not hold; nothing can be
            said of them.
    """

    lock: str
    source: str
    events: tuple[DriftEvent, ...]
    broken: dict[str, BrokenCall]
    calls: int | None = None
    breaks: dict[str, int] = {}
    elsewhere: int = 0

    @property
    def worst(self) -> Severity | None:
        """The worst severity; None where nothing drifted."""
        severities = {event.severity for event in self.events}
        return next((one for one in reversed(SEVERITIES) if one in severities), None)

    @property
    def instructs(self) -> bool:
        """Whether a new text instructs the model."""
        return bool(self.warnings)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each sign that a new text instructs the model."""
        return tuple(event.sentence for event in self.events if event.kind == INSTRUCTIONS)

    @property
    def breaks_calls(self) -> bool:
        """Whether a recorded call breaks."""
        return any(call.recorded for call in self.broken.values())

    @property
    def changes(self) -> tuple[ToolChange, ...]:
        """The changes of the tools."""
        return tuple(event.change for event in self.events if event.change is not None)


def drift_report(
    lock: Lock,
    tools: Sequence[Mapping[str, Any]],
    source: str = "",
    calls: Sequence[RecordedCall] | None = None,
    answers: Answers | None = None,
    requests: Mapping[str, Request] | None = None,
) -> DriftReport:
    """Compares a list of tools, and how they are requested, with a lock; see `lock.verify`."""
    tools = lock.seen(tools) if lock.recorded else tools
    drift = verify(lock, tools, calls or (), answers, requests)
    events = (*_instructing(lock, tools, drift), *_events(drift, calls))
    recorded = None if calls is None else len(calls)
    breaks: Counter[str] = Counter()
    for refused in broken_calls(calls or (), lock.documents, tools) if events else ():
        breaks[refused.call.tool] += refused.times
    held = {document["name"] for document in lock.documents}
    elsewhere = sum(call.tool not in held for call in calls or ())
    examples = drift.counter_examples
    return DriftReport(lock.origin, source, events, examples, recorded, dict(breaks), elsewhere)


def hash_report(
    lock: HashLock, tools: Sequence[Mapping[str, Any]], source: str = ""
) -> DriftReport:
    """Compares a list of tools with a lock that holds only hashes."""
    now = [str(tool.get("name")) for tool in tools]
    events = [
        *(_came_or_went("tool_removed", name) for name in lock.hashes if name not in now),
        *(_came_or_went("tool_added", name) for name in now if name not in lock.hashes),
    ]
    for name, parts in lock.moved(tools).items():
        sentence = (
            f"{name}: something changed in {', '.join(parts)}; the lock holds only hashes of it"
        )
        results = parts == ["outputSchema"]
        dimension = "observation" if results else "action"
        events.append(DriftEvent(HASH_CHANGED, name, dimension, "maybe", sentence))
    return DriftReport(lock.origin, source, tuple(events), {})


def _came_or_went(kind: str, name: str) -> DriftEvent:
    added = kind == "tool_added"
    outcome = "a tool that was not there" if added else "a tool is gone, or has another name"
    severity: Severity = "harmless" if added else "breaking"
    return DriftEvent(kind, name, "action", severity, f"{name}: {outcome}")


def _events(drift: Drift, calls: Sequence[RecordedCall] | None) -> Iterable[DriftEvent]:
    made = Counter(call.tool for call in calls or ())
    for change in drift.changes:
        name = change.old or change.new
        known = None if calls is None else made[name]
        yield DriftEvent(
            change.kind,
            name,
            change.dimension,
            change.severity,
            change.sentence,
            known,
            change,
        )


def _instructing(
    lock: Lock, tools: Sequence[Mapping[str, Any]], drift: Drift
) -> Iterable[DriftEvent]:
    """New texts that instruct the model, tool by tool."""
    if not worst_severity(drift.changes):
        return
    for name, signs in signs_in(tools, lock.documents).items():
        for sign in signs:
            sentence = f"{name}: a new text may instruct the model: {sign.what}: {sign.text!r}"
            yield DriftEvent(INSTRUCTIONS, name, "action", "breaking", sentence, None, None, sign)
