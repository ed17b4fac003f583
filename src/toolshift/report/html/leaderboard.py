"""Many runs on one static page: agents by suite, with intervals, and what can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.files import write, writing
from toolshift.core.shift import split_version
from toolshift.core.tool import JSON
from toolshift.measure.comparable import Comparability, comparability
from toolshift.measure.metrics import TIER_ORDER, Measures
from toolshift.measure.report import AgentReport, Report
from toolshift.report.figures import shown
from toolshift.report.html.method import facts
from toolshift.report.html.page import POLICY, asset, environment
from toolshift.report.html.subjects import run_name
from toolshift.report.words import marks_of
from toolshift.runs.run_folder import RunFolder


@dataclass(frozen=True)
class Entry:
    """One agent of one run.

    Attributes:
        at: where its report stands among those of the page: /RUN/agents/NUMBER.
        run: the name of the run.
        label: its name, with what marks its results.
        tiers: its rows by tier, each with its place in the report.
        mean: the mean of its accuracies in the tiers, by which entries are ordered; may be NaN.
    """

    at: str
    run: str
    label: str
    report: AgentReport
    tiers: dict[str, tuple[int, Measures]]
    mean: float


def write_leaderboard(folders: Sequence[RunFolder], reports: Sequence[Report], out: Path) -> Path:
    """Writes `index.html` and `leaderboard.json`."""
    comparable = comparability(folders)
    page = make_leaderboard(folders, reports, comparable)
    names = [run_name(folder) for folder in folders]
    data = {"runs": names, "reports": reports, "comparable": comparable}
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        write(out / "leaderboard.json", msgspec.json.format(JSON.encode(data), indent=2) + b"\n")
        write(out / "index.html", page.encode())
    return out / "index.html"


def make_leaderboard(
    folders: Sequence[RunFolder], reports: Sequence[Report], comparable: Comparability
) -> str:
    """The page as text."""
    pairs = zip(folders, reports, strict=True)
    entries = [_entries(place, *pair) for place, pair in enumerate(pairs)]
    if not any(entries):
        raise UsageError("none of these runs has an episode, so there is nothing to rank")
    groups = [
        {
            "group": group,
            "title": _title(number, group.suite, comparable),
            "entries": sorted((entry for run in group.runs for entry in entries[run]), key=_order),
            "facts": facts(folders[group.runs[0]]),
            "runs": [run_name(folders[run]) for run in group.runs],
        }
        for number, group in enumerate(comparable.groups)
    ]
    text: str = (
        environment()
        .get_template("leaderboard.html.j2")
        .render(
            groups=groups,
            apart=comparable.apart,
            tiers=_tiers(entries),
            agents=_matrix(groups),
            shifts=_versions(folders, comparable),
            worst=_worst,
            css=asset("page.css"),
            policy=POLICY.format(scripts="'none'"),
        )
    )
    return text


def _entries(place: int, folder: RunFolder, report: Report) -> list[Entry]:
    entries = []
    for number, agent in enumerate(report.agents):
        tiers = {row.label: (at, row) for at, row in enumerate(agent.tiers)}
        rates = [row.accuracy.estimate for row in agent.tiers if not isnan(row.accuracy.estimate)]
        mean = sum(rates) / len(rates) if rates else float("nan")
        marks = f" [{shown(marks_of(agent), 80)}]" if marks_of(agent) else ""
        label = f"{shown(agent.name, 80)}{marks}"
        at = f"/{place}/agents/{number}"
        entries.append(Entry(at, run_name(folder), label, agent, tiers, mean))
    return entries


def _order(entry: Entry) -> tuple[float, float, str]:
    """The mean over the tiers, then clean accuracy, then the name; what is undefined is last."""
    rates = (entry.mean, entry.report.clean.accuracy.estimate)
    first, second = (1.0 if isnan(rate) else -rate for rate in rates)
    return first, second, entry.label


def _title(number: int, suite: str, comparable: Comparability) -> str:
    """What a group is called: its suite, numbered where several have the same."""
    same = [place for place, group in enumerate(comparable.groups) if group.suite == suite]
    return f"{shown(suite)}, plan {same.index(number) + 1}" if len(same) > 1 else shown(suite)


def _tiers(entries: Sequence[Sequence[Entry]]) -> list[str]:
    had = {tier for row_entries in entries for entry in row_entries for tier in entry.tiers}
    return [tier for tier in TIER_ORDER if tier in had]


def _matrix(groups: Sequence[dict[str, Any]]) -> list[tuple[str, list[list[Entry]]]]:
    """Every agent by name, with its entries in each group."""
    names = dict.fromkeys(entry.label for group in groups for entry in group["entries"])
    return [
        (name, [[e for e in group["entries"] if e.label == name] for group in groups])
        for name in names
    ]


def _worst(entry: Entry) -> tuple[int, Measures] | None:
    """The tier that costs most, of those whose drop is defined."""
    rows = [pair for pair in entry.tiers.values() if pair[1].defined]
    return max(rows, key=lambda pair: pair[1].drop.estimate, default=None)


def _versions(
    folders: Sequence[RunFolder], comparable: Comparability
) -> list[tuple[str, list[str], bool]]:
    """Each shift with its version in each group, and whether the versions differ."""
    had = [
        {split_version(name)[0]: str(version) for name, version in shifts.items()}
        for shifts in (folders[group.runs[0]].manifest.shifts for group in comparable.groups)
    ]
    names = sorted({name for shifts in had for name in shifts})
    return [
        (
            name,
            [shifts.get(name, "–") for shifts in had],
            len({shifts[name] for shifts in had if name in shifts}) > 1,
        )
        for name in names
    ]
