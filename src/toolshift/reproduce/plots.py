"""A study as a picture: what every arm reaches under every shift, in SVG."""

from __future__ import annotations

import re
from typing import Any

from toolshift.core.errors import UsageError
from toolshift.core.shift import TIERS
from toolshift.reproduce.findings import Findings
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
    try:
        from vl_convert import vegalite_to_svg  # noqa: PLC0415 - an extra
    except ImportError:
        raise UsageError("plots need vl-convert-python: pip install 'toolshift[train]'") from None
    return slim(vegalite_to_svg(_chart(found)))


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
