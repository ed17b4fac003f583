"""The money of a run: one limit for all that is sent, whoever sends it and however often."""

from __future__ import annotations

import threading
from collections.abc import Callable

from toolshift.core.errors import BudgetSpent


class CostLimit:
    """A running total that agents and threads share, with money held for requests under way.

    Args:
        limit: dollars that may be spent; None for no limit.
    """

    def __init__(self, limit: float | None) -> None:
        self.limit, self.spent = limit, 0.0
        self._held = 0.0
        self._lock = threading.Lock()
        self._keep: Callable[[float], None] | None = None

    def take_up(self, spent: float, keep: Callable[[float], None]) -> None:
        """Adds what an earlier run has spent, and has every change of the total kept.

        Money that is held counts as spent there: a killed run has sent those requests too.
        """
        with self._lock:
            if self._keep is None:  # else the same cost_limit goes on, and knows it already
                self.spent += spent
            self._keep = keep

    def hold(self, amount: float) -> None:
        """Reserves money for a request."""
        with self._lock:
            if self.limit is not None and self.spent + self._held + amount > self.limit:
                raise BudgetSpent(
                    f"${self.spent:.4f} of max_cost ${self.limit:.4f} is spent, "
                    f"${self._held:.4f} is reserved for running requests, and the next one could "
                    f"cost ${amount:.4f}. Raise max_cost and run again: finished episodes are "
                    "kept."
                )
            self._held += amount
            self._tell(amount)

    def settle(self, held: float, cost: float) -> None:
        """Pays for a request, and releases the rest of its reservation."""
        with self._lock:
            self._held -= held
            self.spent += cost
            self._tell(held or cost)

    def _tell(self, changed: float) -> None:
        if self._keep is not None and changed:
            self._keep(self.spent + self._held)
