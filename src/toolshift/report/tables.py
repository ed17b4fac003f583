"""The tables of one agent: by shift, by whatever a report groups by, and how the agent behaved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import isnan

from rich.table import Table
from rich.text import Text

from toolshift.core.text import visible
from toolshift.measure.diagnosis import points, words
from toolshift.measure.metrics import Measures
from toolshift.measure.report import AgentReport
from toolshift.measure.statistics import Interval

GROUPINGS = ("tiers", "dimensions", "cells", "shifts", "severities", "kinds", "worlds")
BEHAVIOUR = (
    "n: tasks; at 1 2 3: accuracy at each severity. met: share of episodes that met the shift; "
    "acc, diff: accuracy of these episodes, and its change in points; TER: tool error rate, own: "
    "without errors that the shift causes; AES: active exploration score; ATCL: average tool "
    "chain length, rel: relative to the oracle's; ref: share of unsolvable scenes refused, why: "
    "share of these refusals with the right reason; over: share of solvable scenes refused "
    "(wrong refusals); pass^k: all k trials pass."
)


def shift_table(rows: Sequence[Measures], severities: Sequence[Measures]) -> Table:
    """One row a shift, under its tier."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    levels = sorted({row.label.rpartition(":")[2] for row in severities if "+" not in row.label})
    table.add_column("shift", no_wrap=True)
    for column in ("n", "clean", "shifted"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in [*["at 1 2 3"] * (len(levels) > 1), "change"]:
        table.add_column(column, no_wrap=True)
    table.add_column("main cause", overflow="fold")
    for tier in dict.fromkeys(row.tier for row in rows):
        table.add_row(Text(tier, style="bold"))
        for row in rows:
            if row.tier == tier:
                style = None if row.significant or not row.defined else "dim"
                table.add_row(*_shift_cells(row, severities, levels), style=style)
    return table


def group_table(rows: Sequence[Measures]) -> Table:
    """One row a group, whatever the groups are."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("", no_wrap=True)
    for column in ("n", "episodes", "clean", "shifted", "keeps"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("change", no_wrap=True)
    table.add_column("main cause", overflow="fold")
    for row in rows:
        style = None if row.significant or not row.defined else "dim"
        table.add_row(
            _label(row.label),
            str(row.tasks),
            str(row.episodes),
            rate(row.clean),
            rate(row.accuracy),
            rate(row.retention),
            _change_cell(row),
            _main_cause(row),
            style=style,
        )
    return table


def behaviour_table(rows: Sequence[Measures]) -> Table:
    """How the agent went about it, group by group."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("", no_wrap=True)
    trials = min((len(row.pass_hat) for row in rows if row.pass_hat), default=0)
    columns = ["met", "acc", "diff", "TER", "own", "AES", "ATCL", "rel", "ref", "why", "over"]
    for column in [*columns, *[f"pass^{trials}"] * (trials > 1)]:
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        cells = [
            _share(row.met),
            rate(row.accuracy_met),
            change(row.drop_met)[0] if row.drop_met.n else "-",
            _share(row.tool_error_rate),
            _share(row.own_error_rate),
            _plain(row.exploration),
            _plain(row.chain_length),
            f"x{_plain(row.calls_to_oracle)}",
            rate(row.refusal_rate),
            _share(row.right_reason),
            rate(row.wrong_refusal),
        ]
        if trials > 1:
            cells.append(_share(row.pass_hat[trials - 1]) if row.pass_hat else "-")
        table.add_row(_label(row.label), *cells)
    return table


def groups_of(each: AgentReport, name: str) -> list[Measures]:
    """A table of an agent's report by its name in `GROUPINGS`."""
    rows: list[Measures] = getattr(each, name)
    return rows


def change(drop: Interval) -> tuple[str, str]:
    """A drop as text, and its limits as text."""
    middle, _, limits = points(drop).removesuffix(" points").partition(" ")
    return middle, limits


def change_all(row: Measures) -> str:
    """The change with void episodes as failures, as text; "" where it is not of interest."""
    return "" if isnan(row.drop_all.estimate) else f"all {change(row.drop_all)[0]}"


def rate(value: Interval) -> str:
    """A rate in percent."""
    return _share(value.estimate)


def row_of(table: Sequence[Measures], label: str) -> Measures | None:
    """The row of a label."""
    return next((row for row in table if row.label == label), None)


_LABEL = 36
"""The most columns of a label; longer ones are folded."""


def _label(text: str) -> Text:
    """A label, folded behind a `+` where it can be.

    Rich folds where a column ends, and where two columns can be folded takes from the wrong one.
    """
    lines = [""]
    for part in re.findall(r"[^+]*\+|[^+]+", visible(text)):
        pieces = [part[at : at + _LABEL] for at in range(0, len(part), _LABEL)]
        for piece in pieces:
            if lines[-1] and len(lines[-1]) + len(piece) > _LABEL:
                lines.append("")
            lines[-1] += piece
    return Text("\n".join(lines))


def _shift_cells(
    row: Measures, severities: Sequence[Measures], levels: Sequence[str]
) -> Iterator[str | Text]:
    yield _label(row.label)
    yield str(row.tasks)
    yield rate(row.clean)
    yield rate(row.accuracy)
    if len(levels) > 1:
        each = (row_of(severities, f"{row.label}:{level}") for level in levels)
        yield " ".join(rate(one.accuracy).rstrip("%") if one else "-" for one in each)
    yield _change_cell(row)
    yield _main_cause(row)


def _change_cell(row: Measures) -> Text:
    strict = f" {said}" if (said := change_all(row)) else ""
    if not row.defined:
        kept = row.retention.estimate
        return Text(("not defined" if isnan(kept) else f"keeps {100 * kept:.0f}%") + strict)
    middle, limits = change(row.drop)
    return Text(f"{middle} {limits}{' *' if row.significant else ''}{strict}")


def _main_cause(row: Measures) -> str:
    if not row.causes:
        return ""
    cause, count = next(iter(row.causes.items()))
    return f"{words(cause)} {count / sum(row.causes.values()):.0%}"


def _share(value: float) -> str:
    return "-" if isnan(value) else f"{100 * value:.0f}%"


def _plain(value: float) -> str:
    return "-" if isnan(value) else f"{value:.2f}"
