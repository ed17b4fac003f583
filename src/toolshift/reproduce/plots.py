"""A study as a picture: what every arm reaches under every shift, in SVG."""

from __future__ import annotations

from typing import Any

from toolshift.core.errors import UsageError
from toolshift.core.shift import TIERS
from toolshift.reproduce.findings import Findings
from toolshift.shifts.registry import shifts

CLEAN = "as trained"
PANELS = (CLEAN, *TIERS, "several")


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
    drawn: str = vegalite_to_svg(_chart(found))
    return drawn


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
        "config": {"aria": False},  # a sentence a mark, which made up most of the file
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
                    "mark": {"type": "circle", "size": 14, "opacity": 0.55, "aria": False},
                    "encoding": {**base, "x": x},
                },
                {
                    "mark": {"type": "point", "size": 55, "filled": True, "aria": False},
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
