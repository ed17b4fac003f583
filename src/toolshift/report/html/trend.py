"""Days on one static page: accuracy over time as drawn lines, and a table of every figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import isnan
from pathlib import Path

import msgspec

from toolshift.core.files import write, writing
from toolshift.core.tool import JSON
from toolshift.measure.statistics import Interval
from toolshift.measure.trend import ANCHOR, FRESH, Arm, Point, Trend, has_lost, sentence_of
from toolshift.report.figures import shown
from toolshift.report.html.page import POLICY, asset, environment

WIDTH, HEIGHT = 760, 230
LEFT, RIGHT, TOP, BOTTOM = 46, 24, 14, 30
_DATES = 8
"""Dates that are written below the axis at most."""


@dataclass(frozen=True)
class Mark:
    """A measured accuracy in the drawing, with its interval."""

    x: float
    y: float
    low: float
    high: float
    said: str


@dataclass(frozen=True)
class Line:
    """One line of a drawing.

    Attributes:
        parts: the points of its pieces; it is broken where days cannot be compared.
    """

    name: str
    css: str
    parts: list[str]
    marks: list[Mark]


@dataclass(frozen=True)
class Drawing:
    """One agent over time."""

    agent: str
    sentence: str
    lost: bool
    lines: list[Line]
    dates: list[tuple[float, str]]
    points: list[Point]
    described: str


def write_trend(trend: Trend, out: Path) -> None:
    """Writes the page, and its figures beside it as JSON."""
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        write(out, make_page(trend).encode())
        data = msgspec.json.format(JSON.encode(trend), indent=1) + b"\n"
        write(out.with_suffix(".json"), data)


def make_page(trend: Trend) -> str:
    """The page as text."""
    lost = has_lost(trend)
    text: str = (
        environment()
        .get_template("trend.html.j2")
        .render(
            drawings=[_drawing(trend, agent, agent in lost) for agent in trend.agents],
            days=trend.days,
            lost=[shown(one) for one in lost],
            ticks=[(_y(rate / 100), f"{rate}%") for rate in (0, 25, 50, 75, 100)],
            size={"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": WIDTH - RIGHT},
            css=asset("page.css"),
            policy=POLICY.format(scripts="'none'"),
        )
    )
    return text


def _drawing(trend: Trend, agent: str, lost: bool) -> Drawing:
    kinds: tuple[tuple[str, str, Arm, str], ...] = (
        ("clean, anchors", "clean", ANCHOR, "clean"),
        ("shifted, anchors", "shifted", ANCHOR, "shifted"),
        ("clean, fresh", "clean fresh", FRESH, "clean"),
        ("shifted, fresh", "shifted fresh", FRESH, "shifted"),
    )
    lines = [
        _line(name, css, trend.of(agent, arm), which, trend.days) for name, css, arm, which in kinds
    ]
    step = -(-len(trend.days) // _DATES)
    dates = [(_x(day, trend.days), day) for day in trend.days[::step]]
    points = [point for point in trend.points if point.agent == agent]
    sentence = sentence_of(trend, agent)
    described = f"Accuracy of {agent} on {len(trend.days)} days; every figure is in the table below"
    return Drawing(agent, sentence, lost, lines, dates, points, shown(described, 300))


def _line(name: str, css: str, points: Sequence[Point], which: str, days: Sequence[str]) -> Line:
    parts: list[list[str]] = [[]]
    marks = []
    for point in points:
        rate: Interval = getattr(point, which)
        if isnan(rate.estimate):
            continue
        if point.note.startswith("other anchors"):
            parts.append([])
        x = _x(point.day, days)
        said = f"{point.day}, {name}: {100 * rate.estimate:.0f}%"
        limits = f" [{100 * rate.low:.0f}, {100 * rate.high:.0f}]"
        marks.append(Mark(x, _y(rate.estimate), _y(rate.low), _y(rate.high), said + limits))
        parts[-1].append(f"{x:.1f},{_y(rate.estimate):.1f}")
    return Line(name, css, [" ".join(part) for part in parts if part], marks)


def _x(day: str, days: Sequence[str]) -> float:
    """Where a day stands: by its date, so that gaps are seen."""
    first, last = (date.fromisoformat(one) for one in (days[0], days[-1]))
    whole = (last - first).days
    share = (date.fromisoformat(day) - first).days / whole if whole else 0.5
    return round(LEFT + 8 + share * (WIDTH - RIGHT - LEFT - 16), 1)


def _y(rate: float) -> float:
    return round(TOP + (1 - rate) * (HEIGHT - TOP - BOTTOM), 1)
