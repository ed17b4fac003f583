"""A turn of the simulated user: what they say, and what is true about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from toolshift.core.fact import Goal
from toolshift.core.solver import Solve


@dataclass(frozen=True, eq=False)
class Ask:
    """One turn of the user, and what is true of it.

    Attributes:
        text: what the user says.
        goal: the values of the request; a tuple where the user states two that contradict.
        solve: how the request is solved.
        expected: the answer; None where any answer is forgiven, as for a request that the user
            takes back in the next turn.
        pattern: what a check wants a right answer to say, in place of `expected`.
        kind: the type of that answer (`reading.answers.kinds`), by which it is then compared; ""
            for the rule that reads English.
        replies: what the user answers when asked about a slot, where that is not the value.
        notice: a system message that comes with this turn, as when a rule changes.
        scripted: the user goes by a script: whatever is said to them ends the turn, and their next
            one follows. A question has a reply of its own only where it is about a value that the
            request leaves out; a refusal is no end, but where it is the right one.
        blocked: of a scripted turn: it cannot be done before a later one, so a refusal is no end.
    """

    text: str
    goal: Goal
    solve: Solve
    expected: str | None
    replies: Mapping[str, str] = field(default_factory=dict)
    notice: str = ""
    pattern: str | tuple[str, ...] = ""
    scripted: bool = False
    blocked: bool = False
    kind: str = ""


def leaves_out(ask: Ask, slot: str) -> bool:
    """Whether the user knows a value and has not said it."""
    value = ask.goal.get(slot)
    return value is not None and not is_said(value, ask.text)


def is_said(value: object, text: str) -> bool:
    """Whether a text states a value; a number must not be part of another number."""
    lowered = text.lower()
    if isinstance(value, str):
        return value.lower() in lowered
    number = str(value)
    if number not in lowered:  # a pattern for each number takes longer to compile than to look
        return False
    return re.search(rf"(?<![\w.]){re.escape(number)}(?!\w|\.\d)", lowered) is not None
