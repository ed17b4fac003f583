"""When an answer is right, and when evidence is decisive."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from toolshift.core.formats import leaves
from toolshift.core.message import CODE
from toolshift.core.reading import Stated, bare, codes_in, disguised_codes, fold
from toolshift.core.scene import Scene
from toolshift.core.statement import says
from toolshift.core.step import Step
from toolshift.core.user import Ask

Fields = Mapping[str, frozenset[str]]
"""Codes that were shown, each with the fields that it came from; none where that is not known."""

Results = Sequence[frozenset[str]]
"""The codes of each result that showed any."""

_HEDGE = re.compile(
    r"\b(or|either|maybe|perhaps|possibly|alternatively|otherwise|if (not|that|this|it)|fall ?back"
    r"|try)\b",
    re.IGNORECASE,
)
_ATTEMPT = re.compile(r"\btry\W", re.IGNORECASE)
"""Before the first of several codes: it is offered as a guess."""
_FILLER = frozenset(("and", "also", "the", "then", "plus", "next", "are", "is", "codes", "code"))
_MARK = re.compile(r"\b(your|you (asked|need|want|requested)|requested|asked for|answer)\b")
"""What singles a code out as the one that was asked for."""
_WORD = re.compile(r"[^\W\d_]{2,}")


def answers_right(scene: Scene, steps: Sequence[Step]) -> list[bool]:
    """Whether each answer of a trace is right, in order."""
    answers = [step.said for step in steps if step.kind == "answer"]
    plain = all(CODE.fullmatch(said.strip().upper()) for said in answers)
    asked = any(CODE.fullmatch(ask.expected or "") and not ask.pattern for ask in scene.asks)
    fields = shown_fields(scene, steps) if asked and not plain else {}
    results = codes_of_results(steps) if fields else ()
    return [
        is_right(ask, said, fields, results) for ask, said in zip(scene.asks, answers, strict=False)
    ]


def codes_of_results(steps: Sequence[Step]) -> Results:
    """The codes that each result of a trace has shown, of those that have any."""
    found = (frozenset(CODE.findall(fold(step.text))) for step in steps if step.kind == "call")
    return tuple(codes for codes in found if codes)


def _is_dump(
    stated: set[str], expected: str, results: Results, in_data: bool, marked: bool
) -> bool:
    """Whether an answer hands on every code of a result, or all there are: nothing was chosen.

    Three codes of a result are a dump whatever is said of them, and so are two that stand in data.
    Else one must be singled out, where the result with the right code is handed on, or all are.
    """
    fewest = 2 if in_data else 3
    if any(len(codes) >= fewest and codes <= stated for codes in results):
        return True
    sources = [codes for codes in results if expected in codes]
    whole = frozenset[str]().union(*results)
    handed_on = any(len(codes) >= 2 and codes <= stated for codes in (*sources, whole))
    return handed_on and not marked


def is_right(ask: Ask, answer: str, fields: Fields, results: Results = ()) -> bool:
    """Whether an answer is right, as far as it is asked for one.

    Args:
        ask: with the right answer, or with what a check wants.
        answer: what the agent said.
        fields: the codes that the agent was shown, with the fields that they came from.
        results: the codes of each result.

    Returns:
        True where no answer is asked for.
    """
    if ask.pattern:
        return says(answer, ask.pattern)
    return ask.expected is None or states(answer, ask.expected, fields, results)


def shown_fields(scene: Scene, steps: Sequence[Step]) -> Fields:
    """The codes that the agent was shown, with their fields: the true calls are made again."""
    calls = [step for step in steps if step.kind == "call"]
    fields: dict[str, frozenset[str]] = {
        code: frozenset() for step in calls for code in CODE.findall(fold(step.text))
    }
    session = scene.truth.open()
    for name, arguments in (made for step in calls for made in step.true):
        data = session.call(name, arguments).data
        for record in data if isinstance(data, list) else [data]:
            for path, value in leaves(record) if isinstance(record, dict) else ():
                if value in fields:
                    fields[value] |= {path[-1]}
    return fields


def is_decisive(scene: Scene, step: Step) -> bool:
    """Whether the reason for refusing came to light in a step; a lookup of anything else won't."""
    if not scene.outcome.refusal:
        return False
    if scene.outcome.witness:
        shown = any(name in scene.outcome.witness for name, _ in step.true)
    else:
        shown = step.evidence == scene.outcome.refusal
    return shown and scene.looks_up(step.true)


def states(answer: str, expected: str, fields: Fields, results: Results = ()) -> bool:
    """Whether an answer states the expected code as the thing that was asked for.

    A code that is said not to be it is not offered. Another code of the same field, or of a field
    that is not known, makes a list of guesses, and so does a word that letters of other scripts
    make look like a code. Codes of other fields do no harm where each is named in words, no other
    has the name of the field that was asked for, and not all codes of a result are handed on. A
    code that was shown may be spelt letter by letter.

    Args:
        answer: what the agent said.
        expected: the right code.
        fields: the codes that the agent was shown, with the fields that they came from.
        results: the codes of each result.

    Returns:
        True where the answer offers the code and says what every other one is.
    """
    stated = codes_in(answer, fields)
    if not CODE.fullmatch(expected):
        return not stated and fold(expected) in fold(answer)
    spelt, imitated = disguised_codes(answer, fields)
    offered = [one for one in stated if not one.negated]
    codes = {one.code for one in offered}
    if not codes and not imitated:
        return spelt == {expected}
    if expected not in codes or imitated or spelt - codes:
        return False
    others = codes - {expected}
    asked = fields.get(expected, frozenset())
    if any(not fields.get(code) or fields[code] & asked for code in others):
        return False
    marked = not others or _is_singled_out(bare(answer), offered, expected)
    in_data = bool(re.search(r"[{<]", answer))
    if others and _is_dump({one.code for one in stated}, expected, results, in_data, marked):
        return False
    return not others or _told_apart(bare(answer), offered, expected, asked)


def _is_singled_out(text: str, offered: list[Stated], expected: str) -> bool:
    """Whether words say of the expected code, and of no other, that it was asked for."""
    named = zip(offered, _names(text, offered), strict=True)
    marks = {one.code for one, name in named if _MARK.search(name)}
    return marks == {expected}


def _told_apart(text: str, offered: list[Stated], expected: str, asked: frozenset[str]) -> bool:
    """Whether words say what each code is, and which one is meant."""
    if any(_HEDGE.search(text[a.end : b.start]) for a, b in pairwise(offered)):
        return False
    if _ATTEMPT.search(text[: offered[0].start]):
        return False
    named = list(zip(offered, _names(text, offered), strict=True))
    labels = [
        frozenset(_WORD.findall(name)[-4:]) - _FILLER for one, name in named if one.code != expected
    ]
    own = " ".join(name for one, name in named if one.code == expected)
    if not all(labels):
        return False
    words = {field.split("_")[0] for field in asked}
    if any(words & label for label in labels):
        return False
    mine = frozenset(_WORD.findall(own)[-4:]) - _FILLER
    return mine not in labels


def _names(text: str, offered: list[Stated]) -> list[str]:
    """The words that name each code: those before it, or after it where the text starts so."""
    text = text.lower()
    starts, ends = [one.start for one in offered], [one.end for one in offered]
    if re.search(r"[^\W\d_]", text[: starts[0]]):
        spans = zip([0, *ends[:-1]], starts, strict=True)
    else:
        spans = zip(ends, [*starts[1:], len(text)], strict=True)
    return [text[start:end] for start, end in spans]


def effects_of(steps: Sequence[Step]) -> list[Any]:
    """The writes of a trace."""
    return [effect for step in steps for effect in step.effects]
