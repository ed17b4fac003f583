"""Facts, and the goals that are made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass


Goal = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fact:
    """A kind of value that tools need and yield, in words that a user would use.

    Attributes:
        label: how to ask for it ("party size").
        words: words of a question that mean it.
    """

    label: str
    words: tuple[str, ...]
