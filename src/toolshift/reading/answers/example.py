"""The answer of a check: whether it is of the type that the check says, and what says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from toolshift.reading.answers.by_type import judge
from toolshift.reading.answers.by_words import matches
from toolshift.reading.answers.kinds import YES_NO, AnswerKind, is_json
from toolshift.reading.answers.languages import in_known_form
from toolshift.reading.text import fold
from toolshift.reading.values import value_of


def says_right(text: str, wanted: str | Sequence[str], kind: str) -> bool:
    """Whether a text says a wanted answer, by its type or, without one, by its words."""
    if not kind:
        return matches(text, wanted)
    return judge(text, wanted, cast(AnswerKind, kind)) == "right"


def is_of_kind(wanted: str, kind: str) -> bool:
    """Whether a wanted answer can be compared by a type: "4" is a number and no date."""
    text = in_known_form(fold(wanted)).strip()
    kinds = [value.kind for value in value_of(text)]
    if kind == "yes_no":
        return text.casefold() in YES_NO
    if kind == "json":
        return is_json(text)
    if kind in ("number", "amount"):
        return kinds == ["number"]
    if kind == "date":
        return "date" in kinds
    return kinds == ["time"] if kind == "time" else True
