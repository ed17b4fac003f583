"""A study as a picture: what every arm reaches under every shift, in SVG."""

from __future__ import annotations

import re
from math import isnan
from typing import Any

from toolshift.core.errors import UsageError
from toolshift.core.shift import TIERS
from toolshift.reproduce.endpoints import Endpoints
from toolshift.reproduce.findings import Findings, over_seeds
from toolshift.shifts.registry import shifts

CLEAN = "as trained"
PANELS = (CLEAN, *TIERS, "several")
_UNSEEN = re.compile(
    r'<path class="(?:back|fore)ground"[^>]* d="(?:|M0,0h0v0h0Z)"[^>]*/>'
    r'| aria-[a-z]+="[^"]*"| role="graphics-[a-z]+"| pointer-events="none"'
)
_CLASS = re.compile(r' class="[^"]*"')
_CIRCLE = re.compile(
    r' d="M([\d.]+),0A[\d.]+,[\d.]+,0,1,1,-[\d.]+,0A[\d.]+,[\d.]+,0,1,1,[\d.]+,0Z?"'
)
_PATH = re.compile(r"<path[^>]*/>")
_DOT = re.compile(r"<circle[^>]*/>")
_PLACE = re.compile(r' transform="translate\(([^,()]*),([^,()]*)\)"')
_WIDTH = re.compile(r' stroke-width="[^"]*"')
_DECIMALS = re.compile(r"-?\b\d+\.\d{3,}")


def accuracy_by_shift(found: Findings) -> str:
    """One line a shift, in panels by tier: each arm's mean over seeds, and its seeds, as SVG.

    Args:
        found: of the study.

    Returns:
        An SVG document.

    Raises:
        UsageError: where vl-convert-python is not installed.
    """
    return _drawn(_chart(found))


def endpoints_by_arm(found: Endpoints) -> str:
    """Each endpoint of each arm of a plan, with both kinds of interval, as SVG.

    Args:
        found: of the plan.

    Returns:
        An SVG document, in points: wide bars are t intervals over seeds, where there are several;
        thin ones hold for other seeds and other tasks.

    Raises:
        UsageError: where vl-convert-python is not installed.
    """
    rows = []
    for each in found.arms:
        crossed, seeds = each.found.interval, over_seeds(each.by_seed)
        told = {"mean": crossed.estimate, "low": crossed.low, "high": crossed.high}
        if not isnan(seeds.low):  # as with one seed, or where all are alike
            told |= {"seeds_low": max(-1.0, seeds.low), "seeds_high": min(1.0, seeds.high)}
        points = {name: 100 * value for name, value in told.items()}
        rows.append({"arm": each.arm, "endpoint": each.endpoint, **points})
    x = {"type": "quantitative", "title": "points", "scale": {"domain": [-20, 100], "clamp": True}}
    y = {"field": "arm", "type": "nominal", "sort": None, "title": None}
    colour = {"field": "arm", "type": "nominal", "sort": None, "legend": None}

    def bar(low: str, high: str, **mark: Any) -> dict[str, Any]:
        place = {"x": {**x, "field": low}, "x2": {"field": high}, "y": y, "color": colour}
        return {"mark": {"type": "rule", **mark}, "encoding": place}

    mean = {"x": {**x, "field": "mean"}, "y": y, "color": colour}
    header = {"labelAngle": 0, "labelAlign": "left"}
    order = list(dict.fromkeys(row["endpoint"] for row in rows))
    panel = {"field": "endpoint", "type": "nominal", "sort": order, "title": None, "header": header}
    chart = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": "white",
        "data": {"values": rows},
        "facet": {"row": panel},
        "spec": {
            "width": 420,
            "height": {"step": 18},
            "layer": [
                bar("seeds_low", "seeds_high", strokeWidth=9, opacity=0.35),
                bar("low", "high", strokeWidth=1.5),
                {"mark": {"type": "point", "filled": True, "size": 60}, "encoding": mean},
            ],
        },
    }
    return _drawn(chart)


def _drawn(chart: dict[str, Any]) -> str:
    try:
        from vl_convert import vegalite_to_svg  # noqa: PLC0415 - an extra
    except ImportError:
        raise UsageError("plots need vl-convert-python: pip install 'toolshift[train]'") from None
    return slim(vegalite_to_svg(chart))


def slim(svg: str) -> str:
    """A picture without what is not seen: labels of each mark, empty paths, and far decimals.

    Paths that go round a circle become circles, which say where their middle is.

    Args:
        svg: as Vega draws it.

    Returns:
        The same picture, in a quarter of the bytes.
    """
    without = _PATH.sub(_as_circle, _CLASS.sub("", _UNSEEN.sub("", svg)))
    placed = _DOT.sub(_as_dot, without)
    return _DECIMALS.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), placed)


def _as_circle(found: re.Match[str]) -> str:
    """A path that goes round a circle, as a circle; another one as it is."""
    round_about = _CIRCLE.search(found[0])
    if round_about is None:
        return found[0]
    circle = _CIRCLE.sub(f' r="{round_about[1]}"', found[0])
    return circle.replace("<path", "<circle", 1)


def _as_dot(found: re.Match[str]) -> str:
    """A circle by its middle, without the width of a line that it does not have."""
    dot = _PLACE.sub(r' cx="\1" cy="\2"', found[0])
    return dot if "stroke=" in dot else _WIDTH.sub("", dot)


def _chart(found: Findings) -> dict[str, Any]:
    points = _points(found)
    x = {
        "field": "accuracy",
        "type": "quantitative",
        "scale": {"domain": [0, 100]},
        "title": "accuracy, % (large: mean over seeds; small: each seed)",
    }
    colour = {"field": "arm", "type": "nominal", "sort": None, "title": None}
    base = {
        "y": {"field": "shift", "type": "nominal", "sort": None, "title": None},
        "color": {**colour, "scale": {"scheme": "tableau10"}},
        "yOffset": {"field": "arm", "type": "nominal", "sort": None},
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": "white",
        "data": {"values": points},
        "facet": {
            "row": {
                "field": "tier",
                "type": "nominal",
                "sort": PANELS,
                "title": None,
                "header": {"labelAngle": 0, "labelAlign": "left"},
            }
        },
        "resolve": {"scale": {"y": "independent", "yOffset": "shared"}},
        "spec": {
            "width": 420,
            "height": {"step": max(5, 34 // max(1, len(found.arms)))},
            "layer": [
                {
                    "mark": {"type": "circle", "size": 14, "opacity": 0.55},
                    "encoding": {**base, "x": x},
                },
                {
                    "mark": {"type": "point", "size": 55, "filled": True},
                    "encoding": {**base, "x": {**x, "aggregate": "mean"}},
                },
            ],
        },
    }


def _points(found: Findings) -> list[dict[str, Any]]:
    """One point for each arm, shift and seed."""
    points = []
    for arm in found.arms:
        alone = {CLEAN: arm.measures["clean"], "placebo": arm.measures["placebo"]}
        measured = {**alone, **arm.shifts}
        for name, values in measured.items():
            points += [
                {"arm": arm.arm, "shift": name, "tier": _panel(name), "accuracy": 100 * value}
                for value in values
            ]
    return points


def _panel(name: str) -> str:
    """The panel of a shift: its tier; the placebo, which has none, stands with the clean scenes."""
    if "+" in name:
        return "several"
    tier: str = shifts()[name].tier if name in shifts() else CLEAN
    return tier if tier in TIERS else CLEAN
