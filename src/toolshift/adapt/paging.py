"""Lists that come in pages: what a server says of the next one, and several pages as one list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from toolshift.core.render import NOTICE
from toolshift.shifts.release.match import words

MAX_PAGES = 5
_CHOSEN = frozenset(words("limit count size page top first max offset start cursor skip per"))
_VALUE = r"[\"'`\s:=]*(?:is |to |as |with |of )?[\"'`\s:=]*([\w+/=-]*\d[\w+/=-]*)"


def next_page(text: str, parameters: Mapping[str, Any]) -> tuple[str, str] | None:
    """The argument that brings the next page, as a notice below a list says it."""
    _, _, notice = text.partition(NOTICE)
    arguments = [
        (name, hit[1])
        for name in parameters
        if name in notice and (hit := re.search(rf"(?<!\w){re.escape(name)}{_VALUE}", notice))
    ]
    return arguments[0] if len(arguments) == 1 else None


def chooses_page(arguments: Mapping[str, Any]) -> bool:
    """Whether a call itself limits how much of a list it reads."""
    return any(_CHOSEN & {*words(name)} for name in arguments)


def is_list(text: str) -> bool:
    """Whether a result is a list in JSON."""
    return _listed(text) is not None


def joined(before: str, after: str, failed: bool) -> str:
    """Two pages as one list."""
    first, second = _listed(before), None if failed else _listed(after)
    if first is None or second is None:
        return before
    _, mark, notice = after.partition(NOTICE)
    return f"{msgspec.json.encode([*first, *second]).decode()}{mark}{notice}"


def _listed(text: str) -> list[Any] | None:
    body = text.partition(NOTICE)[0]
    if not body.startswith("["):
        return None
    try:
        data = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, list) else None
