"""Has a rate gone up? A sequential test with a stated rate of false alarms, in constant memory.

A rate is learned from `n` observations: `limit` is the upper Clopper-Pearson limit of what it may
have been. From then on each observation multiplies likelihood ratios of six higher rates against
`limit`, and a new bet is added at every step (the Shiryaev-Roberts form of an e-detector, Shin,
Ramdas and Rinaldo 2024, arXiv:2203.03532):

    R <- (1 + R) * (p1/limit where it happened, else (1 - p1)/(1 - limit))

While the chance of each next observation is at most `limit`, whatever the past, R minus the number
of observations is a supermartingale, so the mean number of observations up to an alarm at
R >= N is at least N. The mean of the six R has the same property. There is no threshold to tune.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import ceil
from typing import Any

from scipy.stats import beta

ODDS = (1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
"""The higher rates, as odds relative to those of the limit."""
CONFIDENCE = 0.99
"""Of the limit of what was learned."""
SLOWEST = 0.9
"""The quantile of the learned times above which a call counts as slow."""
MAX_LIMIT = 0.9
"""A rate that may have been higher than this is not watched: hardly anything is above it."""
MAX_FORMS = 256
"""Different forms of results that are remembered while learning."""


class RateTest:
    """Watches a rate for a rise.

    Args:
        limit: of the rate while nothing has moved, from 0 to 1.
        run_length: the least mean number of observations up to a false alarm.
    """

    __slots__ = ("_factors", "_found", "_level", "_sums", "count", "hits", "limit")

    def __init__(self, limit: float, run_length: float) -> None:
        self.limit = limit
        odds = limit / (1 - limit)
        rates = [each * odds / (1 + each * odds) for each in ODDS]
        self._factors = [((1 - p) / (1 - limit), p / limit) for p in rates]
        self._sums = [0.0] * len(rates)
        self._level = run_length * len(rates)
        self._found = 1.0
        self.count = self.hits = 0

    def add(self, hit: bool) -> bool:
        """Takes one observation; whether the rate has risen.

        `count` and `hits` are of the observations since the rise probably began.
        """
        sums, total = self._sums, 0.0
        for place, factors in enumerate(self._factors):
            value = (1.0 + sums[place]) * factors[hit]
            sums[place] = value
            total += value
        self._found *= self._factors[2][hit]
        self.count += 1
        self.hits += hit
        if self._found <= 1.0:
            self._found, self.count, self.hits = 1.0, 0, 0
        return total >= self._level


class Rise(tuple[float, int, int]):
    """What an alarm says: the limit of what was learned, and hits and count since the rise."""

    __slots__ = ()


class RateMonitor:
    """Learns a rate, watches it, and learns again after each alarm.

    Args:
        learn: observations to learn from.
        run_length: see `RateTest`.
    """

    def __init__(self, learn: int, run_length: float) -> None:
        self._learn, self._run_length = learn, run_length
        self._begin()

    def _begin(self) -> None:
        self._count = self._hits = 0
        self._test: RateTest | None = None
        self.watching = False

    def add(self, value: Any) -> Rise | None:
        """Takes one observation.

        Args:
            value: whether it happened; what subclasses watch.

        Returns:
            What has risen; None for no alarm.
        """
        if self.watching:
            test = self._test
            if test is None or not test.add(self._is_hit(value)):
                return None
            self._begin()
            return Rise((test.limit, test.hits, test.count))
        self._take(value)
        self._count += 1
        if self._count >= self._learn:
            limit = self._limit()
            self._test = RateTest(limit, self._run_length) if limit <= MAX_LIMIT else None
            self.watching = True
        return None

    def _is_hit(self, value: Any) -> bool:
        return bool(value)

    def _take(self, value: Any) -> None:
        self._hits += bool(value)

    def _limit(self) -> float:
        return upper_limit(self._hits, self._count)


class LatencyMonitor(RateMonitor):
    """Watches the share of calls slower than nine in ten of those that were learned."""

    def _begin(self) -> None:
        super()._begin()
        self._times: list[float] = []
        self.slow = 0.0

    def _take(self, value: Any) -> None:
        self._times.append(value)

    def _is_hit(self, value: Any) -> bool:
        return bool(value > self.slow)

    def _limit(self) -> float:
        """Of the chance to be slower than the j-th of n times, which is Beta(n - j + 1, j)."""
        count = len(self._times)
        place = min(ceil(SLOWEST * count), count)
        self.slow = sorted(self._times)[place - 1]
        self._times = []
        return float(beta.ppf(CONFIDENCE, count - place + 1, place))


class FormMonitor(RateMonitor):
    """Watches the share of results of a form that was not met in the first half of the learning.

    The second half says how often that happens where nothing has moved.
    """

    def _begin(self) -> None:
        super()._begin()
        self._forms: set[Hashable] = set()
        self._late = 0

    def _take(self, value: Any) -> None:
        if 2 * self._count < self._learn:
            if len(self._forms) < MAX_FORMS:
                self._forms.add(value)
        else:
            self._late += 1
            self._hits += value not in self._forms

    def _is_hit(self, value: Any) -> bool:
        return value not in self._forms

    def _limit(self) -> float:
        return upper_limit(self._hits, self._late)


def upper_limit(hits: int, count: int) -> float:
    """The upper Clopper-Pearson limit of a rate, one-sided, at 99%.

    Args:
        hits: how often it happened.
        count: of how many observations.

    Returns:
        From 0 to 1; 1 where it always happened.
    """
    return float(beta.ppf(CONFIDENCE, hits + 1, count - hits)) if hits < count else 1.0


_DEEPEST = 3
_ITEMS = 5


def form_of(value: Any, depth: int = 0) -> Hashable:
    """The form of a result: its keys and types, three levels deep; no value is in it.

    Args:
        value: JSON data.
        depth: of the value in the whole.

    Returns:
        The same for results of the same form; whole and decimal numbers are one type.
    """
    if isinstance(value, Mapping):
        if depth >= _DEEPEST:
            return "object"
        return tuple(sorted((str(key), form_of(one, depth + 1)) for key, one in value.items()))
    if isinstance(value, list):
        return ("list", frozenset(form_of(one, depth + 1) for one in value[:_ITEMS]))
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return type(value).__name__
    return "number"
