"""Who is on the page: every agent of every run, with its report and its times."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles

import msgspec

from toolshift.core.tool import BROKEN_SHIFT
from toolshift.measure.metrics import tier_of
from toolshift.measure.report import AgentReport, Report
from toolshift.measure.scored import is_empty, unread_calls
from toolshift.report.figures import shown
from toolshift.report.words import marks_of
from toolshift.runs.cell import Cell
from toolshift.runs.plan import is_placebo
from toolshift.runs.run_folder import Record, RunFolder


class Kept(RunFolder):
    """A run whose episodes are in memory without their steps, to be read many times."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__(folder.path, folder.manifest, folder.plan)
        self.folder, self.cells, self.own = folder, folder.cells, folder.own
        self.kept = [_without_steps(record) for record in folder.records()]

    def records(self) -> Iterator[Record]:
        """The finished episodes."""
        return iter(self.kept)

    def some(self, episodes: Collection[str]) -> Iterator[Record]:
        """The finished episodes of these names with their steps, from the disk."""
        return self.folder.some(episodes)

    def timings(self) -> dict[str, float]:
        """The seconds of each episode."""
        return self.folder.timings()


def _without_steps(record: Record) -> Record:
    """Steps stay only where a report says something of them; equal texts are kept once."""
    said = record.end == "crashed" or record.grade.cause == BROKEN_SHIFT
    said |= any(step.judge or is_empty(step) for step in record.steps)
    said |= unread_calls(record) > 0
    return msgspec.structs.replace(
        record,
        agent=sys.intern(record.agent),
        cell=sys.intern(record.cell),
        steps=record.steps if said else (),
    )


@dataclass(frozen=True)
class Duration:
    """Seconds of the episodes of one tier."""

    episodes: int
    median: float
    slow: float
    """The ninth decile."""


@dataclass(frozen=True)
class Subject:
    """One agent of one run.

    Attributes:
        at: where its report stands, as a JSON pointer: /RUN/agents/NUMBER.
        key: the same as the id of an element.
        label: its name, with its run where the page has several.
        times: by tier, and "clean".
    """

    run: int
    at: str
    key: str
    name: str
    label: str
    report: AgentReport
    times: dict[str, Duration] = field(default_factory=dict)


def subjects_of(folders: Sequence[Kept], reports: Sequence[Report]) -> list[Subject]:
    """Every agent of every run, in the order of the runs."""
    found = []
    for run, (folder, report) in enumerate(zip(folders, reports, strict=True)):
        times = durations(folder)
        for place, each in enumerate(report.agents):
            name = shown(each.name, 80)
            more = f" ({run_name(folder)})" if len(folders) > 1 else ""
            marks = f" [{shown(marks_of(each), 80)}]" if marks_of(each) else ""
            found.append(
                Subject(
                    run,
                    f"/{run}/agents/{place}",
                    f"r{run}a{place}",
                    each.name,
                    f"{name}{marks}{more}",
                    each,
                    times.get(each.name, {}),
                )
            )
    return found


def run_name(folder: RunFolder) -> str:
    """What a run is called on the page: its folder's name, never a path."""
    return shown(folder.path.resolve().name, 60)


def durations(folder: RunFolder) -> dict[str, dict[str, Duration]]:
    """How long episodes took, by agent and tier; empty where the times are not there."""
    took = folder.timings()
    stages = {name: _tier(cell) for name, cell in folder.cells.items()}
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in folder.records():
        if record.episode in took and record.cell in stages:
            found[record.agent][stages[record.cell]].append(took[record.episode])
    return {
        agent: {tier: _duration(seconds) for tier, seconds in tiers.items()}
        for agent, tiers in found.items()
    }


def _tier(cell: Cell) -> str:
    if not cell.shifts:
        return "clean"
    return "placebo" if is_placebo(cell) else tier_of(cell)


def _duration(seconds: list[float]) -> Duration:
    slow = quantiles(seconds, n=10, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]
    return Duration(len(seconds), median(seconds), slow)
