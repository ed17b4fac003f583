"""What comes every day or every weekend is no drift; what comes at another hour is."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from toolshift.drift.stream import Called
from toolshift.watch.rhythm import Rhythm
from toolshift.watch.watch import Alarm, Watcher

DAY = 86_400


def days(rng: Random, count: int, odd: int = -1) -> Iterator[Called]:
    """Calls that are slow at night and fail at the weekend; in the hour `odd` most fail."""
    for hour in range(24 * count):
        day, clock = divmod(hour, 24)
        errors = 0.95 if hour == odd else 0.25 if day % 7 in (5, 6) else 0.01
        for minute in range(0, 60, 2):
            ms = rng.lognormvariate(3, 0.3) * (5 if clock in (2, 3) else 1)
            when = hour * 3600.0 + minute * 60
            yield Called("get", {}, rng.random() >= errors, ms, None, when)


def by_day(watcher: Watcher, stream: Iterator[Called]) -> list[tuple[int, Alarm]]:
    return [(int((e.when or 0) // DAY), alarm) for e in stream for alarm in watcher.observe(e)]


def test_what_comes_every_night_and_every_weekend_is_soon_known() -> None:
    odd = 24 * 24 + 14
    found = by_day(Watcher(10_000), days(Random(1), 28, odd))
    assert {alarm.kind for day, alarm in found if day < 14} >= {"errors_up"}
    late = [(day, alarm.kind) for day, alarm in found if day >= 14]
    assert late == [(24, "errors_up")]
    (alarm,) = (alarm for day, alarm in found if day >= 14)
    assert "at this hour on earlier days" in alarm.sentence
    assert alarm.rate is not None
    assert alarm.limit is not None
    assert alarm.rate > 2 * alarm.limit


def test_an_hour_is_known_after_two_earlier_days_or_weeks_and_never_by_its_own() -> None:
    rhythm = Rhythm()

    def limit(when: float) -> float | None:
        return rhythm.limit(when, "x", lambda _, counts: counts["x"])

    for day in range(2):
        assert limit(day * DAY) is None
        for _ in range(30):
            rhythm.add(day * DAY, ["x"] if day else [])
    known = limit(2 * DAY)
    assert known is not None
    assert known > 0.6  # of one of the days every observation was one
    assert limit(2 * DAY + 3600) is None
    assert limit(40 * DAY) is None  # too long ago
