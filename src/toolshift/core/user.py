"""The user, simulated by rule: states requests, and answers one question at a time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from toolshift.core.fact import Fact, Goal
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
        pattern: a regular expression that a right answer matches, in place of `expected`.
        replies: what the user answers when asked about a slot, where that is not the value.
        notice: a system message that comes with this turn, as when a rule changes.
    """

    text: str
    goal: Goal
    solve: Solve
    expected: str | None
    replies: Mapping[str, str] = field(default_factory=dict)
    notice: str = ""
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The user's reply; `slot` is what it is about, "" where the question was not understood."""

    text: str
    slot: str


_WORD = re.compile(r"[a-z0-9]+")
NOT_UNDERSTOOD = "Sorry, I do not understand that question. Which detail do you need?"


def answer(question: str, ask: Ask, vocabulary: Mapping[str, Fact]) -> Answer:
    """Answers the first thing that a question asks about.

    A question is matched by a value that the user has stated ("did you mean ...?"), else by the
    words of a fact's vocabulary; what is named first is answered, and only that. What the user
    cannot know, he says so. A question that matches nothing is the simulator's failure, and the
    caller counts it as such.
    """
    stated = _stated(question, ask, vocabulary)
    if stated:
        return Answer(_reply(stated, ask, vocabulary), stated)
    words = _WORD.findall(question.lower())
    known = _first(words, {slot: vocabulary[slot] for slot in ask.goal if slot in vocabulary})
    if known:
        return Answer(_reply(known, ask, vocabulary), known)
    unknown = _first(words, vocabulary)
    if unknown:
        return Answer(f"I do not know the {vocabulary[unknown].label}. Please look it up.", unknown)
    return Answer(NOT_UNDERSTOOD, "")


def _first(words: list[str], vocabulary: Mapping[str, Fact]) -> str:
    best, place = "", len(words)
    for slot, fact in vocabulary.items():
        for word in fact.words:
            if word in words and words.index(word) < place:
                best, place = slot, words.index(word)
    return best


def _stated(question: str, ask: Ask, vocabulary: Mapping[str, Fact]) -> str:
    """The slot of the first goal value that a question names; "" where it names none."""
    best, place = "", len(question)
    for slot, value in ask.goal.items():
        for one in value if isinstance(value, tuple) else (value,):
            found = re.search(rf"(?<!\w){re.escape(str(one))}(?!\w)", question, re.IGNORECASE)
            if slot in vocabulary and found and found.start() < place:
                best, place = slot, found.start()
    return best


def _reply(slot: str, ask: Ask, vocabulary: Mapping[str, Fact]) -> str:
    return ask.replies.get(slot) or f"The {vocabulary[slot].label} is {ask.goal[slot]}."
