"""The charts, as Vega-Lite specifications.

Colours are CSS variables, so that one drawing serves light, dark and paper. The accent colour
means one thing everywhere: a significant loss. What depends on the width
of the page (`across`: the width of a panel) is settled when a chart is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan

from toolshift.measure.diagnosis import CEILING, is_loss, words
from toolshift.measure.metrics import Measures
from toolshift.measure.report import AgentReport
from toolshift.measure.statistics import Interval
from toolshift.report.figures import shown
from toolshift.report.html.marks import (
    ACCENT,
    INK,
    LINE,
    MUTED,
    PERCENT,
    TOLD,
    Spec,
    estimate_dot,
    facet_by,
    frame,
    gain_of,
    height_of,
    interval_bar,
    measured,
    name_axis,
    panels,
    percent_of,
    zero_rule,
)  # fmt: skip
from toolshift.report.html.subjects import Subject

MAX_PANELS = 24


def profile(subject: Subject) -> Spec:
    """The score clean and in each tier, with intervals."""
    agent = subject.report
    rows = [measured("clean", agent.clean.accuracy, False, clean=True)]
    rows += [measured(row.label, row.accuracy, is_loss(row)) for row in agent.tiers]
    colour = {
        "condition": [
            {"test": "datum.told", "value": ACCENT},
            {"test": "datum.clean", "value": INK},
        ],
        "value": MUTED,
    }
    y = {"field": "label", "type": "nominal", "sort": None, "axis": name_axis(112, 13)}
    base = {"y": y, "color": colour}
    clean = percent_of(agent.clean.accuracy.estimate)
    return {
        **frame(rows, height={"step": 34}),
        "layer": [
            {
                "data": {"values": [] if clean is None else [{"x": clean}]},
                "mark": {"type": "rule", "color": INK, "strokeDash": [2, 3]},
                "encoding": {"x": {"field": "x", "type": "quantitative"}},
            },
            interval_bar(base, "x", PERCENT, 5),
            estimate_dot(base, "x", PERCENT, 130),
            {
                "mark": {"type": "text", "dy": -12, "fontSize": 13, "fontWeight": 600},
                "encoding": {
                    **base,
                    "x": {"field": "value", "type": "quantitative"},
                    "text": {"field": "said"},
                },
            },
        ],
    }


def forest(subject: Subject) -> Spec | None:
    """The change of accuracy under each shift, tier by tier, beside the noise floor."""
    agent = subject.report
    tiers = [row.label for row in agent.tiers]
    defined = [row for row in agent.shifts if row.defined]
    if not defined:
        return None
    defined.sort(key=lambda row: (tiers.index(row.tier), -row.drop.estimate))
    rows = [
        {**measured(words(row.label), gain_of(row.drop), is_loss(row)), "tier": row.tier}
        for row in defined
    ]
    floor = measured("", gain_of(agent.noise_floor), False)
    y = {"field": "label", "type": "nominal", "sort": None, "axis": name_axis(170, 12)}
    x = {
        "scale": {"domain": [-100, max(20, *(row["high"] for row in rows), 0)]},
        "axis": {"tickCount": 5, "title": "change of accuracy, in points"},
    }
    layers = [
        zero_rule("x"),
        interval_bar({"y": y, "color": TOLD}, "x", x, 4),
        estimate_dot({"y": y, "color": TOLD}, "x", x, 70),
    ]
    if floor["value"] is not None:
        band = {
            "x": {"datum": floor["low"], "type": "quantitative"},
            "x2": {"datum": floor["high"]},
        }
        layers.insert(
            0, {"mark": {"type": "rect", "color": LINE, "opacity": 0.6}, "encoding": band}
        )
    return {
        **frame(rows),
        "usermeta": {"labels": 182},
        "facet": facet_by("tier", rows),
        "columns": 1,
        "spacing": 18,
        "resolve": {"scale": {"y": "independent"}},
        "spec": {"height": {"step": 20}, "layer": layers},
    }


def doses(subject: Subject) -> Spec | None:
    """Accuracy against severity, the worst shifts first; those at ceiling are left out."""
    several = _by_shift(subject.report)
    lowest = {name: min(height_of(row.accuracy) for row in rows) for name, rows in several.items()}
    order = sorted((name for name in several if lowest[name] < CEILING), key=lowest.__getitem__)
    values = []
    for name in order[:MAX_PANELS]:
        first = several[name][0]
        values.append({**measured("0", first.clean, False), "panel": words(name)})
        for row in sorted(several[name], key=lambda one: one.label):
            severity = row.label.rpartition(":")[2]
            values.append({**measured(severity, row.accuracy, is_loss(row)), "panel": words(name)})
    return panels(values, "severity (0: clean)", 118) if values else None


def has_doses(agent: AgentReport) -> bool:
    """Whether any shift was run at several severities."""
    return bool(_by_shift(agent))


def task_kinds(subject: Subject) -> Spec | None:
    """Accuracy clean and over all shifts, for each kind of task."""
    values = []
    several = len(subject.report.worlds) > 1
    for row in sorted(subject.report.kinds, key=lambda row: height_of(row.accuracy)):
        panel = words(row.label if several else row.label.partition("/")[2])
        values.append({**measured("clean", row.clean, False), "panel": panel})
        values.append({**measured("shifted", row.accuracy, is_loss(row)), "panel": panel})
    return panels(values, None, 118) if values else None


def refusals(subject: Subject) -> Spec | None:
    """Refusals where they are right, and where they are wrong."""
    agent = subject.report
    if not agent.everything.unsolvable:
        return None
    rows = [
        measured("unsolvable", agent.everything.refusal_rate, False, clean=True),
        measured("solvable (wrong refusals)", agent.everything.wrong_refusal, False),
    ]
    if agent.look_alikes is not None:
        rows.append(measured("solvable, looks unsolvable", agent.look_alikes.wrong_refusal, False))
    colour = {"condition": {"test": "datum.clean", "value": INK}, "value": MUTED}
    y = {"field": "label", "type": "nominal", "sort": None, "axis": name_axis(180, 12)}
    base = {"y": y, "color": colour}
    return {
        **frame([row for row in rows if row["value"] is not None], height={"step": 28}),
        "layer": [interval_bar(base, "x", PERCENT, 4), estimate_dot(base, "x", PERCENT, 100)],
    }


def costs(subject: Subject) -> Spec:
    """Calls, tokens and seconds of an episode, clean and in each tier."""
    agent = subject.report
    values = []
    quick = all(took.median < 1 for took in subject.times.values())
    unit, scale = ("milliseconds", 1000) if quick else ("seconds", 1)
    for row in (agent.clean, *agent.tiers):
        label = "clean" if row is agent.clean else row.label
        took = subject.times.get(row.label)
        for panel, value in (
            ("calls", row.chain_length),
            ("tokens read", row.input_tokens),
            ("tokens written", row.output_tokens),
            (f"{unit} (median)", scale * took.median if took else 0.0),
        ):
            if value and not isnan(value):
                values.append({"label": label, "panel": panel, "value": value})
    y = {"field": "label", "type": "nominal", "sort": None, "axis": name_axis(112, 12)}
    return {
        **frame(values),
        "usermeta": {"across": 220, "labels": 124},
        "facet": facet_by("panel", values),
        "columns": 3,
        "resolve": {"scale": {"x": "independent"}},
        "spec": {
            "height": {"step": 22},
            "mark": {"type": "bar", "color": MUTED, "height": 9, "cornerRadiusEnd": 2},
            "encoding": {
                "y": y,
                "x": {
                    "field": "value",
                    "type": "quantitative",
                    "axis": {"title": None, "tickCount": 3},
                },
                "tooltip": [{"field": "label"}, {"field": "value", "format": ".3~g"}],
            },
        },
    }


def changes(rows: Iterable[tuple[str, str, Interval, bool]]) -> Spec:
    """Paired changes: (panel, label, change, significant); what got worse is on the left."""
    values = [
        {**measured(label, change, tip), "panel": shown(panel, 60)}
        for panel, label, change, tip in rows
    ]
    values = [value for value in values if value["value"] is not None]
    reach = max((abs(v[side]) for v in values for side in ("low", "high")), default=0)
    x = {
        "scale": {"domain": [-max(20, reach), max(20, reach)]},
        "axis": {"tickCount": 5, "title": "← worse    points    better →"},
    }
    y = {"field": "label", "type": "nominal", "sort": None, "axis": name_axis(112, 12)}
    colour = {
        "condition": [
            {"test": "datum.told && datum.value < 0", "value": ACCENT},
            {"test": "datum.told", "value": INK},
        ],
        "value": MUTED,
    }
    base = {"y": y, "color": colour}
    return {
        **frame(values),
        "usermeta": {"across": 230, "labels": 124},
        "facet": facet_by("panel", values),
        "columns": 2,
        "spec": {
            "height": {"step": 22},
            "layer": [
                zero_rule("x"),
                interval_bar(base, "x", x, 4),
                estimate_dot(base, "x", x, 80),
            ],
        },
    }


def curves(points: Sequence[tuple[str, str, float, Interval]], axis: str) -> Spec:
    """Accuracy over training: (panel, series, step, accuracy)."""
    values = [
        {**measured("", accuracy, False), "panel": panel, "series": shown(series, 40), "step": step}
        for panel, series, step, accuracy in points
    ]
    names = list(dict.fromkeys(value["series"] for value in values))
    colours = [INK, MUTED]  # the dashes tell the rest; the accent is for losses
    series = {
        "field": "series",
        "type": "nominal",
        "sort": None,
        "scale": {"domain": names, "range": [colours[i % 2] for i in range(len(names))]},
        "legend": {"orient": "top", "title": None} if len(names) > 1 else None,
    }
    dash = {"field": "series", "type": "nominal", "sort": None, "legend": None}
    x = {"field": "step", "type": "quantitative", "axis": {"title": axis, "tickCount": 4}}
    y = {"field": "value", "type": "quantitative", **PERCENT}
    spread = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    return {
        **frame(values),
        "usermeta": {"across": 190},
        "facet": facet_by("panel", values),
        "columns": 3,
        "spec": {
            "height": 130,
            "layer": [
                {
                    "mark": {"type": "rule", "opacity": 0.5},
                    "encoding": {"x": x, "color": series, **spread},
                },
                {
                    "mark": {"type": "line", "point": {"size": 40}},
                    "encoding": {"x": x, "y": y, "color": series, "strokeDash": dash},
                },
            ],
        },
    }


def _by_shift(agent: AgentReport) -> dict[str, list[Measures]]:
    """The rows of each shift that was run at several severities."""
    rows_of: dict[str, list[Measures]] = {}
    for row in agent.severities:
        name, _, severity = row.label.rpartition(":")
        if "+" not in name and severity.isdigit():
            rows_of.setdefault(name, []).append(row)
    return {name: rows for name, rows in rows_of.items() if len(rows) > 1}
