from __future__ import annotations

from toolshift.agents.pace import Pace


def paced(requests: float | None, tokens: float | None, sizes: list[int]) -> list[float]:
    now, starts = [0.0], []

    def sleep(seconds: float) -> None:
        now[0] += seconds

    pace = Pace(requests, tokens, clock=lambda: now[0], sleep=sleep)
    for size in sizes:
        pace.wait(size)
        starts.append(round(now[0], 3))
    return starts


def test_requests_are_spread_over_the_minute() -> None:
    assert paced(30, None, [5, 5, 5, 5]) == [0, 2, 4, 6]


def test_tokens_are_spread_over_the_minute() -> None:
    assert paced(None, 600, [100, 200, 1]) == [0, 10, 30]


def test_the_tighter_limit_counts() -> None:
    assert paced(60, 600, [1, 100, 1]) == [0, 1, 11]


def test_without_limits_nothing_waits() -> None:
    assert paced(None, None, [10**9] * 3) == [0, 0, 0]


def test_a_pause_is_not_saved_up() -> None:
    now, slept = [0.0], []
    pace = Pace(60, clock=lambda: now[0], sleep=slept.append)
    pace.wait(1)
    now[0] = 100.0
    pace.wait(1)
    pace.wait(1)
    assert slept == [1.0]
