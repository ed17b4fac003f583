"""What an episode earns in training: the grader's verdict, and terms that may be added to it.

The default is the verdict alone. A process term pays for the way instead of the end, and whatever
is paid for beside the end may be had without it; so each term below says what it could distort,
and none is on unless it is asked for. The parts are kept apart in the curves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import NamedTuple

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.episode.episode import Episode
from toolshift.episode.grade import Grade, grade


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much each term counts; 0 leaves it out. Terms are described at their functions.

    Attributes:
        solved: for a solvable scene that is solved.
        refused: for an unsolvable scene that is refused rightly; 0 asks whether refusal survives
            where nothing pays for it.
        unreadable: taken off for calls that cannot be read, and for an end without any.
        failed: taken off for failed calls that were the agent's own fault.
        recovered: for getting over failures that the interface provoked.
        surplus: taken off for calls beyond what the oracle needs, where the episode passed.
        over_refusal: taken off for refusing a solvable scene.
        blind_refusal: taken off for refusing an unsolvable scene before there was evidence.
        forced: taken off for answering an unsolvable scene.
    """

    solved: float = 1.0
    refused: float = 1.0
    unreadable: float = 0.0
    failed: float = 0.0
    recovered: float = 0.0
    surplus: float = 0.0
    over_refusal: float = 0.0
    blind_refusal: float = 0.0
    forced: float = 0.0


class Earned(NamedTuple):
    """What one episode earned.

    Attributes:
        total: the sum; None where the episode teaches nothing (`TEACHES_NOTHING`).
        parts: the terms that count, each with its weight.
        grade: the verdict.
    """

    total: float | None
    parts: dict[str, float]
    grade: Grade


Term = Callable[[Episode, Grade], float]
Pay = Callable[[Episode], Earned | float | None]
"""Says what a finished episode earned: `earn`, or a function of your own, which may as well return
a number, or None where the episode teaches nothing."""


def solved(episode: Episode, verdict: Grade) -> float:
    """1 for the right answers with the right effects in a solvable scene.

    The outcome itself. It cannot tell a good way from a lucky one.
    """
    return float(verdict.solvable and verdict.passed)


def refused(episode: Episode, verdict: Grade) -> float:
    """1 for a refusal of an unsolvable scene after the evidence, and without a write.

    The outcome itself, on the other side. Too large a share of unsolvable scenes makes refusing
    a good guess everywhere: watch over-refusal in the curves.
    """
    return float(not verdict.solvable and verdict.passed)


def unreadable(episode: Episode, verdict: Grade) -> float:
    """Minus the share of calls whose arguments could not be read; -1 for an end without a call.

    For a start from a model that hardly writes calls: its outcomes are all 0 and teach nothing.
    It may teach to call once, whatever, and then to answer.
    """
    calls = [step for step in episode.steps if step.kind == "call"]
    broken = sum(step.malformed for step in calls)
    if not calls:
        return -float(verdict.oracle_calls > 0)
    return -broken / len(calls)


def failed(episode: Episode, verdict: Grade) -> float:
    """Minus the share of calls that failed by the agent's own fault.

    Unknown names, wrong arguments, things that are not there. It may teach timidity: under a
    shift, a call that fails is often how one learns.
    """
    own = verdict.errors - verdict.provoked
    return -own / verdict.calls if verdict.calls else 0.0


def recovered(episode: Episode, verdict: Grade) -> float:
    """The share of the failures that the interface provoked after which a call succeeded.

    For scenes with disturbances, whose outcome is reached too rarely to be learned from. It pays
    for any call that succeeds, also a useless one, so keep it well below the outcome. It is 0
    where nothing was provoked, which favours no scene: rewards are compared within one scene.
    """
    calls = [step for step in episode.steps if step.kind == "call"]
    provoked = [number for number, step in enumerate(calls) if step.provoked]
    got_over = [n for n in provoked if any(step.ok for step in calls[n + 1 :])]
    return len(got_over) / len(provoked) if provoked else 0.0


def surplus(episode: Episode, verdict: Grade) -> float:
    """Minus the calls beyond the oracle's, as a share of the oracle's, at most 1; passes only.

    For economy. Only passes pay it, or giving up early would be cheapest. It may teach to skip a
    check that this scene did not need and the next one does.
    """
    if not verdict.passed:
        return 0.0
    more = verdict.calls - verdict.oracle_calls  # the oracle meets provoked failures too
    return -min(1.0, max(0, more) / max(1, verdict.oracle_calls))


def over_refusal(episode: Episode, verdict: Grade) -> float:
    """-1 for refusing a solvable scene.

    Below a failure that tried. It counters a drift into refusing everything, and may teach
    answering without evidence instead.
    """
    return -float(verdict.solvable and verdict.refused)


def blind_refusal(episode: Episode, verdict: Grade) -> float:
    """-1 for refusing an unsolvable scene without evidence, or after a write.

    The outcome already withholds its pay; this makes guessing cost. It may teach never to refuse.
    """
    return -float(not verdict.solvable and verdict.refused and not verdict.passed)


def forced(episode: Episode, verdict: Grade) -> float:
    """-1 for answering an unsolvable scene.

    The research's failure by name. The outcome withholds its pay already; with this, a wrong
    refusal is the better guess of the two, so over-refusal may grow.
    """
    return -float(not verdict.solvable and verdict.end == "answered")


TERMS: dict[str, Term] = {
    "solved": solved,
    "refused": refused,
    "unreadable": unreadable,
    "failed": failed,
    "recovered": recovered,
    "surplus": surplus,
    "over_refusal": over_refusal,
    "blind_refusal": blind_refusal,
    "forced": forced,
}
"""Every term by the name of its weight."""


TEACHES_NOTHING = ("infrastructure", "unrecorded", "broken_shift", "own_outage")
"""Kinds of void episode that are paid nothing at all. One in which the simulated user understood no
question is paid as the failure that it is, or asking nonsense would be a way out of every term."""


def earn(episode: Episode, weights: Weights = Weights()) -> Earned:
    """Grades a finished episode, and says what it earned."""
    verdict = grade(episode)
    parts = {
        name: weight * term(episode, verdict)
        for name, term in TERMS.items()
        if (weight := getattr(weights, name))
    }
    silent = verdict.void and verdict.cause in TEACHES_NOTHING
    return Earned(None if silent else sum(parts.values()), parts, verdict)


def paid(pay: Pay, episode: Episode) -> Earned:
    """What a function pays for a finished episode.

    Args:
        pay: the reward function.
        episode: that has ended.

    Returns:
        The total with its parts; no parts where the function returned a number.

    Raises:
        UsageError: where that is neither a finite number nor None.
    """
    said = pay(episode)
    earned = said if isinstance(said, Earned) else Earned(said, {}, grade(episode))
    if earned.total is None:
        return earned
    if not (isinstance(earned.total, Real) and math.isfinite(earned.total)):
        name = getattr(pay, "__qualname__", type(pay).__name__)
        raise UsageError(
            f"the reward function {name} returned {earned.total!r} for an episode that ended "
            f"{earned.grade.end!r}; it must return a finite number, or None to leave the episode "
            "out"
        )
    return earned._replace(total=float(earned.total))


def read_weights(entries: Sequence[str]) -> Weights:
    """Reads weights of the reward such as "surplus=0.1"; what is not named keeps its default."""
    weights = Weights()
    for entry in entries:
        name, _, value = entry.partition("=")
        if name not in TERMS:
            raise UsageError(unknown("term of the reward", name, TERMS))
        try:
            weights = msgspec.structs.replace(weights, **{name: float(value)})
        except ValueError:
            raise UsageError(f"--reward {entry}: write a number, as in {name}=0.1") from None
    return weights


def check(weights: Weights) -> None:
    """Checks the weights of a reward."""
    for name in TERMS:
        weight = getattr(weights, name)
        if not 0 <= weight < float("inf"):
            raise UsageError(
                f"the reward's weight {name} is {weight:g}: weights must be 0 or more; a penalty "
                "is already negative"
            )
    if not weights.solved and not weights.refused:
        raise UsageError("the reward rewards no outcome: give solved or refused a weight above 0")
