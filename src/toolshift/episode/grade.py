"""Grades an episode: outcome by rule, measures of the trace, root cause of a failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.core.tool import BROKEN_SHIFT, DROPPED, NOT_RECORDED, OWN_OUTAGE
from toolshift.episode.causes import cause_of, current_name
from toolshift.episode.episode import End, Episode
from toolshift.episode.grading_rules import (
    answer_verdicts,
    answers_right,
    effects_of,
    is_decisive,
    is_shown,
)
from toolshift.reading.text import fold

SIMULATOR = "simulator"
"""The cause of an episode in which the simulated user understood no question that it needed."""

AT_WILL = (OWN_OUTAGE, SIMULATOR, DROPPED)
"""The kinds of void that an agent can bring about. Where a run has one, its headline counts all
void episodes as failures: to be void never pays."""

UNCLEAR = "unclear_answer"
"""The cause of an episode whose answer is neither right nor wrong by its type."""


class Grade(msgspec.Struct, frozen=True, omit_defaults=True):
    """The verdict on one episode.

    Attributes:
        passed: answered rightly with the right effects, or, where the scene is unsolvable,
            refused after the evidence had come to light and without a write.
        void: not the agent's doing: its infrastructure failed ("infrastructure"), the scene needs
            a detail from the user, who understood no question about it until the budget was spent
            ("simulator"), a call was made that a recording does not know ("unrecorded"), the code
            of the shift raised ("broken_shift"), its own program says that what it needs is out of
            order ("own_outage"), or a server broke off a call ("dropped_connection").
            Counted apart; where the agent can bring it about, the headline counts it as a failure
            (`excused`).
        end: how the episode ended.
        cause: the root cause of a failure (`measure.causes`); "" for a pass.
        solvable: whether the right end was an answer. An episode that fulfils a request of which
            a refusal is only presumed to be right (`Outcome.presumed`) shows that it was.
        refused: ended in a refusal.
        right_reason: refused, and for the right reason.
        prose: the ending was read from its words (prose, or a `final_answer` that refuses), not
            from the protocol.
        met: the agent actually met what the shift changed.
        calls: tool calls made (the chain length).
        errors: calls that failed.
        provoked: failed calls that the interface itself provoked.
        exploration: the active exploration score, None where nothing disturbed the episode.
        oracle_calls: calls that the oracle needs in the same scene.
        misunderstood: questions that the simulated user did not understand.
        unclear: not passed, and all that speaks against it is an answer whose type does not tell
            whether it is right (`check: {as: ...}`). Accuracy is then given from both sides.
    """

    passed: bool
    void: bool
    end: End
    cause: str
    solvable: bool
    refused: bool
    right_reason: bool
    prose: bool
    met: bool
    calls: int
    errors: int
    provoked: int
    exploration: float | None
    oracle_calls: int
    misunderstood: int
    unclear: bool = False

    @property
    def excused(self) -> bool:
        """Whether it is void for a reason that the agent cannot bring about."""
        return self.void and self.cause not in AT_WILL

    def __post_init__(self) -> None:
        """Reads the causes of older files under their current names."""
        now = current_name(self.cause, self.end) if self.cause else ""
        if now != self.cause:
            msgspec.structs.force_setattr(self, "cause", now)


def grade(episode: Episode) -> Grade:
    """Grades a finished episode."""
    return regrade(episode.scene, episode.steps, episode.end)


def regrade(scene: Scene, steps: Sequence[Step], end: End) -> Grade:
    """Grades a stored trace; the same verdict as when it was made."""
    calls = [step for step in steps if step.kind == "call"]
    last = steps[-1] if steps else None
    passed = _passed(scene, steps, end)
    misunderstood = len([step for step in steps if step.kind == "ask" and not step.slot])
    void = "infrastructure" if end == "infrastructure" else ""
    if last is not None and _is_open(last):
        passed, void = False, "unrecorded"
    if (
        last is not None
        and last.kind == "failure"
        and last.name in (BROKEN_SHIFT, OWN_OUTAGE, DROPPED)
    ):
        void = last.name
    if not passed and misunderstood and _unheard(scene, steps, end):
        void = SIMULATOR
    unclear = not passed and not void and is_unclear(scene, steps, end)
    refused = end == "refused"
    reason = last.name if last is not None and refused else ""
    return Grade(
        passed=passed,
        void=bool(void),
        end=end,
        cause="" if passed else void or (UNCLEAR if unclear else cause_of(scene, steps, end)),
        solvable=scene.solvable or _fulfilled_after_all(scene, steps, end),
        refused=refused,
        right_reason=refused and reason == scene.outcome.refusal,
        prose=last is not None and (last.prose or bool(last.through)),
        met=_met(scene, calls),
        calls=len(calls),
        errors=len([step for step in calls if not step.ok]),
        provoked=len([step for step in calls if step.provoked]),
        exploration=exploration(calls, scene.outcome.refusal),
        oracle_calls=len(scene.calls),
        misunderstood=misunderstood,
        unclear=unclear,
    )


def is_unclear(scene: Scene, steps: Sequence[Step], end: End) -> bool:
    """Whether an episode passes or fails by an answer of which its type does not tell."""
    if scene.outcome.calls_alone or not scene.solvable or end != "answered":
        return False
    verdicts = answer_verdicts(scene, steps)
    return "unclear" in verdicts and "wrong" not in verdicts and _effects_right(scene, steps)


def _passed(scene: Scene, steps: Sequence[Step], end: End) -> bool:
    if scene.outcome.calls_alone:
        return end in ("answered", "refused") and _effects_right(scene, steps)
    if not scene.solvable:
        seen = scene.outcome.witness == () or any(is_decisive(scene, step) for step in steps)
        refused = end == "refused" and seen and not _surplus(scene, steps)
        return refused or _fulfilled_after_all(scene, steps, end)
    if end != "answered":
        return False
    return all(answers_right(scene, steps)) and _effects_right(scene, steps)


def _fulfilled_after_all(scene: Scene, steps: Sequence[Step], end: End) -> bool:
    """Whether an episode solved by other tools what was presumed to be unsolvable.

    It meets the check of the clean task, and what it answers stands in a result that it was shown,
    so that a guess is none; where no answer is checked, the effects themselves show it.
    """
    if not scene.outcome.presumed or end != "answered":
        return False
    clean = scene.clean
    wanted = clean.asks[-1].pattern
    if not (wanted or clean.outcome.effects) or not all(answers_right(scene, steps)):
        return False
    as_clean = replace(scene, outcome=clean.outcome)
    return _effects_right(as_clean, steps) and is_shown(wanted, steps)


def _misunderstood(step: Step) -> bool:
    return step.kind == "ask" and not step.slot


def _unheard(scene: Scene, steps: Sequence[Step], end: End) -> bool:
    """Whether the user never gave a detail that the scene needs until the budget was spent.

    A question that was not understood voids nothing by itself: an agent could ask one before each
    failure. It counts only where the oracle has to ask the user too, and no such detail came, and
    where the agent tried other words: the same question for ever is no attempt to be understood.
    """
    if end != "budget" or len({fold(s.said).lower() for s in steps if _misunderstood(s)}) < 2:
        return False
    needed = {step.slot for step in scene.rehearsal if step.kind == "ask"}
    answered = {step.slot for step in steps if step.kind == "ask"}
    return bool(needed) and not needed & answered


def _is_open(last: Step) -> bool:
    """Whether a recording cannot tell how the episode would have gone on, or ended."""
    unknown = last.kind == "answer" and (NOT_RECORDED,) in last.effects
    return unknown or (last.kind == "failure" and last.name == NOT_RECORDED)


def _effects_right(scene: Scene, steps: Sequence[Step]) -> bool:
    made = sorted(map(_key, effects_of(steps)))
    wanted = sorted(map(_key, scene.outcome.effects))
    return made == wanted or (not Counter(wanted) - Counter(made) and not _surplus(scene, steps))


def _surplus(scene: Scene, steps: Sequence[Step]) -> Counter[str]:
    """Writes that were neither requested nor forgiven."""
    allowed = Counter(map(_key, scene.outcome.effects + scene.outcome.forgiven))
    return Counter(map(_key, effects_of(steps))) - allowed


def _key(effect: Any) -> str:
    return repr(tuple(effect))


def _met(scene: Scene, calls: Sequence[Step]) -> bool:
    clean = scene.clean
    if clean is scene or clean.system != scene.system:
        return clean is not scene
    return scene.differs_at_start or any(step.touched for step in calls)


def exploration(calls: Sequence[Step], refusal: str = "") -> float | None:
    """The active exploration score of a trace.

    After the first disturbance (a failed call, or one whose result asks for something), the share
    of further calls that are new and informative: not made before in the same words and answered
    with a text not seen before, or made again because the result asked for that. 0 where the agent
    stops trying; None where nothing disturbed it. Counting ends where the reason for a refusal
    has come to light, since trying on is no merit there. The research does not publish its
    formula; this one rewards new attempts that bring something and gives nothing for repetition.
    """
    disturbed = [n for n, step in enumerate(calls) if not step.ok or step.hint]
    start = disturbed[0] if disturbed else None
    end = next((n for n, s in enumerate(calls) if refusal and s.evidence == refusal), len(calls))
    if start is None or start >= end:
        return None
    attempts = calls[start + 1 : end + 1]
    if not attempts:
        return 0.0
    made = {_spoken(step) for step in calls[: start + 1]}
    texts = {step.text for step in calls[: start + 1]}
    informative = 0
    before, call_before = calls[start], _spoken(calls[start])
    for step in attempts:
        call = _spoken(step)
        asked_for = before.hint == "retry" and call == call_before
        informative += asked_for or (call not in made and step.text not in texts)
        made.add(call)
        texts.add(step.text)
        before, call_before = step, call
    return informative / len(attempts)


def _spoken(step: Step) -> tuple[str, str]:
    return step.name, repr(step.arguments)
