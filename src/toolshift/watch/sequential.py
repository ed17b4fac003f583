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

import re
from collections import Counter
from collections.abc import Hashable, Mapping
from functools import lru_cache
from math import ceil, exp, floor, log
from typing import Any

import msgspec
import scipy  # type: ignore[import-untyped, unused-ignore]  # parts load at their first use

from toolshift.watch.rhythm import CONFIDENCE, DAY, Rhythm, lower_limit, upper_limit

ODDS = (1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
"""The higher rates, as odds relative to those of the limit."""
SLOWEST = 0.9
"""The quantile of the learned times above which a call counts as slow."""
MAX_LIMIT = 0.9
"""A rate that may have been higher than this is not watched: hardly anything is above it."""
UNKNOWN = 0.8
"""The chance of a hit after a hit where none was learned: runs of five on average are no drift."""
MAX_AFTER = 0.9
"""The highest such chance that is ever assumed, so that a failure of all calls is detected."""
LEAST = 1e-3
"""The lowest limit that an hour can have."""
LATEST, SHORTEST = 200, 10
"""Observations of which an alarm shows the end that tells most, and the shortest such end."""
FLOOR = 0.3
"""Without a baseline, a share of failures that is no norm, however the stream began."""
STREAK = 16
"""So many failures in a row are an outage, unless a baseline had runs of half that length."""
BY_HOUR = "at this hour on earlier days"
"""What an alarm says of a limit that is of the hour."""
NO_RESULT = "no result"
"""The form of a call that has no result; its share is learned, and it is never one that was met."""
MAX_FORMS = 256
"""Different forms of results that are remembered while learning."""


class RateTest:
    """Watches a rate for a rise.

    Args:
        limit: of the rate after an observation that was no hit, from 0 to 1.
        run_length: the least mean number of observations up to a false alarm.
        after: of the rate after a hit; as `limit` where None, as for independent observations.
    """

    __slots__ = ("_after", "_found", "_last", "_latest", "_level", "_limit", "_sums", "_whole")

    def __init__(self, limit: float, run_length: float, after: float | None = None) -> None:
        self._limit, self._after = limit, limit if after is None else max(limit, after)
        self._sums = [0.0] * (2 * len(ODDS))
        self._level = run_length * len(self._sums)
        self._found = 1.0
        self._last = 0
        self._whole = (0, 0)
        self._latest: list[bool] = []

    def add(self, hit: bool, usual: float | None = None) -> bool:
        """Takes one observation.

        Args:
            hit: whether it happened.
            usual: the limit of the rate at this hour, where it is known.

        Returns:
            Whether the rate has risen.
        """
        limit, after = self._limit, self._after
        if usual is not None:
            limit = min(max(usual, LEAST), MAX_LIMIT)
            after = max(limit, after)
        factors = _bets(limit, after)[self._last][hit]
        self._sums = sums = [
            (1.0 + value) * factor for value, factor in zip(self._sums, factors, strict=True)
        ]
        self._found *= factors[-4]
        self._last = 1 if hit else 0
        count, hits = self._whole
        self._whole = (count + 1, hits + hit)
        self._latest.append(hit)
        if len(self._latest) > 2 * LATEST:
            del self._latest[:-LATEST]
        if self._found <= 1.0:
            self._found, self._whole = 1.0, (0, 0)
        return sum(sums) >= self._level

    @property
    def window(self) -> tuple[int, int]:
        """Hits and count since the rise probably began.

        Of the ends of what came last, of ten observations or more, it is the one that is least
        likely under the limit.
        """
        count, hits = self._whole
        best, found = -1.0, (sum(self._latest), len(self._latest))
        above = 0
        for length, hit in enumerate(reversed(self._latest[-LATEST:]), 1):
            above += hit
            surprise = _surprise(above, length, self._limit) if length >= SHORTEST else -1.0
            if surprise > best:
                best, found = surprise, (above, length)
        return (hits, count) if count > LATEST else found


@lru_cache(maxsize=4096)
def _bets(limit: float, after: float) -> list[list[tuple[float, ...]]]:
    """By the last observation and by this one: what each bet is multiplied with."""
    both = [(_factors(limit, odds), _factors(after, odds)) for odds in ODDS]
    bets = [*((first, (1.0, 1.0)) for first, _ in both), *both]
    return [[tuple(bet[last][hit] for bet in bets) for hit in (0, 1)] for last in (0, 1)]


def _factors(limit: float, odds: float) -> tuple[float, float]:
    """The likelihood ratios of a higher rate, for no hit and for a hit."""
    ratio = odds * limit / (1 - limit)
    rate = ratio / (1 + ratio)
    return (1 - rate) / (1 - limit), rate / limit


def _surprise(hits: int, count: int, limit: float) -> float:
    """How much less likely so many hits are under the limit than at their own rate, as a log."""
    rate = hits / count
    if rate <= limit:
        return 0.0
    miss = (count - hits) * log((1 - rate) / (1 - limit)) if hits < count else 0.0
    return hits * log(rate / limit) + miss


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
    def seen(self) -> tuple[int, int]:
        """The hits, and all observations."""
        hits = self._counts[0][1] + self._counts[1][1]
        return hits, hits + self._counts[0][0] + self._counts[1][0]

    @property
    def limit(self) -> float:
        """The upper limit of the rate, whatever came before."""
        return upper_limit(*self.seen)

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


def recent(
    usual: float | None, learned: float, when: float | None, told: float | None
) -> float | None:
    """What is usual at an hour; for a day after an alarm also what was learned since.

    A change that lasts is not told again at each hour that did not have it yet.
    """
    if usual is None or when is None or told is None or when - told > DAY:
        return usual
    return max(usual, learned)


class Rise(msgspec.Struct, frozen=True):
    """What has risen, and the evidence.

    Attributes:
        limit: what the rate was at most.
        hits: how often it happened since the rise probably began.
        count: of how many observations.
        basis: where the limit comes from, in words.
    """

    limit: float
    hits: int
    count: int
    basis: str


class RateMonitor:
    """Learns a rate, watches it, and learns again after each alarm.

    Args:
        learn: observations to learn from.
        run_length: see `RateTest`.
    """

    def __init__(self, learn: int, run_length: float) -> None:
        self._learn, self._run_length = learn, run_length
        self._rhythm = Rhythm()
        self._told_at: float | None = None
        self._begin()

    def _begin(self) -> None:
        self._count, self._limit = 0, 0.0
        self._learned = Learned()
        self._test: RateTest | None = None
        self.watching = False

    def add(self, value: Any, when: float | None = None) -> Rise | None:
        """Takes one observation.

        Args:
            value: whether it happened; what subclasses watch.
            when: in seconds since 1970; None where the stream does not say.

        Returns:
            What has risen; None for no alarm.
        """
        usual = recent(self._usual(when), self._limit, when, self._told_at)
        if when is not None and (key := self._key(value)) is not None:
            self._rhythm.add(when, key)
        if self.watching:
            test = self._test
            if test is None or not test.add(self._is_hit(value), usual):
                return None
            hits, count = test.window
            limit, basis = self._limit, self._basis()
            if usual is not None:
                limit, basis = usual, BY_HOUR
            self._told_at = when
            self._begin()
            return Rise(limit, hits, count, basis)
        self._take(value)
        self._count += 1
        if self._count >= self._learn:
            self._limit, self._test = self._tested()
            self.watching = True
        return None

    def _usual(self, when: float | None) -> float | None:
        """What the rate may be at this hour; None where earlier days do not say."""
        if when is None or not self.watching:
            return None
        return self._rhythm.limit(when, True, lambda _, counts: counts[True])

    def _key(self, value: Any) -> tuple[Hashable, ...] | None:
        """What of an observation is counted by the hour; None for nothing at all."""
        return (True,) if value else ()

    def _basis(self) -> str:
        hits, count = self._learned.seen
        return f"when learned ({hits} of {count})"

    def _is_hit(self, value: Any) -> bool:
        return bool(value)

    def _take(self, value: Any) -> None:
        self._learned.add(bool(value))

    def _tested(self) -> tuple[float, RateTest | None]:
        """The limit that an alarm names, and the test."""
        return self._learned.limit, self._learned.test(self._run_length)


class ErrorMonitor(RateMonitor):
    """Watches the share of calls that fail, and knows an outage by absolute limits too.

    Failures that are no norm are told though nothing was learned: `STREAK` in a row, or clearly
    more than `FLOOR` from the beginning. Only a baseline can say that they are: runs that it had
    are allowed to be twice as long. Nothing is learned while every call fails.
    """

    def __init__(self, learn: int, run_length: float) -> None:
        super().__init__(learn, run_length)
        self._streak = self._longest = 0
        self._told = self.out = False
        self._floor = RateTest(FLOOR, run_length, UNKNOWN)

    @property
    def failing(self) -> bool:
        """Whether all fails since an alarm, or none of some calls has ever worked."""
        return self.out or self.never_worked >= SHORTEST

    @property
    def never_worked(self) -> int:
        """How many calls there were, where all have failed; 0 where one has not."""
        hits, count = self._learned.seen
        return hits if hits == count and not self.watching else 0

    def add(self, value: Any, when: float | None = None, well: bool = False) -> Rise | None:
        """Takes one observation; `well` says that it is of a baseline, when all was well."""
        failed = bool(value)
        if not failed:
            if well:
                self._longest = max(self._longest, self._streak)
            self._streak, self.out = 0, False
        else:
            self._streak += 1
            if self.out:
                return None
            if not well and (rise := self._outage(when)):
                return rise
        early = not self.watching and not well and not self._told
        rise = super().add(failed, when)
        if rise is not None:
            self._told = True  # what is learned from here on was told
            self.out = self._streak >= SHORTEST
        elif early:
            rise = self._above_floor(failed)
        return rise

    def _outage(self, when: float | None) -> Rise | None:
        """An alarm where the last calls failed one and all."""
        if self._streak < max(STREAK, 2 * self._longest):
            return None
        usual = self._usual(when)
        if usual is not None and usual > MAX_LIMIT:
            return None
        limit, known, count = self._limit, self.watching, self._streak
        basis = self._basis() if known else "in any case, for nothing is learned yet"
        self._begin()
        self.out = self._told = True
        self._told_at = when
        return Rise(limit if known else FLOOR, count, count, basis)

    def _above_floor(self, failed: bool) -> Rise | None:
        """An alarm where too many calls fail from the beginning."""
        rose = self._floor.add(failed)
        hits, count = self._learned.seen
        whole = self.watching and lower_limit(hits, count) > FLOOR
        if not rose and not whole:
            return None
        if rose and not whole:
            hits, count = self._floor.window
        self._told = True  # once: from now on this is what is known
        return Rise(FLOOR, hits, count, "in any case, for nothing else is known")


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

    def _key(self, value: Any) -> tuple[Hashable, ...] | None:
        """The step of a time: steps are `STEP` apart, so one hour has few."""
        return (floor(log(value) / STEP),) if value > 0 else (-10_000,)

    def _usual(self, when: float | None) -> float | None:
        if when is None or not self.watching:
            return None
        slow = self.slow

        def slower(_: int, counts: Counter[Hashable]) -> int:
            """Times whose step reaches above what is slow."""
            return sum(n for step, n in counts.items() if exp((int(str(step)) + 1) * STEP) > slow)

        return self._rhythm.limit(when, slow, slower)

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


STEP = 0.05
"""The step of times, as a logarithm, in which they are counted by the hour."""


class FormMonitor(RateMonitor):
    """Watches the share of results of a form that was not met in the first half of the learning.

    The second half says how often that happens where nothing has moved. Calls without a result
    count from the first result on.
    """

    @property
    def met(self) -> bool:
        """Whether any result was met."""
        return bool(self._forms)

    def _begin(self) -> None:
        super()._begin()
        self._forms: set[Hashable] = set()

    def _take(self, value: Any) -> None:
        if 2 * self._count >= self._learn:
            self._learned.add(value not in self._forms)
        elif value != NO_RESULT and len(self._forms) < MAX_FORMS:
            self._forms.add(value)

    def _is_hit(self, value: Any) -> bool:
        return value not in self._forms

    def _key(self, value: Any) -> tuple[Hashable, ...] | None:
        """Forms have no rhythm."""
        return None


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
    if isinstance(value, str):
        return _form_of_text(value) if depth == 0 else "str"
    return type(value).__name__ if isinstance(value, bool) or value is None else "number"


_PAGE = re.compile(r"\s*<(!doctype html|html|head|body)\b", re.IGNORECASE)


def _form_of_text(text: str) -> str:
    """A whole result that is a text: an empty one and a page of HTML have forms of their own."""
    return "no text" if not text.strip() else "a page of HTML" if _PAGE.match(text) else "str"
