"""How an agent calls in parallel, and what it does where one of several calls fails."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec

from toolshift.core.step import Step


class ParallelCalls(msgspec.Struct, frozen=True):
    """Turns with several calls, in one episode or in many.

    Attributes:
        turns: in which at least one call was made.
        several: of these, turns with two calls or more.
        most: the most calls of one turn.
        partly: turns with several calls of which some failed and some did not.
        failed: the calls that failed in these.
        repeated: of these, calls of which the same tool was called again later, and it succeeded.
        doubled: calls that had succeeded in such a turn, and were made again with the same
            arguments: work that is done twice, and a write made twice.
    """

    turns: int = 0
    several: int = 0
    most: int = 0
    partly: int = 0
    failed: int = 0
    repeated: int = 0
    doubled: int = 0

    def __add__(self, other: ParallelCalls) -> ParallelCalls:
        """Both together."""
        return ParallelCalls(
            self.turns + other.turns,
            self.several + other.several,
            max(self.most, other.most),
            self.partly + other.partly,
            self.failed + other.failed,
            self.repeated + other.repeated,
            self.doubled + other.doubled,
        )


def parallel_calls(steps: Sequence[Step]) -> ParallelCalls:
    """What a trace shows of parallel calls; see `ParallelCalls`."""
    calls = [(number, step) for number, step in enumerate(steps) if step.kind == "call"]
    total = ParallelCalls()
    for _, group in groupby(calls, key=lambda numbered: numbered[1].turn):
        turn = list(group)
        last, made = turn[-1][0], [step for _, step in turn]
        failed = [step for step in made if not step.ok]
        done = [step for step in made if step.ok]
        partly = bool(failed) and bool(done) and len(made) > 1
        after = [step for number, step in calls if number > last]
        total += ParallelCalls(
            turns=1,
            several=int(len(made) > 1),
            most=len(made),
            partly=int(partly),
            failed=len(failed) if partly else 0,
            repeated=sum(any(_again(one, later) for later in after) for one in failed)
            if partly
            else 0,
            doubled=sum(any(_same(one, later) for later in after) for one in done) if partly else 0,
        )
    return total


def summed(each: Iterable[ParallelCalls]) -> ParallelCalls:
    """Those of many episodes."""
    return sum(each, ParallelCalls())


def _again(failed: Step, later: Step) -> bool:
    return later.ok and later.name == failed.name


def _same(done: Step, later: Step) -> bool:
    return later.name == done.name and later.arguments == done.arguments
