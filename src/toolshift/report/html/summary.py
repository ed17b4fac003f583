"""What a reader must know first, in plain words: how well the agent does, where it breaks, and why.

The sentences are made by rule from the measures. Only what differs significantly from chance and
from the placebo arm is called a loss; one of too few tasks is given in counts, and said to be so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from math import isnan
from pathlib import Path
from typing import Literal

from toolshift.core.shift import split_version, without_versions
from toolshift.measure.diagnosis import (
    CEILING,
    FLOOR,
    at_ceiling,
    bounds_of,
    broke_down,
    doubt,
    is_loss,
    kinds,
    smallest_loss,
    untold,
    untold_loss,
    words,
)
from toolshift.measure.metrics import Measures
from toolshift.measure.report import AgentReport
from toolshift.report.html.figures import share, shown, signed

Verdict = Literal["breaks", "unsure", "holds", "undefined"]
UNDER_HALF = "clean score under 50%"


def headline(each: AgentReport, name: str = "") -> str:
    """One sentence about an agent for a reader who has not run it; `name` begins it if given."""
    rate = each.clean.accuracy.estimate
    if isnan(rate):
        why = kinds(each.clean.void_kinds) or "none has been run"
        text = f"No episode could be scored without a shift ({why}), so no score can be estimated."
        return f"{name}: {text[0].lower()}{text[1:]}" if name else text
    text = f"{name} solves" if name else "Solves"
    text += f" {share(each.clean.stated.estimate)} of clean tasks"
    crashed, episodes = each.crashed, each.everything.episodes
    if crashed is None or crashed.episodes < FLOOR * episodes:
        return text + _rest(each)
    rest = _rest(each) if each.clean.clean_defined else "."
    return f"{text}{rest} {shown(broke_down(crashed, episodes), 1000)}"


def verdict(each: AgentReport) -> Verdict:
    """Whether the agent loses accuracy under shift, as far as can be told."""
    if not each.clean.clean_defined:
        return "undefined"
    if _losses(each.tiers) or _losses(each.shifts):
        return "breaks"
    return "unsure" if unsure(each) else "holds"


def unsure(each: AgentReport) -> str:
    """The greatest loss, in counts, where none is significant; "" where there is none."""
    row = untold(each.tiers, each.shifts)
    return shown(untold_loss(row, why(row)), 1000) if row else ""


def doubts(each: AgentReport) -> str:
    """Why that loss is not significant; "" where there is none."""
    row = untold(each.tiers, each.shifts)
    return doubt(row) if row else ""


def worst(rows: Sequence[Measures], most: int = 2) -> list[tuple[int, Measures]]:
    """The rows that lose most, with their places in the table; only significant losses."""
    return sorted(_losses(rows), key=lambda pair: -pair[1].drop.estimate)[:most]


def main_cause(row: Measures) -> tuple[str, int, int] | None:
    """The commonest cause of a row's failures, how many it explains, and of how many."""
    if not row.causes:
        return None
    cause, count = next(iter(row.causes.items()))
    return cause, count, sum(row.causes.values())


def why(row: Measures) -> str:
    """The main cause as a clause: "it calls names that no longer exist"."""
    found = main_cause(row)
    if found is None:
        return ""
    cause, count, failures = found
    clause = phrases()["causes"].get(cause, f"the commonest cause is {shown(words(cause))}")
    return clause if 2 * count >= failures else f"most often, {clause}"


def next_step(row: Measures) -> str:
    """What to do about a row's commonest cause; "" where nothing is known to help."""
    found = main_cause(row)
    return phrases()["next"].get(found[0], "") if found else ""


def when(row: Measures) -> str:
    """A shift or tier as a clause: "tools are renamed"."""
    said = phrases()
    for table in ("tiers", "shifts"):
        if without_versions(row.label) in said[table]:
            return said[table][without_versions(row.label)]
    names = [split_version(name)[0] for name in row.label.split("+")]
    parts = [said["shifts"].get(name, shown(words(name))) for name in names]
    if len(parts) > 1:
        return " and ".join(parts)
    return f"{parts[0]} is applied"


def sureness(each: AgentReport) -> list[tuple[str, str]]:
    """How sure one can be of an agent's figures: what, and how much."""
    said = [("Episodes", f"{each.everything.episodes:,}")]
    if each.placebo is None:
        said.append(("Noise floor", "undefined: no placebo arm"))
    elif not each.placebo.defined:
        said.append(("Noise floor", f"undefined: {UNDER_HALF}"))
    else:
        floor = each.placebo.drop
        middle, low, high = (signed(-100 * v) for v in (floor.estimate, floor.high, floor.low))
        said.append(("Noise floor", f"{middle} [{low}, {high}] points"))
    if smallest := smallest_loss(each.tiers):
        said.append(("Smallest loss a tier would show", smallest))
    if not isnan(each.everything.flip_rate):
        said.append(("Trials that disagree", share(each.everything.flip_rate)))
    if each.crashed:
        said.append(("Its own code broke down", f"in {each.crashed.episodes:,} episodes"))
    said.append(("Infrastructure errors", f"{each.infrastructure}"))
    if each.everything.void > each.infrastructure or each.everything.void_matters:
        found = kinds(each.everything.void_kinds)
        beside = f" (accuracy {bounds_of(each.everything)})" if each.everything.void_matters else ""
        said.append(("Void episodes", found + beside))
    if not each.complete:
        said.append(("Unfinished", "not every planned episode has been run"))
    return said


@cache
def phrases() -> dict[str, dict[str, str]]:
    """Shifts, tiers and causes in plain words."""
    file = Path(__file__).with_name("phrases.toml")
    found: dict[str, dict[str, str]] = tomllib.loads(file.read_text(encoding="utf-8"))
    return found


def undefined_because(row: Measures) -> str:
    """Why a row has no drop."""
    if isnan(row.clean.estimate):
        return "no clean score"
    return UNDER_HALF if row.clean.estimate < 0.5 else "no scored episode"


def _rest(each: AgentReport) -> str:
    rate = each.clean.accuracy.estimate
    if not each.clean.clean_defined:
        return _undefined(each, rate)
    found = worst(each.shifts, 1) or worst(each.tiers, 1)
    if found:
        row = found[0][1]
        does = f"gets {share(row.accuracy.estimate)} right" if row.unsolvable else ""
        text = f" and {does or share(row.accuracy.estimate)} once {when(row)}"
        return f"{text}: {reason}." if (reason := why(row)) else f"{text}."
    if not each.tiers:
        return ". No shift has been run."
    if at_ceiling(each.tiers, each.shifts):
        return f" and at least {share(CEILING)} in every tier: these shifts do not find its limits."
    if loss := unsure(each):
        return f", but {loss[0].lower()}{loss[1:]}"
    return ". No shift makes a significant difference."


def _undefined(each: AgentReport, rate: float) -> str:
    if rate <= FLOOR:
        return ": there is hardly anything that a shift could take away."
    text = ", too few for a loss to be defined"
    kept = [row for row in each.tiers if row.retention.n]
    if not kept:
        return f"{text}."
    row = min(kept, key=lambda one: one.retention.estimate)
    text += f"; of those it keeps {share(row.retention.estimate)} once {when(row)}"
    return f"{text}: {reason}." if (reason := why(row)) else f"{text}."


def _losses(rows: Sequence[Measures]) -> list[tuple[int, Measures]]:
    return [(place, row) for place, row in enumerate(rows) if is_loss(row)]
