"""The flow from shifts to causes: how many failures under each shift have which root cause.

Vega-Lite has no such chart, so this is a Vega specification. The bands are laid out here, in
shares of the height; the drawing fits them to the width.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolshift.measure.diagnosis import words
from toolshift.measure.metrics import Measures
from toolshift.report.figures import shown
from toolshift.report.html.subjects import Subject

MAX_SHIFTS = 14
OTHERS = "other shifts"
SPREAD = 0.25
"""The share of the height that is left between the bands."""
LINE = 15
"""The height of a label in pixels."""
SCHEMA = "https://vega.github.io/schema/vega/v6.json"


@dataclass(frozen=True)
class Source:
    """The failures under a shift, by cause."""

    label: str
    causes: dict[str, int]
    told: bool

    @property
    def failures(self) -> int:
        """How many there are."""
        return sum(self.causes.values())


def sources(rows: Sequence[Measures], most: int = MAX_SHIFTS) -> list[Source]:
    """The shifts with most failures, in the order of the table; the others added up."""
    failing = [
        Source(words(row.label), row.causes, row.significant and row.drop.estimate > 0)
        for row in rows
        if row.causes
    ]
    if len(failing) <= most:
        return failing
    kept = sorted(failing, key=lambda source: -source.failures)[: most - 1]
    rest: Counter[str] = Counter()
    for source in failing:
        if source not in kept:
            rest.update(source.causes)
    return [*(s for s in failing if s in kept), Source(OTHERS, dict(rest), False)]


def causes_of(origins: Sequence[Source]) -> list[str]:
    """The causes, the commonest first."""
    total: Counter[str] = Counter()
    for source in origins:
        total.update(source.causes)
    return [cause for cause, _ in total.most_common()]


def flow(subject: Subject) -> dict[str, Any] | None:
    """The chart of an agent; None where nothing has failed under a shift."""
    origins = sources(subject.report.shifts)
    if not origins:
        return None
    causes = causes_of(origins)
    left = _stack([source.failures for source in origins])
    right = _stack([sum(s.causes.get(cause, 0) for s in origins) for cause in causes])
    links = _links(origins, causes, left, right)
    height = max(120, 26 * max(len(origins), len(causes)))
    nodes = [
        _node(source.label, source.failures, place, at, "left")
        for source, place, at in zip(origins, left, apart(left, LINE / height), strict=True)
    ]
    nodes += [
        _node(words(cause), sum(s.causes.get(cause, 0) for s in origins), place, at, "right")
        for cause, place, at in zip(causes, right, apart(right, LINE / height), strict=True)
    ]
    return _spec(links, nodes, height)


def apart(places: Sequence[tuple[float, float]], least: float) -> list[float]:
    """Where the labels of bands stand: beside their middles, and never over one another."""
    found: list[float] = []
    for top, bottom in places:
        middle = (top + bottom) / 2
        found.append(max(middle, found[-1] + least) if found else max(middle, least / 2))
    lowest = 1 - least / 2
    for place in reversed(range(len(found))):  # what was pushed below the edge is pushed back
        found[place] = min(found[place], lowest)
        lowest = found[place] - least
    return found


def _stack(sizes: Sequence[int]) -> list[tuple[float, float]]:
    """Where each band begins and ends, from the top, in shares of the height."""
    total = sum(sizes)
    gap = SPREAD / len(sizes)
    places, top = [], gap / 2
    for size in sizes:
        deep = (1 - SPREAD) * size / total
        places.append((top, top + deep))
        top += deep + gap
    return places


def _links(
    origins: Sequence[Source],
    causes: Sequence[str],
    left: Sequence[tuple[float, float]],
    right: Sequence[tuple[float, float]],
) -> list[dict[str, Any]]:
    unit = (1 - SPREAD) / sum(source.failures for source in origins)
    ends = [top for top, _ in right]
    links = []
    for source, (top, _) in zip(origins, left, strict=True):
        begin = top
        for number, cause in enumerate(causes):
            deep = source.causes.get(cause, 0) * unit
            if not deep:
                continue
            links.append(
                {
                    "a0": begin,
                    "a1": begin + deep,
                    "b0": ends[number],
                    "b1": ends[number] + deep,
                    "told": source.told,
                    "said": f"{shown(source.label, 60)} → {words(cause)}: {source.causes[cause]}",
                }
            )
            begin += deep
            ends[number] += deep
    return links


def _node(
    label: str, count: int, place: tuple[float, float], at: float, side: str
) -> dict[str, Any]:
    return {
        "label": f"{shown(label, 60)}  {count}",
        "at": at,
        "top": place[0],
        "bottom": place[1],
        "side": side,
    }


def _spec(links: list[dict[str, Any]], nodes: list[dict[str, Any]], height: int) -> dict[str, Any]:
    def curve(start: str, y0: str, end: str, y1: str) -> str:
        a, b = f"datum.{y0}*height", f"datum.{y1}*height"
        return f"middle+','+{a}+' '+middle+','+{b}+' '+{end}+','+{b}"

    path = (
        f"'M'+begin+','+datum.a0*height+'C'+{curve('begin', 'a0', 'end', 'b0')}"
        f"+'L'+end+','+datum.b1*height+'C'+{curve('end', 'b1', 'begin', 'a1')}+'Z'"
    )
    colour = [{"test": "datum.told", "value": "var(--accent)"}, {"value": "var(--muted)"}]
    at_left = "datum.side === 'left'"
    return {
        "$schema": SCHEMA,
        "height": height,
        "padding": 2,
        "signals": [
            {"name": "room", "update": "min(190, width*0.36)"},
            {"name": "begin", "update": "room"},
            {"name": "end", "update": "width-room"},
            {"name": "middle", "update": "width/2"},
        ],
        "data": [{"name": "links", "values": links}, {"name": "nodes", "values": nodes}],
        "marks": [
            {
                "type": "path",
                "from": {"data": "links"},
                "encode": {
                    "update": {
                        "path": {"signal": path},
                        "fill": colour,
                        "fillOpacity": {"value": 0.45},
                        "tooltip": {"field": "said"},
                    },
                    "hover": {"fillOpacity": {"value": 0.8}},
                },
            },
            {
                "type": "rect",
                "from": {"data": "nodes"},
                "encode": {
                    "update": {
                        "x": {"signal": f"{at_left} ? begin-3 : end"},
                        "width": {"value": 3},
                        "y": {"signal": "datum.top*height"},
                        "y2": {"signal": "datum.bottom*height"},
                        "fill": {"value": "var(--ink)"},
                    }
                },
            },
            {
                "type": "text",
                "from": {"data": "nodes"},
                "encode": {
                    "update": {
                        "x": {"signal": f"{at_left} ? begin-9 : end+9"},
                        "y": {"signal": "datum.at*height"},
                        "align": {"signal": f"{at_left} ? 'right' : 'left'"},
                        "baseline": {"value": "middle"},
                        "text": {"field": "label"},
                        "limit": {"signal": "room-10"},
                        "font": {"value": "system-ui, sans-serif"},
                        "fontSize": {"value": 12},
                        "fill": {"value": "var(--ink)"},
                    }
                },
            },
        ],
    }
