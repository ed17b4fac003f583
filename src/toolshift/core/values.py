"""Plain values: which are numbers, and how each is written as a text."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeGuard

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


def as_list(value: object) -> list[Any]:
    """A list as it is; an empty one in place of anything else, as foreign documents may have."""
    return value if isinstance(value, list) else []


def as_mapping(value: object) -> Mapping[str, Any]:
    """An object as it is; an empty one in place of anything else."""
    return value if isinstance(value, Mapping) else {}


def held_in(value: object) -> Collection[Any]:
    """The values that an object or a list holds; anything else holds none."""
    return value.values() if isinstance(value, dict) else as_list(value)
