"""The types that an answer can have, and which one a wanted answer has."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Literal, get_args

from toolshift.reading.answers.by_words import is_pattern
from toolshift.reading.text import fold
from toolshift.reading.values import value_of

AnswerKind = Literal[
    "number", "amount", "date", "time", "yes_no", "choice", "id", "text", "regex", "json"
]
"""What `as:` of a check may say."""
KINDS: tuple[str, ...] = get_args(AnswerKind)

ID = re.compile(r"(?=[^\W_]*\d|[^\s]*[-_/.#]\d)[^\W_]+(?:[-_/.#][^\W_]+)*")
"""One word with a figure in it: "RF-1701", "KA72", "inv_9"."""
YES_NO = {"yes": True, "true": True, "no": False, "false": False}


def kind_of(wanted: str | Sequence[str]) -> AnswerKind:
    """The type of a wanted answer, as the value itself tells it."""
    if not isinstance(wanted, str):
        kinds = {kind_of(item) for item in wanted}
        return kinds.pop() if len(kinds) == 1 else "text"
    text = fold(wanted).strip()
    if text.casefold() in YES_NO:
        return "yes_no"
    if text[:1] in ("{", "[") and is_json(text):
        return "json"
    if is_pattern(wanted):
        return "regex"
    values = value_of(text)
    if len(values) == 2 or (values and values[0].kind == "date"):
        return "date"
    if values and values[0].kind == "time":
        return "time"
    if values:
        return "amount" if values[0].unit not in ("", "%") else "number"
    return "id" if ID.fullmatch(text) else "text"


def is_json(text: str) -> bool:
    """Whether a text is JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
