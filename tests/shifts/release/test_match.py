"""The likeness of names: as `difflib` has it, letter for letter."""

from __future__ import annotations

from difflib import SequenceMatcher

from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolshift.shifts.release.match import alike_letters

NAMES = st.text("abcd", max_size=14) | st.text(max_size=14)


@settings(max_examples=500, deadline=None)
@given(NAMES, NAMES)
@example("", "")
@example("ab", "ba")
@example("xabyab", "abxab")
def test_common_runs_are_those_of_difflib(one: str, other: str) -> None:
    """All likenesses were measured with it, so none may move."""
    assert alike_letters(one, other) == SequenceMatcher(None, one, other, autojunk=False).ratio()
