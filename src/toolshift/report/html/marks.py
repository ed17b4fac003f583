"""What the charts are made of: marks, axes, panels, and the data behind a mark.

Colours are CSS variables, so that one drawing serves light, dark and paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

from toolshift.measure.statistics import Interval
from toolshift.report.figures import shown

Spec = dict[str, Any]
ACCENT, INK, MUTED, LINE = "var(--accent)", "var(--ink)", "var(--muted)", "var(--line)"
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
TOLD: Spec = {"condition": {"test": "datum.told", "value": ACCENT}, "value": MUTED}
PERCENT: Spec = {
    "scale": {"domain": [0, 100]},
    "axis": {"tickCount": 5, "labelExpr": "datum.value + '%'", "title": None},
}


def frame(values: list[Spec], **more: Any) -> Spec:
    """A specification with its data."""
    return {"$schema": SCHEMA, "data": {"values": values}, **more}


def facet_by(name: str, values: Sequence[Spec]) -> Spec:
    """One panel for each value of a field, in the order of the data."""
    return {
        "field": name,
        "type": "nominal",
        "sort": list(dict.fromkeys(value[name] for value in values)),
        "title": None,
        "header": {"labelAnchor": "start", "labelLimit": 230},
    }


def panels(values: list[Spec], title: str | None, across: int) -> Spec:
    """Small multiples of accuracy, one a panel, significant ones in accent."""
    x: Spec = {"field": "label", "type": "ordinal", "sort": None}
    x["axis"] = {"title": title, "labelAngle": 0}
    base = {"x": x, "color": TOLD}
    y = {**PERCENT, "axis": {**PERCENT["axis"], "tickCount": 2, "values": [0, 50, 100]}}
    line = {"x": x, "y": {"field": "value", "type": "quantitative"}}
    kept = [value for value in values if value["value"] is not None]
    return {
        **frame(kept),
        "usermeta": {"across": across},
        "facet": facet_by("panel", kept),
        "columns": 4,
        "spec": {
            "height": 84,
            "layer": [
                {"mark": {"type": "line", "color": MUTED, "strokeWidth": 1}, "encoding": line},
                interval_bar(base, "y", y, 2),
                estimate_dot(base, "y", y, 45),
            ],
        },
    }


def interval_bar(base: Spec, axis: str, how: Spec, width: int) -> Spec:
    """The interval."""
    ends = {
        axis: {"field": "low", "type": "quantitative", **how},
        f"{axis}2": {"field": "high"},
    }
    mark = {"type": "rule", "strokeWidth": width, "strokeCap": "round", "opacity": 0.35}
    return {"mark": mark, "encoding": {**base, **ends, **_tooltip()}}


def estimate_dot(base: Spec, axis: str, how: Spec, size: int) -> Spec:
    """The estimate."""
    middle = {axis: {"field": "value", "type": "quantitative", **how}}
    mark = {"type": "point", "filled": True, "size": size, "opacity": 1}
    return {"mark": mark, "encoding": {**base, **middle, **_tooltip()}}


def zero_rule(axis: str) -> Spec:
    """Where nothing has changed."""
    return {
        "mark": {"type": "rule", "color": INK, "strokeDash": [2, 3]},
        "encoding": {axis: {"datum": 0, "type": "quantitative"}},
    }


def _tooltip() -> Spec:
    fields = [("label", " "), ("said", "estimate"), ("limits", "95% interval")]
    return {"tooltip": [{"field": name, "title": title} for name, title in fields]}


def name_axis(room: int, size: int) -> Spec:
    """A left axis of names that takes the same room in every panel."""
    return {
        "title": None,
        "ticks": False,
        "domain": False,
        "minExtent": room,
        "maxExtent": room,
        "labelLimit": room - 10,
        "labelPadding": 10,
        "labelFontSize": size,
        "labelColor": INK,
    }


def measured(label: str, value: Interval, told: bool, clean: bool = False) -> Spec:
    """The data behind an estimate and its interval, in percent; `told` gives it the accent."""
    low, middle, high = (percent_of(v) for v in (value.low, value.estimate, value.high))
    said = "" if middle is None else f"{middle:.0f}"
    return {
        "label": shown(label, 60),
        "value": middle,
        "low": low,
        "high": high,
        "said": said,
        "limits": "" if low is None or high is None else f"{low:.0f} to {high:.0f}",
        "told": told,
        "clean": clean,
    }


def gain_of(drop: Interval) -> Interval:
    """A drop as a change."""
    return Interval(-drop.estimate, -drop.high, -drop.low, drop.method, drop.n)


def height_of(value: Interval) -> float:
    """An estimate to sort by; what is undefined comes last."""
    return 2.0 if isnan(value.estimate) else value.estimate


def percent_of(value: float) -> float | None:
    """A rate in percent; None for what is undefined."""
    return None if isnan(value) else round(100 * value, 6)
