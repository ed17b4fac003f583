"""A study as a picture: what every arm reaches under every shift, in SVG."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isnan
from typing import Any

from toolshift.core.errors import UsageError
from toolshift.core.installation import extra
from toolshift.core.shift import TIERS
from toolshift.shifts.registry import shifts
from toolshift_lab.endpoints import ArmEndpoint, Endpoints
from toolshift_lab.findings import Findings, over_seeds

CLEAN = "as trained"
UNITS = {"drop": "points lost", "passed": "percent passed", "refused": "percent refused"}
"""What the endpoints of a measure count."""
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
_GROUP = re.compile(r"<g(?: [^>]*)?>|</g>")
_NAUGHT = re.compile(r' (?:[xy][12]="0"|stroke-width="1")(?=[ />])')
"""What a line has anyway."""


def accuracy_by_shift(found: Findings) -> str:
    """One line a shift, in panels by tier: each arm's mean over seeds, and its seeds, as SVG."""
    return _drawn(_chart(found))


def endpoints_by_arm(found: Endpoints) -> str:
    """Each endpoint of each arm of a plan, with both kinds of interval, as SVG."""
    rows = [_endpoint_row(each) for each in found.arms]
    x = {"type": "quantitative", "title": None, "scale": {"domain": [-40, 100], "clamp": True}}
    colour = {**_colour([row["arm"] for row in rows]), "legend": None}
    y = {"field": "arm", "type": "nominal", "sort": colour["scale"]["domain"], "title": None}

    def bar(low: str, high: str, **mark: Any) -> dict[str, Any]:
        place = {"x": {**x, "field": low}, "x2": {"field": high}, "y": y, "color": colour}
        return {"mark": {"type": "rule", **mark}, "encoding": place}

    thin = bar("low", "high", strokeWidth=1.5)
    one_seed = {"field": "one_seed", "type": "nominal", "legend": None}
    thin["encoding"]["strokeDash"] = {
        **one_seed, "scale": {"domain": [False, True], "range": [[1, 0], [3, 3]]}
    }  # fmt: skip
    mean = {"x": {**x, "field": "mean"}, "y": y, "color": colour}
    hollow = {"condition": {"test": "datum.defined", "value": 1}, "value": 0}
    point = {"type": "point", "filled": False, "size": 60, "strokeWidth": 1.5}
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
                thin,
                {"mark": {**point, "filled": True}, "encoding": {**mean, "opacity": hollow}},
                {"mark": point, "encoding": mean},
            ],
        },
    }
    return _drawn(chart)


def _endpoint_row(each: ArmEndpoint) -> dict[str, Any]:
    """An endpoint of an arm as the picture takes it, in points."""
    crossed, seeds = each.found.interval, over_seeds(each.by_seed)
    told = {"mean": crossed.estimate, "low": crossed.low, "high": crossed.high}
    if not isnan(seeds.low):  # as with one seed, or where all are alike
        told |= {"seeds_low": max(-1.0, seeds.low), "seeds_high": min(1.0, seeds.high)}
    points = {name: 100 * value for name, value in told.items()}
    return {
        "arm": each.arm,
        "endpoint": ": ".join(filter(None, (each.endpoint, UNITS.get(each.measure)))),
        "defined": each.defined,
        "one_seed": each.found.seeds == 1,
        **points,
    }


def _colour(arms: Sequence[str]) -> dict[str, Any]:
    """The colours of arms, the same in all pictures that show the same ones in the same order."""
    scale = {"domain": list(dict.fromkeys(arms)), "scheme": "tableau10"}
    return {"field": "arm", "type": "nominal", "sort": None, "scale": scale}


def _drawn(chart: dict[str, Any]) -> str:
    try:
        from vl_convert import vegalite_to_svg  # noqa: PLC0415 - an extra
    except ImportError:
        raise UsageError(f"plots need vl-convert-python: {extra('train')}") from None
    return slim(vegalite_to_svg(chart))


_FONT = ' font-family="sans-serif"'
_USUAL = re.compile(rf' opacity="1"| text-anchor="start"|{_FONT}')


def slim(svg: str) -> str:
    """A picture without what is not seen: labels of each mark, empty paths, and far decimals.

    Paths that go round a circle become circles, which say where their middle is. The font is said
    once. Groups that say nothing, and what a line has anyway, are left out.
    """
    svg = _USUAL.sub("", svg)
    if "<text" in svg:
        svg = svg.replace("<svg ", f"<svg{_FONT} ", 1)
    without = _PATH.sub(_as_circle, _CLASS.sub("", _UNSEEN.sub("", svg)))
    placed = _DOT.sub(_as_dot, without)
    rounded = _DECIMALS.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), placed)
    return _without_bare_groups(_NAUGHT.sub("", rounded))


def _without_bare_groups(svg: str) -> str:
    """A picture without the groups that say nothing of what is in them."""
    said: list[bool] = []

    def kept(found: re.Match[str]) -> str:
        if found[0] == "</g>":
            return "</g>" if said.pop() else ""
        said.append(found[0] != "<g>")
        return found[0] if said[-1] else ""

    return _GROUP.sub(kept, svg)


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
    colour = {**_colour([arm.arm for arm in found.arms]), "title": None}
    base = {
        "y": {"field": "shift", "type": "nominal", "sort": None, "title": None},
        "color": colour,
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
