"""When an answer is right, and when evidence is decisive."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from toolshift.core.message import CODE
from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.core.user import Ask


def is_right(ask: Ask, answer: str) -> bool:
    """Whether an answer is right, as far as it is asked for one."""
    if ask.pattern:
        return re.search(ask.pattern, answer) is not None
    return ask.expected is None or states(answer, ask.expected)


def is_decisive(scene: Scene, step: Step) -> bool:
    """Whether the reason for refusing came to light in a step; a lookup of anything else won't."""
    if not scene.outcome.refusal:
        return False
    if scene.outcome.witness:
        shown = any(name in scene.outcome.witness for name, _ in step.true)
    else:
        shown = step.evidence == scene.outcome.refusal
    if not shown:
        return False
    subject = scene.outcome.subject.lower()
    looked_up = {str(value).lower() for _, made in step.true for value in made.values()}
    return not subject or subject in looked_up


def states(answer: str, expected: str) -> bool:
    """Whether an answer states the expected code and no other: a list of guesses does not."""
    codes = set(CODE.findall(answer.upper()))
    return codes == {expected} if codes or CODE.fullmatch(expected) else expected in answer


def effects_of(steps: Sequence[Step]) -> list[Any]:
    """The writes of a trace."""
    return [effect for step in steps for effect in step.effects]
