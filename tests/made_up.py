"""Graded episodes made up for the tests of measures."""

from __future__ import annotations

import msgspec

from toolshift.core.scene import Applied
from toolshift.episode.grade import Grade
from toolshift.measure.scored import Scored
from toolshift.runs.cell import Cell

CLEAN = ()
ERASED = (Applied("identity_erasure", 2),)
PLACEBO = (Applied("placebo", 2),)
GONE = (Applied("fatal_error", 2),)
GOOD = Grade(
    passed=True,
    void=False,
    end="answered",
    cause="",
    solvable=True,
    refused=False,
    right_reason=False,
    prose=False,
    met=True,
    calls=4,
    errors=1,
    provoked=1,
    exploration=0.5,
    oracle_calls=2,
    misunderstood=0,
)
BAD = msgspec.structs.replace(GOOD, passed=False, cause="memorised_name")
VOID = msgspec.structs.replace(BAD, void=True, end="infrastructure", cause="infrastructure")
REFUSED = msgspec.structs.replace(
    GOOD, solvable=False, refused=True, right_reason=True, end="refused"
)
FORCED = msgspec.structs.replace(BAD, solvable=False, cause="answered_without_evidence")


def rows(shifts: tuple[Applied, ...], *groups: tuple[int, Grade], trial: int = 0) -> list[Scored]:
    """Scored episodes of tasks 0, 1, ...: so many of each grade, in order."""
    grades = [grade for count, grade in groups for _ in range(count)]
    return [
        Scored(f"{n}", Cell("poi", "listing", n, 0, "dev", 200, shifts, trial), grade)
        for n, grade in enumerate(grades)
    ]
