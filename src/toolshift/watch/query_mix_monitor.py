"""Detects changes in the mix of what users ask. Sequential tests over features, in constant memory.

What is asked is seen in units: a conversation, or ten calls of one where it has more. A unit has a
set of features: the tools that were called, the forms of their arguments, or the words of what was
asked. From the first half of the learning come the most frequent features, from the second half how
often each is there. Then each is watched for a rise, and for a rise of its absence; so is the share
of units with something that was not met. All together have the run length that is stated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

import msgspec

from toolshift.watch.rhythm import Rhythm
from toolshift.watch.sequential import BY_HOUR, Learned, RateTest, recent

TRACKED = 16
"""Features that are watched one by one."""
MAX_FEATURES = 4_096
"""Different features that are remembered while learning."""
MAX_WORDS = 200
"""The most words of one text that are read."""
UNIT = 10
"""The most calls in one unit."""
_WORD = re.compile(r"[^\W\d_]{3,}")
NEW: Hashable = ("new",)
"""The label for features that were not seen while learning."""


class Moved(msgspec.Struct, frozen=True):
    """What an alarm says.

    Attributes:
        feature: what is there more often, or `NEW`.
        absent: whether it is its absence that is more frequent.
        limit: how often that was at most when learned.
        hits: units with it since the rise.
        count: all units since the rise.
        basis: where the limit comes from, in words.
    """

    feature: Hashable
    absent: bool
    limit: float
    hits: int
    count: int
    basis: str


class MixMonitor:
    """Learns how often each feature is there, watches all of them, and learns again after an alarm.

    Args:
        learn: units to learn from.
        run_length: the least mean number of units up to a false alarm, of all tests together.
        newness: a unit is new where more than this share of its features was not met.
    """

    def __init__(self, learn: int, run_length: float, newness: float = 0.0) -> None:
        self._learn, self._run_length, self._newness = learn, run_length, newness
        self._rhythm = Rhythm()
        self._told_at: float | None = None
        self._ever: set[Hashable] = set()
        self._begin()

    def _begin(self) -> None:
        self._count = 0
        self._met: Counter[Hashable] = Counter()
        self._learned: dict[tuple[Hashable, bool], Learned] = {}
        self._tests: list[tuple[Hashable, bool, float, str, RateTest]] = []
        self.watching = False

    def add(self, features: Iterable[Hashable], when: float | None = None) -> Moved | None:
        """Adds one unit; `when` is in seconds since 1970."""
        unit = dict.fromkeys(features)  # in their order, so that ties are settled alike each time
        if self.watching:
            return self._watch(unit, when)
        self._count_by_hour(unit, when)
        if 2 * self._count < self._learn:
            room = len(self._met) < MAX_FEATURES
            self._met.update(feature for feature in unit if room or feature in self._met)
        else:
            self._take(unit)
        self._count += 1
        if self._count >= self._learn:
            self._end_learning()
        return None

    def _count_by_hour(self, unit: Mapping[Hashable, None], when: float | None) -> None:
        if when is not None:
            self._rhythm.add(when, unit)

    def _take(self, features: Mapping[Hashable, None]) -> None:
        if not self._learned:
            frequent = [one for one, times in self._met.most_common(TRACKED) if times > 1]
            places = [(one, absent) for absent in (False, True) for one in frequent]
            self._learned = {place: Learned() for place in [(NEW, False), *places]}
        for (feature, absent), learned in self._learned.items():
            learned.add(self._has(features, feature) != absent)

    def _has(self, features: Mapping[Hashable, None], feature: Hashable) -> bool:
        if feature is not NEW:
            return feature in features
        new = sum(one not in self._met and one not in self._ever for one in features)
        return new > self._newness * len(features)

    def _end_learning(self) -> None:
        share = self._run_length * len(self._learned)
        self._tests = []
        for place, watched in self._learned.items():
            test = watched.test(share)
            if test is not None:
                hits, count = watched.seen
                basis = f"when learned ({hits} of {count})"
                self._tests.append((*place, watched.limit, basis, test))
        self._learned = {}
        self.watching = True

    def _watch(self, features: Mapping[Hashable, None], when: float | None) -> Moved | None:
        strange = {NEW: None} if self._has(features, NEW) else {}
        self._count_by_hour({**features, **strange}, when)
        for feature, absent, limit, basis, test in self._tests:
            usual = recent(self._usual(feature, absent, when), limit, when, self._told_at)
            if test.add(self._has(features, feature) != absent, usual):
                told = (limit, basis) if usual is None else (usual, BY_HOUR)
                room = max(MAX_FEATURES - len(self._ever), 0)
                self._ever.update([*self._met, *features][:room])
                self._told_at = when
                self._begin()
                return Moved(feature, absent, told[0], *test.window, told[1])
        return None

    def _usual(self, feature: Hashable, absent: bool, when: float | None) -> float | None:
        """How often that may be at this hour; None where earlier days do not say."""
        if when is None:
            return None

        def hits(count: int, counts: Counter[Hashable]) -> int:
            return count - counts[feature] if absent else counts[feature]

        return self._rhythm.limit(when, (feature, absent), hits)


def words_of(text: str) -> tuple[str, ...]:
    """The words of what was asked, of at least three letters, in lower case."""
    words: dict[str, None] = {}
    for match in _WORD.finditer(text[: 40 * MAX_WORDS]):
        words.setdefault(match[0].lower())
        if len(words) == MAX_WORDS:
            break
    return tuple(words)
