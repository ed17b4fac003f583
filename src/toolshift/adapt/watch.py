"""Watching a stream: what drifts while an agent works, in constant memory.

    watcher = Watcher(every=100_000, lock=read_lock(path))
    for event in events:
        for alarm in watcher.observe(event):
            print(alarm.sentence)

For each tool three rates are watched (errors, slow calls, results of a new form) and for the whole
stream one (refusals); see `sequential`. Each test has a run length of four times `every`, so that
all together raise at most one false alarm in `every` events on average. What tools are on offer is
compared word for word, which raises none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from toolshift.adapt.events import DriftEvent, drift_report
from toolshift.adapt.lock import Lock, lock_tools
from toolshift.adapt.sequential import FormMonitor, LatencyMonitor, RateMonitor, Rise, form_of
from toolshift.adapt.stream import Called, Ended, Event, Shown
from toolshift.core.errors import UsageError

LEARN = 200
EVERY = 100_000
MAX_TOOLS = 2_000
"""Tools that are watched; the calls of others are counted."""
MAX_LISTS = 64
"""Different lists of tools that are told from one another."""
_TESTS = 4


class Alarm(msgspec.Struct, frozen=True):
    """One thing that drifted in a stream.

    Attributes:
        kind: errors_up, latency_up, result_format, refusals_up, unknown_tool, or tools_changed.
        tool: whose; "" for the whole stream.
        dimension: query, action, observation or domain.
        sentence: the alarm in words.
        at: the number of the event in the stream, from 1.
        limit: what the rate was at most when it was learned; None where no rate is meant.
        rate: the rate since the rise probably began.
        calls: how many calls, or endings, that was.
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
        self._named = set(self._known)
        self._tools: dict[str, tuple[RateMonitor, LatencyMonitor, FormMonitor]] = {}
        self._refusals = RateMonitor(learn, self._run_length)
        self.events = self.calls = self.endings = self.unwatched = 0

    @property
    def watching(self) -> int:
        """Of how many tools something is watched, and no longer only learned."""
        return sum(any(one.watching for one in each) for each in self._tools.values())

    @property
    def tools(self) -> int:
        """Of how many tools there were calls."""
        return len(self._tools)

    def observe(self, event: Event) -> list[Alarm]:
        """Takes one event.

        Args:
            event: of the stream.

        Returns:
            What has drifted; mostly nothing.
        """
        self.events += 1
        if isinstance(event, Called):
            return self._called(event)
        if isinstance(event, Ended):
            self.endings += 1
            rise = self._refusals.add(event.refused)
            return [self._rate_alarm("refusals_up", "", rise)] if rise else []
        return list(self._shown(event))

    # -- calls -------------------------------------------------------------------------------------

    def _called(self, event: Called) -> list[Alarm]:
        self.calls += 1
        name, found = event.tool, []
        monitors = self._tools.get(name)
        if monitors is None:
            if self._known and name not in self._named and len(self._named) < 2 * MAX_TOOLS:
                self._named.add(name)
                said = f"{name}: a call of a tool that is not among those that are known"
                found.append(Alarm("unknown_tool", name, "action", said, self.events))
            if len(self._tools) >= MAX_TOOLS:
                self.unwatched += 1
                return found
            how = (self._learn, self._run_length)
            monitors = (RateMonitor(*how), LatencyMonitor(*how), FormMonitor(*how))
            self._tools[name] = monitors
        errors, latency, forms = monitors
        if event.ok is not None and (rise := errors.add(not event.ok)):
            found.append(self._rate_alarm("errors_up", name, rise))
        if event.ms is not None:
            slow = latency.slow
            if rise := latency.add(event.ms):
                found.append(self._rate_alarm("latency_up", name, rise, slow))
        told = event.ok is not False and event.result is not None
        if told and (rise := forms.add(form_of(event.result))):
            found.append(self._rate_alarm("result_format", name, rise))
        return found

    def _rate_alarm(self, kind: str, tool: str, rise: Rise, slow: float = 0.0) -> Alarm:
        limit, hits, count = rise
        what = {
            "errors_up": "calls that fail",
            "latency_up": f"calls slower than {slow:.3g} ms",
            "result_format": "results of a form that was not met before",
            "refusals_up": "refusals",
        }[kind]
        of = "endings" if kind == "refusals_up" else "calls"
        lead = f"{tool}: " if tool else ""
        said = f"{lead}{what}: {hits} of the last {count} {of}, at most {limit:.1%} when learned"
        dimension = "domain" if kind == "refusals_up" else "observation"
        return Alarm(kind, tool, dimension, said, self.events, limit, hits / count, count)

    # -- tools -------------------------------------------------------------------------------------

    def _shown(self, event: Shown) -> Iterator[Alarm]:
        """What differs from the tools that are known; every list of tools is told of once."""
        if event in self._lists or not event.tools:
            return
        if self._lock is None:
            self._lock = _locked(event.tools)
            if self._lock is not None:
                self._known = _documents(event.tools)
                self._named |= set(self._known)
                self._lists = [event]
            return
        self._lists = [*self._lists[-MAX_LISTS + 1 :], event]
        now = event.tools
        if event.kind == "openai":  # a conversation may show some of the tools
            shown = _documents(event.tools)
            now = [*event.tools, *(one for name, one in self._known.items() if name not in shown)]
        try:
            report = drift_report(self._lock, now)
        except UsageError:
            return  # no list that anyone could compare: a name that stands twice, or none
        self._named |= set(_documents(now))
        for each in report.events:
            yield Alarm(
                "tools_changed", each.tool, each.dimension, each.sentence, self.events, drift=each
            )


def _documents(tools: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {str(tool.get("name")): dict(tool) for tool in tools}


def _locked(tools: Sequence[Mapping[str, Any]]) -> Lock | None:
    try:
        return lock_tools(tools)
    except UsageError:
        return None
