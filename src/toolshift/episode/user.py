"""The user, simulated by rule: answers one question at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolshift.core.ask import Ask
from toolshift.core.fact import Fact
from toolshift.reading.questions import asked_about


@dataclass(frozen=True, slots=True)
class Answer:
    """The user's reply; `slot` is what it is about, "" where the question was not understood."""

    text: str
    slot: str


NOT_UNDERSTOOD = "Sorry, I do not understand that question. Which detail do you need?"
MORE = "You asked about more than this; ask about the rest next, one thing at a time."


def answer(question: str, ask: Ask, vocabulary: Mapping[str, Fact]) -> Answer:
    """Answers the first thing that a question asks about.

    Values that a question mentions are context, unless it asks to confirm one or to choose
    between two. If the user cannot know a value, they say so. A question about no known fact is a
    failure of the simulator, and the caller counts it as such.
    """
    slots = asked_about(question, ask.goal, vocabulary, ask.text)
    if not slots:
        return Answer(NOT_UNDERSTOOD, "")
    slot = slots[0]
    if slot not in ask.goal:
        return Answer(f"I do not know the {vocabulary[slot].label}. Please look it up.", slot)
    reply = ask.replies.get(slot) or f"The {vocabulary[slot].label} is {ask.goal[slot]}."
    return Answer(f"{reply} {MORE}" if len(slots) > 1 else reply, slot)
