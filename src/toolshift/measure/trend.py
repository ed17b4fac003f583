"""An agent over months: the same anchor scenes each day, and fresh ones beside them.

Anchors are paired with those of the first day that had the same plan and a scored episode, so a
change is of the agent (or of the model behind it) and not of the tasks. If the plan changed,
because a shift has a new version or the selection changed, a new series begins, and a note says so.
Fresh scenes are other tasks each day: they show what anchors that an agent has been tuned to would
hide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from math import isnan
from pathlib import Path
from typing import Literal

import msgspec

from toolshift.core.errors import UsageError
from toolshift.measure import statistics as st
from toolshift.measure.metrics import ALPHA, Scores
from toolshift.measure.two_runs import by_cell
from toolshift.runs.cell import Cell
from toolshift.runs.plan import is_placebo
from toolshift.runs.run_folder import Record, RunFolder

Arm = Literal["anchor", "fresh"]
ANCHOR: Arm = "anchor"
FRESH: Arm = "fresh"
Scenes = dict[str, tuple[str, float]]
"""The task of a scene, and 1 if it was passed."""


class Point(msgspec.Struct, frozen=True):
    """One agent on one day.

    Attributes:
        clean: accuracy in clean scenes; shifted in all shifted ones.
        episodes: that were scored; void ones were not.
        change: of accuracy since `since`, over all scenes that both have; for anchors after the
            first. Negative where the agent has become worse.
        since: the day that it is compared with; "" where it is none.
        significant: after Holm's adjustment over all days of this agent with that beginning.
        note: what differs from the day before.
    """

    day: str
    agent: str
    arm: Arm
    clean: st.Interval
    shifted: st.Interval
    episodes: int
    void: int
    change: st.Interval | None = None
    since: str = ""
    p_value: float = float("nan")
    significant: bool = False
    note: str = ""


class Trend(msgspec.Struct, frozen=True):
    """All points, by day.

    Attributes:
        agents: in the order in which they were met first.
        days: in their order.
    """

    agents: list[str]
    days: list[str]
    points: list[Point]

    def of(self, agent: str, arm: Arm) -> list[Point]:
        """The points of an agent, by day."""
        return [point for point in self.points if (point.agent, point.arm) == (agent, arm)]


def read_days(folder: Path) -> list[tuple[str, Arm, RunFolder]]:
    """The runs of a folder: DAY/anchor and DAY/fresh, where DAY is a date such as 2026-11-25."""
    days = [(day, arm, RunFolder.read(folder / day / arm)) for day, arm in _arms_in(folder)]
    if not days:
        raise UsageError(
            f"{folder} has no run: the runs of a day must be in DAY/anchor and DAY/fresh, such "
            f"as {folder / '2026-01-31' / ANCHOR}"
        )
    return days


def holds_days(folder: Path) -> bool:
    """Whether a folder is no run itself, and holds the runs of a day."""
    return not (folder / "manifest.json").is_file() and any(_arms_in(folder))


def _arms_in(folder: Path) -> Iterator[tuple[str, Arm]]:
    """The days of a folder with the arms that were run, in order."""
    arms: tuple[Arm, ...] = (ANCHOR, FRESH)
    for day in sorted(path for path in folder.glob("*") if path.is_dir() and _is_day(path.name)):
        for arm in arms:
            if (day / arm / "manifest.json").is_file():
                yield day.name, arm


def _is_day(name: str) -> bool:
    try:
        return date.fromisoformat(name).isoformat() == name
    except ValueError:
        return False


def make_trend(days: Sequence[tuple[str, Arm, RunFolder]]) -> Trend:
    """The trend of some days."""
    points: list[Point] = []
    firsts: dict[tuple[str, str], tuple[str, Scenes]] = {}
    last: dict[str, RunFolder] = {}
    for day, arm, run in days:
        for about in run.manifest.agents:
            agent = str(about["name"])
            rows = list(_rows(run, agent))
            if not rows:
                continue
            point = _point(day, agent, arm, rows)
            if arm == ANCHOR and point.episodes:  # with a day of void ones, nothing can be compared
                first = firsts.setdefault((agent, run.manifest.plan_hash), (day, _by_scene(rows)))
                point = _compared(point, first, _by_scene(rows), _note(last.get(agent), run))
                last[agent] = run
            points.append(point)
    agents = list(dict.fromkeys(point.agent for point in points))
    adjusted = _adjusted(points)
    return Trend(agents, list(dict.fromkeys(day for day, _, _ in days)), adjusted)


def _rows(run: RunFolder, agent: str) -> Iterable[tuple[Cell, Record]]:
    records = by_cell(run, agent)
    return ((cell, records[name]) for name, cell in run.cells.items() if name in records)


def _point(day: str, agent: str, arm: Arm, rows: Sequence[tuple[Cell, Record]]) -> Point:
    clean: Scores = {}
    shifted: Scores = {}
    void = 0
    for cell, record in rows:
        if record.grade.excused:
            void += 1
        elif not is_placebo(cell):
            scores = shifted if cell.shifts else clean
            scores.setdefault(cell.lineage, []).append(float(record.grade.passed))
    rates = [st.cluster_rate(list(scores.values())) for scores in (clean, shifted)]
    return Point(day, agent, arm, rates[0], rates[1], len(rows) - void, void)


def _by_scene(rows: Sequence[tuple[Cell, Record]]) -> Scenes:
    """The task of each scene and whether it was passed, without void scenes and the placebo arm."""
    return {
        cell.id: (cell.lineage, float(record.grade.passed))
        for cell, record in rows
        if not record.grade.excused and not is_placebo(cell)
    }


def _compared(point: Point, first: tuple[str, Scenes], now: Scenes, note: str) -> Point:
    since, before = first
    if since == point.day:
        return msgspec.structs.replace(point, note=note)
    scores: tuple[Scores, Scores] = ({}, {})
    for scene in before.keys() & now.keys():
        for kept, scenes in zip(scores, (before, now), strict=True):
            task, passed = scenes[scene]
            kept.setdefault(task, []).append(passed)
    drop = st.paired_drop(*scores)
    change = st.Interval(-drop.estimate, -drop.high, -drop.low, drop.method, drop.n)
    p_value = st.drop_p_value(*scores)
    return msgspec.structs.replace(point, change=change, since=since, p_value=p_value, note=note)


def _note(before: RunFolder | None, now: RunFolder) -> str:
    """What differs from the anchors of the day before."""
    if before is None:
        return ""
    if before.manifest.plan_hash != now.manifest.plan_hash:
        return "other anchors than before, so the comparison starts again"
    if before.manifest.toolshift != now.manifest.toolshift:
        return f"run with ToolShift {now.manifest.toolshift}"
    return ""


def _adjusted(points: Sequence[Point]) -> list[Point]:
    """The points with p values adjusted over the days of each agent and beginning."""
    rows = list(points)
    groups: dict[tuple[str, str], list[int]] = {}
    for place, point in enumerate(points):
        if point.since and not isnan(point.p_value):
            groups.setdefault((point.agent, point.since), []).append(place)
    for places in groups.values():
        adjusted = st.holm([points[place].p_value for place in places])
        for place, p_value in zip(places, adjusted, strict=True):
            rows[place] = msgspec.structs.replace(
                points[place], p_value=p_value, significant=p_value < ALPHA
            )
    return rows


def sentence_of(trend: Trend, agent: str) -> str:
    """The trend of an agent in one sentence."""
    anchors = trend.of(agent, ANCHOR)
    if not anchors:
        return f"{agent}: there are no anchors, so days cannot be compared."
    void = "".join(
        f" All {point.void} episodes of {point.day} were void: find the cause, and run that day "
        "again."
        for point in anchors[-1:]
        if not point.episodes
    )
    scored = _scored(trend, agent)
    return _compared_in_words(agent, scored[-1]) + void if scored else f"{agent}:{void}"


def _scored(trend: Trend, agent: str) -> list[Point]:
    """The anchors of an agent by day, for days with a scored episode."""
    return [point for point in trend.of(agent, ANCHOR) if point.episodes]


def _compared_in_words(agent: str, last: Point) -> str:
    if last.change is None:
        return f"{agent}: {last.day} is the first day with these anchors; nothing is compared yet."
    if isnan(last.change.estimate):
        return f"{agent}: no scene was scored on both {last.since} and {last.day}, to be compared."
    low, middle, high = (
        100 * limit for limit in (last.change.low, last.change.estimate, last.change.high)
    )
    difference = f"{middle:+z.0f} points [{low:+z.0f}, {high:+z.0f}]".replace("+0", "0")
    verdict = "significant" if last.significant else "no significant change"
    return f"{agent}: {difference} on the same tasks from {last.since} to {last.day}: {verdict}."


def has_lost(trend: Trend) -> list[str]:
    """The agents whose last scored anchors are significantly worse than their first."""
    lasts = [_scored(trend, agent)[-1:] for agent in trend.agents]
    return [
        last.agent
        for lines in lasts
        for last in lines
        if last.significant and last.change is not None and last.change.estimate < 0
    ]
