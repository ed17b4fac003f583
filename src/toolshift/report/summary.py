"""What a reader must know first, in plain words: how well the agent does, where it breaks, and why.

The sentences are made by rule from the measures. Only what differs significantly from chance and
from the placebo arm is called a loss; one of too few tasks is given in counts, and said to be so.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import isnan
from typing import Literal

from toolshift.core.shift import split_version, without_versions
from toolshift.core.tables import table_beside
from toolshift.measure.diagnosis import (
    CEILING,
    FLOOR,
    at_ceiling,
    bounds_of,
    broke_down,
    doubt,
    gaps,
    is_loss,
    kinds,
    smallest_loss,
    untold,
    untold_loss,
    words,
)
from toolshift.measure.metrics import Measures
from toolshift.measure.report import AgentReport
from toolshift.report.figures import share, shown, signed

Verdict = Literal["breaks", "unsure", "unmeasured", "holds", "undefined"]
UNDER_HALF = "clean score under 50%"


def headline(agent: AgentReport, name: str = "") -> str:
    """One sentence about an agent for a reader who has not run it; `name` begins it if given."""
    rate = agent.clean.accuracy.estimate
    if isnan(rate):
        why = kinds(agent.clean.void_kinds) or "none has been run"
        text = f"No episode could be scored without a shift ({why}), so no score can be estimated."
        return f"{name}: {text[0].lower()}{text[1:]}" if name else text
    text = f"{name} solves" if name else "Solves"
    text += f" {share(agent.clean.stated.estimate)} of clean tasks"
    crashed, episodes = agent.crashed, agent.everything.episodes
    beside = [shown(one, 1000) for one in gaps(agent.shifts)]
    if crashed is None or crashed.episodes < FLOOR * episodes:
        return " ".join([text + _rest(agent), *beside])
    rest = _rest(agent) if agent.clean.clean_defined else "."
    return " ".join([text + rest, *beside, shown(broke_down(crashed, episodes), 1000)])


def verdict(agent: AgentReport) -> Verdict:
    """Whether the agent loses accuracy under shift, as far as can be told."""
    if not agent.clean.clean_defined:
        return "undefined"
    if _losses(agent.tiers) or _losses(agent.shifts):
        return "breaks"
    if unsure(agent):
        return "unsure"
    return "unmeasured" if any(row.unmeasured for row in agent.shifts) else "holds"


def unsure(agent: AgentReport) -> str:
    """The greatest loss, in counts, where none is significant; "" where there is none."""
    row = untold(agent.tiers, agent.shifts)
    return shown(untold_loss(row, why(row)), 1000) if row else ""


def doubts(agent: AgentReport) -> str:
    """Why that loss is not significant; "" where there is none."""
    row = untold(agent.tiers, agent.shifts)
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
    main = main_cause(row)
    if main is None:
        return ""
    cause, count, failures = main
    clause = cause_in_words(cause)
    return clause if 2 * count >= failures else f"most often, {clause}"


def cause_in_words(cause: str) -> str:
    """A cause as a clause: "it calls names that no longer exist"."""
    return phrases()["causes"].get(cause, f"the most frequent cause is {shown(words(cause))}")


def next_step(row: Measures) -> str:
    """What to do about a row's commonest cause; "" where nothing is known to help."""
    main = main_cause(row)
    return phrases()["next"].get(main[0], "") if main else ""


def when(row: Measures) -> str:
    """A shift or tier as a clause: "tools are renamed"."""
    return in_words(row.label)


def in_words(label: str) -> str:
    """The label of a shift or tier as a clause."""
    known = phrases()
    for table in ("tiers", "shifts"):
        if without_versions(label) in known[table]:
            return known[table][without_versions(label)]
    names = [split_version(name)[0] for name in label.split("+")]
    parts = [known["shifts"].get(name, shown(words(name))) for name in names]
    if len(parts) > 1:
        return " and ".join(parts)
    return f"{parts[0]} is applied"


def ability(tier: str) -> str:
    """What a tier asks of an agent: "reads what is in front of it"; "" for another group."""
    return phrases()["abilities"].get(tier, "")


def _replies(agent: AgentReport) -> list[tuple[str, str]]:
    """Replies that may be counted as something else than was meant."""
    rows = []
    if agent.unread:
        place = f"counted as prose (episode {shown(agent.unread.example)})"
        text = f"{agent.unread.replies:,}, {place}"
        rows.append(("Replies with a probable tool call that could not be read", text))
    if agent.empty:
        where = f"text only in {' and '.join(agent.empty.beside)}, " if agent.empty.beside else ""
        text = f"{agent.empty.replies:,}, {where}episode {shown(agent.empty.example)}"
        rows.append(("Empty replies (no text, no tool call)", text))
    return rows


def sureness(agent: AgentReport) -> list[tuple[str, str]]:
    """How sure one can be of an agent's figures: what, and how much."""
    rows = [("Episodes", f"{agent.everything.episodes:,}")]
    if agent.placebo is None:
        rows.append(("Noise floor", "undefined: no placebo arm"))
    elif not agent.placebo.defined:
        rows.append(("Noise floor", f"undefined: {UNDER_HALF}"))
    else:
        floor = agent.placebo.drop
        middle, low, high = (signed(-100 * v) for v in (floor.estimate, floor.high, floor.low))
        rows.append(("Noise floor", f"{middle} [{low}, {high}] points"))
    if smallest := smallest_loss(agent.tiers):
        rows.append(("Smallest detectable loss of a tier", smallest))
    if not isnan(agent.everything.flip_rate):
        rows.append(("Trials that disagree", share(agent.everything.flip_rate)))
    if agent.crashed:
        rows.append(("Its own code broke down", f"in {agent.crashed.episodes:,} episodes"))
    rows += _replies(agent)
    rows.append(("Infrastructure errors", f"{agent.infrastructure}"))
    causes = kinds(agent.everything.void_kinds)
    if causes and (agent.everything.void > agent.infrastructure or agent.everything.void_matters):
        beside = (
            f" (accuracy {bounds_of(agent.everything)})" if agent.everything.void_matters else ""
        )
        rows.append(("Void episodes", causes + beside))
    if agent.everything.unclear:
        told = f"{agent.everything.unclear} (accuracy {bounds_of(agent.everything)})"
        rows.append(("Unclear answers", told))
    if not agent.complete:
        rows.append(("Unfinished", "not every planned episode has been run"))
    return rows


@cache
def phrases() -> dict[str, dict[str, str]]:
    """Shifts, tiers and causes in plain words."""
    return table_beside(__file__, "phrases.toml")


def undefined_because(row: Measures) -> str:
    """Why a row has no drop."""
    if row.unmeasured:
        return "no scored episode"
    if isnan(row.clean.estimate):
        return "no clean score"
    if row.clean.estimate < 0.5:
        return UNDER_HALF
    return "no scored episode" if isnan(row.accuracy.estimate) else "decided shift by shift"


def _rest(agent: AgentReport) -> str:
    rate = agent.clean.accuracy.estimate
    if not agent.clean.clean_defined:
        return _undefined(agent, rate)
    losses = worst(agent.shifts, 1) or worst(agent.tiers, 1)
    if losses:
        row = losses[0][1]
        does = f"gets {share(row.accuracy.estimate)} right" if row.unsolvable else ""
        text = f" and {does or share(row.accuracy.estimate)} once {when(row)}"
        return f"{text}: {reason}." if (reason := why(row)) else f"{text}."
    if not agent.tiers:
        return ". No shift has been run."
    if at_ceiling(agent.tiers, agent.shifts):
        return (
            f" and at least {share(CEILING)} in every tier: these shifts do not reach its limits."
        )
    if loss := unsure(agent):
        return f", but {loss[0].lower()}{loss[1:]}"
    if all(row.unmeasured for row in agent.shifts):
        return "."
    that = " that was measured" if any(row.unmeasured for row in agent.shifts) else ""
    return f". No shift{that} makes a significant difference."


def _undefined(agent: AgentReport, rate: float) -> str:
    if rate <= FLOOR:
        return ": there is hardly anything left to lose under a shift."
    text = ", too few for a loss to be defined"
    kept = [row for row in agent.tiers if row.retention.n]
    if not kept:
        return f"{text}."
    row = min(kept, key=lambda one: one.retention.estimate)
    text += f"; of those it keeps {share(row.retention.estimate)} once {when(row)}"
    return f"{text}: {reason}." if (reason := why(row)) else f"{text}."


def _losses(rows: Sequence[Measures]) -> list[tuple[int, Measures]]:
    return [(place, row) for place, row in enumerate(rows) if is_loss(row)]
