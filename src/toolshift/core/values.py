"""Plain values: which are numbers, and how each is written as a text."""

from __future__ import annotations

from typing import TypeGuard

import msgspec


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number; a boolean is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_json(value: object) -> str:
    """A value as JSON, without spaces."""
    return msgspec.json.encode(value).decode()


def as_text(value: object) -> str:
    """A text as it is, anything else as JSON: as a user would say it."""
    return value if isinstance(value, str) else as_json(value)
