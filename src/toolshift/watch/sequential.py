"""Detects a rise of a rate: a sequential test with a stated false-alarm rate, in constant memory.

Errors and slow calls come in runs, so the chance of the next depends on the last one. A rate is
therefore learned twice: after an observation that was no hit, and after one that was. `limits` are
the upper Clopper-Pearson limits of both. From then on each observation multiplies likelihood ratios
of higher rates against the limit of its place, and a new bet is added at every step (the
Shiryaev-Roberts form of an e-detector, Shin, Ramdas and Rinaldo 2024, arXiv:2203.03532):

    R <- (1 + R) * (p1/limit where it happened, else (1 - p1)/(1 - limit))

Six bets are on a rise of the rate after no hit (hits come more often), six on a rise of both (and
in longer runs). While the chance of each next observation is at most its limit, whatever the past,
R minus the number of observations is a supermartingale, so the mean number of observations up to an
alarm at R >= N is at least N. The mean of the R has the same property. There is no threshold to
tune. Where no hit was learned, nothing is known of runs, and a hit may follow a hit with a chance
of UNKNOWN; never is more than MAX_AFTER allowed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import ceil
from typing import Any

import scipy  # type: ignore[import-untyped, unused-ignore]  # parts load at their first use

ODDS = (1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
"""The higher rates, as odds relative to those of the limit."""
CONFIDENCE = 0.99
"""The confidence of the limit of what was learned."""
SLOWEST = 0.9
"""The quantile of the learned times above which a call counts as slow."""
MAX_LIMIT = 0.9
"""A rate that may have been higher than this is not watched: hardly anything is above it."""
UNKNOWN = 0.8
"""The chance of a hit after a hit where none was learned: runs of five on average are no drift."""
MAX_AFTER = 0.9
"""The highest such chance that is ever assumed, so that a failure of all calls is detected."""
MAX_FORMS = 256
"""Different forms of results that are remembered while learning."""


class RateTest:
    """Watches a rate for a rise.

    Args:
        limit: of the rate after an observation that was no hit, from 0 to 1.
        run_length: the least mean number of observations up to a false alarm.
        after: of the rate after a hit; as `limit` where None, as for independent observations.
    """

    __slots__ = ("_factors", "_found", "_last", "_level", "_sums", "count", "hits")

    def __init__(self, limit: float, run_length: float, after: float | None = None) -> None:
        following = limit if after is None else max(limit, after)
        both = [(_factors(limit, odds), _factors(following, odds)) for odds in ODDS]
        bets = [*((first, (1.0, 1.0)) for first, _ in both), *both]
        # by the last observation and by this one: what each bet is multiplied with
        self._factors = [
            [tuple(bet[last][hit] for bet in bets) for hit in (0, 1)] for last in (0, 1)
        ]
        self._sums = [0.0] * len(bets)
        self._level = run_length * len(bets)
        self._found = 1.0
        self._last = 0
        self.count = self.hits = 0

    def add(self, hit: bool) -> bool:
        """Adds one observation; returns whether the rate has risen.

        `count` and `hits` are of the observations since the rise probably began.
        """
        factors = self._factors[self._last][hit]
        self._sums = sums = [
            (1.0 + value) * factor for value, factor in zip(self._sums, factors, strict=True)
        ]
        self._found *= factors[-4]
        self._last = 1 if hit else 0
        self.count += 1
        self.hits += hit
        if self._found <= 1.0:
            self._found, self.count, self.hits = 1.0, 0, 0
        return sum(sums) >= self._level


def _factors(limit: float, odds: float) -> tuple[float, float]:
    """The likelihood ratios of a higher rate, for no hit and for a hit."""
    ratio = odds * limit / (1 - limit)
    rate = ratio / (1 + ratio)
    return (1 - rate) / (1 - limit), rate / limit


class Learned:
    """Counts hits and misses, after a hit and after none."""

    __slots__ = ("_counts", "_last")

    def __init__(self) -> None:
        self._counts, self._last = [[0, 0], [0, 0]], 0

    def add(self, hit: bool) -> None:
        """Takes one observation."""
        self._counts[self._last][hit] += 1
        self._last = 1 if hit else 0

    @property
    def limit(self) -> float:
        """The upper limit of the rate, whatever came before."""
        hits = self._counts[0][1] + self._counts[1][1]
        return upper_limit(hits, hits + self._counts[0][0] + self._counts[1][0])

    def test(self, run_length: float, least: float = 0.0) -> RateTest | None:
        """The test of what was learned.

        Args:
            run_length: see `RateTest`.
            least: what the rate after no hit may have been in any case.

        Returns:
            The test; None where the rate may have been so high that hardly anything is above it.
        """
        (misses, hits), (ended, went_on) = self._counts
        if misses + hits == 0:
            return None
        limit = max(upper_limit(hits, misses + hits), least)
        after = upper_limit(went_on, ended + went_on) if ended + went_on else UNKNOWN
        after = min(after, MAX_AFTER)
        return RateTest(limit, run_length, after) if limit <= MAX_LIMIT else None


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
        self._count, self._limit = 0, 0.0
        self._learned = Learned()
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
            limit = self._limit
            self._begin()
            return Rise((limit, test.hits, test.count))
        self._take(value)
        self._count += 1
        if self._count >= self._learn:
            self._limit, self._test = self._tested()
            self.watching = True
        return None

    def _is_hit(self, value: Any) -> bool:
        return bool(value)

    def _take(self, value: Any) -> None:
        self._learned.add(bool(value))

    def _tested(self) -> tuple[float, RateTest | None]:
        """The limit that an alarm names, and the test."""
        return self._learned.limit, self._learned.test(self._run_length)


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

    def _tested(self) -> tuple[float, RateTest | None]:
        """The chance to be slower than the j-th of n times is Beta(n - j + 1, j)."""
        count = len(self._times)
        place = min(ceil(SLOWEST * count), count)
        self.slow = sorted(self._times)[place - 1]
        for seconds in self._times:
            self._learned.add(seconds > self.slow)
        self._times = []
        limit = float(scipy.stats.beta.ppf(CONFIDENCE, count - place + 1, place))
        return limit, self._learned.test(self._run_length, limit)


class FormMonitor(RateMonitor):
    """Watches the share of results of a form that was not met in the first half of the learning.

    The second half says how often that happens where nothing has moved.
    """

    def _begin(self) -> None:
        super()._begin()
        self._forms: set[Hashable] = set()

    def _take(self, value: Any) -> None:
        if 2 * self._count >= self._learn:
            self._learned.add(value not in self._forms)
        elif len(self._forms) < MAX_FORMS:
            self._forms.add(value)

    def _is_hit(self, value: Any) -> bool:
        return value not in self._forms


def upper_limit(hits: int, count: int) -> float:
    """The upper Clopper-Pearson limit of a rate, one-sided, at 99%.

    Args:
        hits: how often it happened.
        count: of how many observations.

    Returns:
        From 0 to 1; 1 where it always happened.
    """
    return float(scipy.stats.beta.ppf(CONFIDENCE, hits + 1, count - hits)) if hits < count else 1.0


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
        return tuple(sorted((str(key), form_of(item, depth + 1)) for key, item in value.items()))
    if isinstance(value, list):
        return ("list", frozenset(form_of(item, depth + 1) for item in value[:_ITEMS]))
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return type(value).__name__
    return "number"
