"""Facts, and the goals that are made of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolshift.core.tables import table_beside

Goal = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fact:
    """A kind of value that tools need and yield, in words that a user would use.

    Attributes:
        label: how to ask for it ("party size").
        words: words of a question that mean it.
        sure: phrases that mean it even beside words of other facts ("how many"); "*" stands for
            the rest of a word, "..." for up to four words.
        hints: words that mean it where nothing else is named ("where").
    """

    label: str
    words: tuple[str, ...]
    sure: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


class Facts(dict[str, Fact]):
    """A world's facts by slot.

    Attributes:
        weights: the file of its question classifier; None where it has none.
    """

    weights: Path | None = None


def read_facts(module: str) -> Facts:
    """Reads the `facts.toml` beside a module, and finds the `questions.npz` beside it."""
    facts = Facts(
        (
            slot,
            Fact(
                row["label"],
                tuple(row["words"]),
                tuple(row.get("sure", ())),
                tuple(row.get("hints", ())),
            ),
        )
        for slot, row in table_beside(module, "facts.toml").items()
    )
    weights = Path(module).with_name("questions.npz")
    facts.weights = weights if weights.exists() else None
    return facts
