"""What is usual at an hour of the day and of the week, by what earlier days and weeks had there.

Counts are kept for each hour of the week, of its last four weeks. What is usual now is read from
the same hour of at least two earlier weeks; where these are not known, from the same hour of at
least two of the last seven days. So what comes every night, or every weekend, is told once or twice
and then no more. Hours are those of UTC, and a stream without times has no rhythm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache

import scipy  # type: ignore[import-untyped, unused-ignore]  # parts load at their first use

HOUR, DAY_HOURS, WEEK_HOURS = 3600, 24, 168
DAY = HOUR * DAY_HOURS
WEEKS, DAYS = 4, 7
FEWEST = 20
"""Observations that an hour must have, over its earlier days or weeks, to be known."""
FEWEST_TIMES = 2
"""Earlier days or weeks that must have had it before something is usual."""
MAX_KEYS = 256
"""Different things that are counted in one hour."""
CONFIDENCE = 0.99
"""The confidence of the limits of rates."""

Hour = tuple[int, int, Counter[Hashable]]
"""The number of the hour since 1970, its observations, and how often each thing was met."""


class Rhythm:
    """Counts what is met in each hour of the week."""

    __slots__ = ("_hours", "_known")

    def __init__(self) -> None:
        self._hours: dict[int, list[Hour]] = {}
        self._known: dict[Hashable, float | None] = {}

    def add(self, when: float, met: Iterable[Hashable]) -> None:
        """Takes one observation, in which some things were met."""
        hour = int(when // HOUR)
        kept = self._hours.setdefault(hour % WEEK_HOURS, [])
        if not kept or kept[-1][0] != hour:
            kept.append((hour, 0, Counter()))
            del kept[:-WEEKS]
            self._known = {}
        _, count, counts = kept[-1]
        for one in met:
            if one in counts or len(counts) < MAX_KEYS:
                counts[one] += 1
        kept[-1] = (hour, count + 1, counts)

    def limit(
        self, when: float, key: Hashable, hits: Callable[[int, Counter[Hashable]], int]
    ) -> float | None:
        """What a rate may be at this hour, by earlier days; None where nothing is known of it.

        Args:
            when: in seconds since 1970.
            key: what `hits` counts, so that it is counted once an hour.
            hits: how often it happened, of the observations of an hour and what was met in them.

        Returns:
            The upper 99% limit of the earlier hours together, or what two of them had beyond doubt
            (their lower limits), whichever is higher.
        """
        hour = int(when // HOUR)
        place = (hour, key)
        if place not in self._known:
            self._known[place] = self._limit(hour, hits)
        return self._known[place]

    def _limit(self, hour: int, hits: Callable[[int, Counter[Hashable]], int]) -> float | None:
        weekly = [one for one in self._hours.get(hour % WEEK_HOURS, ()) if one[0] < hour]
        daily = [
            one
            for days in range(1, DAYS + 1)
            for one in self._hours.get((hour - days * DAY_HOURS) % WEEK_HOURS, ())
            if one[0] == hour - days * DAY_HOURS
        ]
        had = sorted(
            lower_limit(hits(count, counts), count)
            for _, count, counts in {one[0]: one for one in (*weekly, *daily)}.values()
        )
        for earlier in (weekly, daily):
            total = sum(count for _, count, _ in earlier)
            if len(earlier) >= FEWEST_TIMES and total >= FEWEST:
                whole = upper_limit(sum(hits(count, counts) for _, count, counts in earlier), total)
                return max(whole, had[-FEWEST_TIMES])
        return None


@lru_cache(maxsize=4096)
def lower_limit(hits: int, count: int) -> float:
    """The lower Clopper-Pearson limit of a rate, one-sided, at 99%.

    Args:
        hits: how often it happened.
        count: of how many observations.

    Returns:
        From 0 to 1; 0 where it never happened.
    """
    return float(scipy.special.betaincinv(hits, count - hits + 1, 1 - CONFIDENCE)) if hits else 0.0


@lru_cache(maxsize=4096)
def upper_limit(hits: int, count: int) -> float:
    """The upper Clopper-Pearson limit of a rate, one-sided, at 99%.

    Args:
        hits: how often it happened.
        count: of how many observations.

    Returns:
        From 0 to 1; 1 where it always happened.
    """
    return (
        float(scipy.special.betaincinv(hits + 1, count - hits, CONFIDENCE)) if hits < count else 1.0
    )
