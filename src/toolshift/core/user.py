"""The user, simulated by rule: states requests, and answers one question at a time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from toolshift.core.fact import Fact, Goal
from toolshift.core.questions import asked_about
from toolshift.core.solver import Solve
from toolshift.core.tool import JSON


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


@dataclass(frozen=True, slots=True)
class Answer:
    """The user's reply; `slot` is what it is about, "" where the question was not understood."""

    text: str
    slot: str


NOT_UNDERSTOOD = "Sorry, I do not understand that question. Which detail do you need?"
MORE = "You asked about more than this; ask about the rest next, one thing at a time."


def leaves_out(ask: Ask, slot: str) -> bool:
    """Whether the user knows a value and has not said it."""
    value = ask.goal.get(slot)
    return value is not None and not is_said(value, ask.text)


def as_said(value: object) -> str:
    """A value in the words of a user: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else JSON.encode(value).decode()


def is_said(value: object, text: str) -> bool:
    """Whether a text states a value; a number by itself, not as a part of another."""
    said = text.lower()
    if isinstance(value, str):
        return value.lower() in said
    number = str(value)
    if number not in said:  # a pattern for each number takes longer to compile than to look
        return False
    return re.search(rf"(?<![\w.]){re.escape(number)}(?!\w|\.\d)", said) is not None


def answer(question: str, ask: Ask, vocabulary: Mapping[str, Fact]) -> Answer:
    """Answers what a question asks about; of several things the first.

    Values that a question mentions are context, unless it asks to confirm one or to choose
    between two. What the user cannot know, he says so. A question that asks about nothing there
    is a word for is the simulator's failure, and the caller counts it as such.

    Args:
        question: the agent's question.
        ask: what the user has said and knows.
        vocabulary: the facts of the world, by slot.

    Returns:
        The reply, and the slot that it is about.
    """
    asked = asked_about(question, ask.goal, vocabulary, ask.text)
    if not asked:
        return Answer(NOT_UNDERSTOOD, "")
    slot = asked[0]
    if slot not in ask.goal:
        return Answer(f"I do not know the {vocabulary[slot].label}. Please look it up.", slot)
    reply = ask.replies.get(slot) or f"The {vocabulary[slot].label} is {ask.goal[slot]}."
    return Answer(f"{reply} {MORE}" if len(asked) > 1 else reply, slot)
