"""Turns with several calls, from a trace: what an agent does where one of them fails."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolshift.core.step import Step
from toolshift.measure.parallel import ParallelCalls, parallel_calls, summed


def call(turn: int, name: str, ok: bool = True, **arguments: str) -> Step:
    return Step("call", turn, name, arguments, "", "", ok=ok)


def test_one_of_several_fails_and_is_made_again_alone() -> None:
    steps = [
        call(0, "a"),
        call(0, "b", ok=False),
        Step("answer", 1, said="."),
        call(2, "b"),
        call(3, "c"),
    ]
    found = parallel_calls(steps)
    assert found == ParallelCalls(3, several=1, most=2, partly=1, failed=1, repeated=1, doubled=0)


def test_what_had_succeeded_is_made_again_too() -> None:
    first = [call(0, "a", x="1"), call(0, "b", ok=False)]
    again = [call(1, "a", x="1"), call(1, "b")]
    other = [call(1, "a", x="2"), call(1, "c")]
    assert parallel_calls([*first, *again]).doubled == 1
    assert parallel_calls([*first, *other]) == ParallelCalls(2, 2, 2, 1, 1, 0, 0)


calls = st.builds(call, st.integers(0, 3), st.sampled_from("abc"), st.booleans())


@given(st.lists(calls, max_size=12))
def test_counts_hold_together_and_add_up(steps: list[Step]) -> None:
    steps = sorted(steps, key=lambda step: step.turn)
    found = parallel_calls(steps)
    assert found.turns == len({step.turn for step in steps})
    assert found.partly <= found.several <= found.turns
    assert found.repeated <= found.failed
    assert summed([found, ParallelCalls()]) == found
    assert (found.most > 1) == (found.several > 0)
