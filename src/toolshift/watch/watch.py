"""Watches a stream for drift while an agent works, in constant memory.

    watcher = Watcher(every=100_000, lock=read_lock(path))
    for event in events:
        for alarm in watcher.observe(event):
            print(alarm.sentence)

For each tool three rates are watched (errors, slow calls, results of a new form) and for the whole
stream refusals and the mix of what is asked, by tools, by forms of arguments and by words; see
`sequential` and `query_mix_monitor`. No event is an observation of more than six tests, and each
has a run length of six times `every`, so that all together raise at most one false alarm in
`every` events on average. What tools are on offer is compared word for word, which raises none.
What was learned of a tool that certainly has another name today is kept, under the name that it
had first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from toolshift.core.errors import UsageError
from toolshift.drift.events import DriftEvent, drift_report
from toolshift.drift.lock import Lock, lock_tools
from toolshift.drift.poisoning import signs_in
from toolshift.drift.stream import Called, Ended, Event, Shown
from toolshift.interop.tools import from_mcp
from toolshift.watch.query_mix_monitor import NEW, UNIT, MixMonitor, Moved, words_of
from toolshift.watch.sequential import (
    NO_RESULT,
    ErrorMonitor,
    FormMonitor,
    LatencyMonitor,
    RateMonitor,
    Rise,
    form_of,
)
from toolshift.watch.successors import Today

LEARN = 200
EVERY = 100_000
MAX_TOOLS = 2_000
"""Tools that are watched; the calls of others are counted."""
MAX_LISTS = 64
"""The most different lists of tools that are remembered."""
MAX_TOLD = 10_000
"""The most changes of tools that are remembered, so that each is reported once."""
_TESTS = 6
_NEW_WORDS = 0.5
"""A text is of a new kind if more than this share of its words was not seen before."""


class Alarm(msgspec.Struct, frozen=True):
    """One thing that drifted in a stream.

    Attributes:
        kind: errors_up, latency_up, result_format, refusals_up, query_mix, unknown_tool,
            instructions (in a first list), or tools_changed.
        tool: whose; "" for the whole stream.
        dimension: query, action, observation or domain.
        sentence: the alarm in words.
        at: the number of the event in the stream, from 1.
        limit: what the rate was at most when it was learned; None where no rate is meant.
        rate: the rate since the rise probably began.
        calls: how many calls, or endings, that was.
        basis: where `limit` comes from, in words; "" where no rate is meant.
        drift: the change, for tools_changed.
    """

    kind: str
    tool: str
    dimension: str
    sentence: str
    at: int
    limit: float | None = None
    rate: float | None = None
    calls: int = 0
    basis: str = ""
    drift: DriftEvent | None = None


class Watcher:
    """Watches one stream.

    Args:
        every: at most one false alarm in so many events, on average.
        learn: calls of a tool, or endings, from which a rate is learned.
        lock: the tools as they were; the first list of the stream where None.
    """

    def __init__(self, every: int = EVERY, learn: int = LEARN, lock: Lock | None = None) -> None:
        self._run_length, self._learn = float(every) * _TESTS, learn
        self._lock = lock
        self._known = _documents(lock.documents) if lock else {}
        self._lists: list[Shown] = []
        self._told: set[bytes] = set()
        self._faults: set[str] = set()
        self._named = set(self._known)
        self._tools: dict[str, tuple[ErrorMonitor, LatencyMonitor, FormMonitor]] = {}
        self._same: dict[str, Renamed] = {}
        self._refusals = RateMonitor(learn, self._run_length)
        self._mixes = {
            "tools": MixMonitor(learn, self._run_length),
            "arguments": MixMonitor(learn, self._run_length),
            "words": MixMonitor(learn, self._run_length, _NEW_WORDS),
        }
        self._unit: list[Called] = []
        self.well = False
        """Whether what comes is a baseline: a stream of when all was well."""
        self.events = self.calls = self.endings = self.unwatched = 0

    untold = 0
    """Calls of which nothing says how they went: they have no result."""

    @property
    def watching(self) -> int:
        """The number of tools that are watched after the learning phase."""
        return sum(
            any(monitor.watching for monitor in monitors) for monitors in self._tools.values()
        )

    @property
    def tools(self) -> int:
        """The number of tools that were called."""
        return len(self._tools)

    @property
    def out(self) -> list[str]:
        """The tools of which every call fails now, by the names that they have today."""
        all_ = self._tools.items()
        return [self._name_today(name) for name, (errors, *_) in all_ if errors.failing]

    @property
    def never_worked(self) -> dict[str, int]:
        """Of tools that are not out, and of which every call has failed: how many there were."""
        out = self.out
        counts = {self._name_today(n): e.never_worked for n, (e, *_) in self._tools.items()}
        return {name: count for name, count in counts.items() if count and name not in out}

    def observe(self, event: Event) -> list[Alarm]:
        """Processes one event."""
        self.events += 1
        if isinstance(event, Called):
            return self._called(event)
        if isinstance(event, Ended):
            return [*self._ended(event)]
        return list(self._shown(event))

    def tell_again(self) -> None:
        """Forgets which drift was reported, as after a baseline that nobody saw.

        What was learned is kept.
        """
        self._lists.clear()
        self._told.clear()
        self._faults.clear()
        self._named = set(self._known)

    # -- endings, and what is asked ----------------------------------------------------------------

    def _ended(self, event: Ended) -> Iterator[Alarm]:
        self.endings += 1
        rise = self._refusals.add(event.refused, event.when)
        if rise:
            yield self._rate_alarm("refusals_up", "", rise)
        yield from self._mixed(event.when)
        if event.asked and (moved := self._mixes["words"].add(words_of(event.asked), event.when)):
            yield self._mix_alarm("words", moved)

    def _mixed(self, when: float | None) -> Iterator[Alarm]:
        """Ends a unit of calls: adds their tools and the forms of their arguments."""
        unit, self._unit = self._unit, []
        if moved := self._mixes["tools"].add((self._kept_name(call.tool) for call in unit), when):
            yield self._mix_alarm("tools", moved)
        forms = [self._kept_form(call) for call in unit if call.arguments is not None]
        if forms and (moved := self._mixes["arguments"].add(forms, when)):
            yield self._mix_alarm("arguments", moved)

    def _kept_name(self, tool: str) -> str:
        """The name under which a tool is known, whatever it is called today."""
        same = self._same.get(tool)
        return tool if same is None else same.old

    def _kept_form(self, call: Called) -> tuple[str, Hashable]:
        """A tool and the form of its arguments, under the names that they had first."""
        same, given = self._same.get(call.tool), call.arguments
        if same is None:
            return call.tool, form_of(given)
        if same.params and isinstance(given, Mapping):
            given = {same.params.get(key, key): value for key, value in given.items()}
        return same.old, form_of(given)

    def _name_today(self, tool: str) -> str:
        """What a tool is called today, of what it was called first."""
        return next((new for new, same in self._same.items() if same.old == tool), tool)

    def _mix_alarm(self, what: str, moved: Moved) -> Alarm:
        tool, feature = "", moved.feature
        if feature == NEW:
            tells = {
                "tools": "a tool that was not called before",
                "arguments": "arguments of a form that was not met before",
                "words": "mostly words that were not met before",
            }[what]
        elif what == "arguments" and isinstance(feature, tuple):
            tool = self._name_today(str(feature[0]))
            tells = f"{tool} called with {_keys(feature[1])}"
        else:
            tool = self._name_today(str(feature)) if what == "tools" else ""
            tells = f"{tool} called" if tool else f"the word {feature!r}"
        if moved.absent:
            tells = f"no longer {tells}"
        sentence = (
            f"what is asked has moved: {tells} in {moved.hits} of the last {moved.count} "
            f"conversations, at most {moved.limit:.1%} {moved.basis}"
        )
        rate = moved.hits / moved.count
        return Alarm(
            "query_mix",
            tool,
            "query",
            sentence,
            self.events,
            moved.limit,
            rate,
            moved.count,
            moved.basis,
        )

    # -- calls -------------------------------------------------------------------------------------

    def _called(self, event: Called) -> list[Alarm]:
        self.calls += 1
        name, alarms = event.tool, []
        kept = self._kept_name(name)
        if self._known and name not in self._named and len(self._named) < 2 * MAX_TOOLS:
            self._named.add(name)
            sentence = f"{name}: a call of a tool that is not among those that are known"
            alarms.append(Alarm("unknown_tool", name, "action", sentence, self.events))
        monitors = self._tools.get(kept)
        if monitors is None:
            if len(self._tools) >= MAX_TOOLS:
                self.unwatched += 1
                return alarms
            how = (self._learn, self._run_length)
            monitors = (ErrorMonitor(*how), LatencyMonitor(*how), FormMonitor(*how))
            self._tools[kept] = monitors
        errors, latency, forms = monitors
        if event.ok is not None and (rise := errors.add(not event.ok, event.when, self.well)):
            alarms.append(self._rate_alarm("errors_up", name, rise))
        if event.ms is not None:
            slow = latency.slow
            if rise := latency.add(event.ms, event.when):
                alarms.append(self._rate_alarm("latency_up", name, rise, slow))
        has_result = event.result is not None
        self.untold += event.ok is None or (event.ok and not has_result)
        if event.ok is not False and (has_result or forms.met):
            rise = forms.add(form_of(event.result) if has_result else NO_RESULT)
            if rise:
                alarms.append(self._rate_alarm("result_format", name, rise))
        self._unit.append(event)
        if len(self._unit) == UNIT:
            alarms += self._mixed(event.when)
        return alarms

    def _rate_alarm(self, kind: str, tool: str, rise: Rise, slow: float = 0.0) -> Alarm:
        limit, hits, count = rise.limit, rise.hits, rise.count
        what = {
            "errors_up": "calls that fail",
            "latency_up": f"calls slower than {slow:.3g} ms",
            "result_format": "no result, or one of a form that was not met before",
            "refusals_up": "refusals",
        }[kind]
        of = "endings" if kind == "refusals_up" else "calls"
        lead = f"{tool}: " if tool else ""
        sentence = (
            f"{lead}{what}: {hits} of the last {count} {of}, at most {limit:.1%} {rise.basis}"
        )
        dimension = "domain" if kind == "refusals_up" else "observation"
        return Alarm(
            kind, tool, dimension, sentence, self.events, limit, hits / count, count, rise.basis
        )

    # -- tools -------------------------------------------------------------------------------------

    def _shown(self, event: Shown) -> Iterator[Alarm]:
        """The differences from the known tools; every change is reported once."""
        nothing_told = event.kind == "openai" or self._lock is None
        if event in self._lists or (not event.tools and nothing_told):
            return
        self._lists = [*self._lists[-MAX_LISTS + 1 :], event]
        now = _distinct(event.tools)
        if self._lock is None:
            try:
                self._lock = lock_tools(now, kind=event.kind)
            except UsageError as fault:
                yield from self._incomparable(fault)
                return
            self._known = _documents(now)
            self._named |= set(self._known)
            yield from self._instructing(now)
            return
        lock = self._lock.beside(now, event.kind)
        try:
            if event.kind == "openai":
                now = [*now, *_unshown(lock, now)]
            report = drift_report(lock, now)
        except UsageError as fault:
            yield from self._incomparable(fault)
            return
        self._named |= set(_documents(now))
        self._carry_over(lock, report.events, now)
        today = _documents(now)
        for change in report.events:
            if self._is_news(change, today):
                sentence = change.sentence
                yield Alarm(
                    "tools_changed",
                    change.tool,
                    change.dimension,
                    sentence,
                    self.events,
                    drift=change,
                )

    def _instructing(self, tools: Sequence[Mapping[str, Any]]) -> Iterator[Alarm]:
        """The signs of poisoning in a first list, with which nothing is compared."""
        for name, signs in signs_in(tools).items():
            for sign in signs:
                sentence = f"{name}: a text may instruct the model: {sign.what}: {sign.text!r}"
                yield Alarm("instructions", name, "action", sentence, self.events)

    def _is_news(self, event: DriftEvent, today: Mapping[str, Mapping[str, Any]]) -> bool:
        """Whether a change of a tool as it is defined today was not reported yet.

        The same change is met again wherever a list differs from earlier ones in other tools, as
        where each conversation shows a few of many.
        """
        tool = event.change.new if event.change else event.tool
        raw = msgspec.json.encode((event.sentence, today.get(tool)), order="sorted")
        key = blake2b(raw, digest_size=16).digest()
        if key in self._told:
            return False
        if len(self._told) >= MAX_TOLD:
            self._told.clear()
        self._told.add(key)
        return True

    def _incomparable(self, fault: UsageError) -> Iterator[Alarm]:
        """Reports once that a list has two tools of one name, or one without a name."""
        sentence = f"a list of tools cannot be compared with another: {fault}"
        if sentence not in self._faults and len(self._faults) < MAX_LISTS:
            self._faults.add(sentence)
            yield Alarm("tools_changed", "", "action", sentence, self.events)

    def _carry_over(
        self, lock: Lock, events: Sequence[DriftEvent], now: Sequence[Mapping[str, Any]]
    ) -> None:
        """Keeps what was learned about tools that certainly have another name today (`successors`).

        Not where a tool of today has the old name: calls by that name are then of two tools.
        """
        names = set(_documents(now))
        if len(self._same) > 2 * MAX_TOOLS:
            self._same.clear()
        for name in names & self._same.keys():
            del self._same[name]  # it may stand for another tool than in the list before
        renamed = {
            event.tool for event in events if event.kind in ("tool_renamed", "tool_removed")
        } - names
        if not renamed:
            return
        today = Today(from_mcp(lock.documents), now)
        for old in renamed:
            successor = today.successor(old)
            if successor is not None and successor.tool not in self._known:
                params = {new: was for was, new in successor.params.items() if new != was}
                self._same[successor.tool] = Renamed(old, params)


class Renamed(msgspec.Struct, frozen=True):
    """The first name of a tool, and the parameters of it that were renamed."""

    old: str
    params: dict[str, str]


def _keys(form: Any) -> str:
    """The keys of a form, as words."""
    keys = [str(key[0]) for key in form if isinstance(key, tuple)] if form else []
    return ", ".join(keys) or "no arguments"


def _unshown(lock: Lock, shown: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The tools that a conversation leaves out, for it may show some of those that there are.

    One that it certainly shows under another name is not left out. A tool that is not shown keeps
    its name otherwise, and so does one that others have been merged with.
    """
    names, known = _documents(shown).keys(), _documents(lock.documents)
    absent = [tool for name, tool in known.items() if name not in names]
    if names <= known.keys():
        return absent
    today = Today(from_mcp(lock.documents), shown)
    successors = {name: today.successor(name) for name in known.keys() - names}
    stands = Counter(
        successor.tool
        for successor in successors.values()
        if successor and successor.tool not in known
    )
    moved = {
        name for name, successor in successors.items() if successor and stands[successor.tool] == 1
    }
    return [tool for tool in absent if tool["name"] not in moved]


def _documents(tools: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {str(tool.get("name")): dict(tool) for tool in tools}


def _distinct(tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tools without those that stand there twice, word for word."""
    return [tool for place, tool in enumerate(tools) if tool not in tools[:place]]
