"""How many of the episodes of a plan are played: all of them, or as many as decide.

The design stands in the manifest of a run. A run from before it has the fixed one.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from toolshift.core.errors import UsageError

DesignName = Literal["fixed", "sequential"]
Unit = Literal["calls", "usd", "min"]
Claimed = Literal["", "shifts", "gate", "tasks"]
_BUDGET = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*(calls|usd|min)\s*", re.IGNORECASE)


class Budget(msgspec.Struct, frozen=True):
    """What a run may spend: calls of models that are sent, dollars, or minutes of one command."""

    amount: float
    unit: Unit


class Design(msgspec.Struct, frozen=True):
    """Which episodes of a plan are played.

    Attributes:
        name: "fixed" plays all of them.
        claim: what the sequential one decides: whether each shift breaks or holds, whether a gate
            passes, or nothing but what becomes of each task.
        margin: points of accuracy that may be lost where something holds.
        budget: as it was given; "" for none.
        listed: agents that say the same again, over tasks that are a list: claims are about the
            list, whose tasks are drawn without replacement.
    """

    name: DesignName = "fixed"
    claim: Claimed = ""
    margin: float = 0.0
    budget: str = ""
    listed: tuple[str, ...] = ()

    @property
    def sequential(self) -> bool:
        """Whether episodes may be left out."""
        return self.name == "sequential"


FIXED = Design()


def read_budget(text: str) -> Budget:
    """Reads `2000calls`, `5usd` or `20min`."""
    found = _BUDGET.fullmatch(text)
    if found is None or not float(found[1]):
        raise UsageError(
            f"budget {text!r}: write a number above 0 and its unit: 2000calls, 5usd or 20min"
        )
    unit = found[2].lower()
    assert unit in ("calls", "usd", "min")
    return Budget(float(found[1]), unit)  # type: ignore[arg-type]
