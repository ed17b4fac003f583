"""Agents and versions beside each other: paired changes, and curves over training.

A pair is compared by `toolshift.measure.compare`, as `toolshift compare` does. Each agent is
compared with the agent of the same name in the first run, or else with the first agent of all.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from toolshift.core.errors import UsageError
from toolshift.measure.compare import Comparison, Contrast, compare
from toolshift.measure.statistics import Interval
from toolshift.report.html import charts
from toolshift.report.html.subjects import Kept, Subject, run_name

MIN_POINTS = 3
"""Names that end in a number are taken for checkpoints of one training from this many on."""
_STEP = re.compile(r"(?P<series>(?:.*?[^\d.])?)(?P<step>\d+)$")
_ALPHA = re.compile(r"(?P<series>.*?)[-_@=]?(?:alpha|a)[-_=]?(?P<step>[01]?\.\d+|[01])$")


@dataclass(frozen=True)
class Versus:
    """A subject beside the one that it is compared with.

    Attributes:
        at: where the comparison stands among those of the page: /compare/NUMBER.
        found: the comparison; None where there can be none, and `problem` says why.
    """

    at: str
    before: Subject
    after: Subject
    found: Comparison | None
    problem: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Point:
    """A checkpoint: its series (a training), and how far it has come."""

    series: str
    step: float
    subject: Subject


def contests(
    subjects: Sequence[Subject],
    folders: Sequence[Kept],
    step: Callable[[Versus], Versus] = lambda made: made,
) -> list[Versus]:
    """Every subject but the first, compared with its predecessor or with the first."""
    found = []
    for number, after in enumerate(subjects[1:]):
        same = [s for s in subjects if s.name == after.name and s.run < after.run]
        before = same[0] if same else subjects[0]
        found.append(step(_contest(f"/compare/{number}", before, after, folders)))
    return found


def _contest(at: str, before: Subject, after: Subject, folders: Sequence[Kept]) -> Versus:
    try:
        told = compare(folders[before.run], folders[after.run], before.name, after.name)
    except UsageError as why:
        return Versus(at, before, after, None, _without_paths(str(why), folders))
    notes = [_without_paths(note, folders) for note in told.notes]
    return Versus(at, before, after, told, notes=notes)


def judged(contrast: Contrast) -> str:
    """Better, worse, or not significant."""
    if not contrast.significant:
        return "not significant"
    return "better" if contrast.change.estimate > 0 else "worse"


def sorted_out(found: Comparison) -> dict[str, list[tuple[int, Contrast]]]:
    """The shifts of a comparison by verdict, each with its place in the table."""
    sorts: dict[str, list[tuple[int, Contrast]]] = {
        "worse": [],
        "better": [],
        "not significant": [],
    }
    for place, contrast in enumerate(found.shifts):
        sorts[judged(contrast)].append((place, contrast))
    for told in ("worse", "better"):
        sorts[told].sort(key=lambda pair: -abs(pair[1].change.estimate))
    return sorts


def change_chart(all_of: Sequence[Versus]) -> dict[str, Any] | None:
    """The change in each tier, a panel a pair."""
    rows: list[tuple[str, str, Interval, bool]] = []
    for versus in all_of:
        if versus.found is not None:
            head = [versus.found.clean] if versus.found.clean else []
            rows += [
                (versus.after.label, stage(row.label), row.change, row.significant)
                for row in (*head, *versus.found.tiers)
            ]
    return charts.changes(rows) if rows else None


def checkpoints(subjects: Sequence[Subject]) -> tuple[str, list[Point]]:
    """The subjects that are points of a training, and what they are counted in: step or alpha.

    A name (or, where all are named alike, the name of the run) that ends in a number is a
    checkpoint: `sft-200`, `grpo/step_50`, `paft-alpha0.3`.
    """
    for axis, pattern in (("alpha", _ALPHA), ("step", _STEP)):
        for named in (lambda s: s.name, lambda s: s.label.rpartition("(")[2].rstrip(")")):
            series = _series(subjects, pattern, named)
            if series:
                return axis, series
    return "", []


def curve_chart(axis: str, points: Sequence[Point]) -> dict[str, Any]:
    """Accuracy clean and in each tier over the course of training."""
    values = []
    for point in points:
        each = point.subject.report
        values.append(("clean", point.series, point.step, each.clean.accuracy))
        values += [(row.label, point.series, point.step, row.accuracy) for row in each.tiers]
    return charts.curves(values, axis)


def _without_paths(text: str, folders: Sequence[Kept]) -> str:
    """A message with the names of the runs in place of where they lie."""
    for folder in sorted(folders, key=lambda one: -len(str(one.path))):
        text = text.replace(str(folder.path), run_name(folder))
    return text


def _series(
    subjects: Sequence[Subject], pattern: re.Pattern[str], named: Callable[[Subject], str]
) -> list[Point]:
    found: dict[str, list[Point]] = defaultdict(list)
    for subject in subjects:
        match = pattern.fullmatch(named(subject))
        if match:
            series = match["series"].rstrip("-_/@= ")
            found[series].append(Point(series, float(match["step"]), subject))
    kept = [
        sorted(points, key=lambda point: point.step)
        for points in found.values()
        if len({point.step for point in points}) >= MIN_POINTS
    ]
    return [point for points in kept for point in points]


def stage(label: str) -> str:
    """A tier of a comparison as a reader knows it; the placebo arm has none."""
    return {"none": "placebo"}.get(label, label)
