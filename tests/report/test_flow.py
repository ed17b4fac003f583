"""Where the labels of the flow chart stand."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from toolshift.report.html.flow import LINE, _stack, apart


@given(st.lists(st.integers(1, 500), min_size=1, max_size=14))
def test_labels_stand_apart_in_order_and_inside(sizes: list[int]) -> None:
    least = LINE / max(120, 26 * len(sizes))
    found = apart(_stack(sizes), least)
    assert all(later - earlier >= least - 1e-9 for earlier, later in pairwise(found))
    assert found[0] >= least / 2 - 1e-9
    assert found[-1] <= 1 - least / 2 + 1e-9


def test_a_label_with_room_stands_beside_its_band() -> None:
    places = _stack([10, 10])
    assert apart(places, 0.05) == [(top + bottom) / 2 for top, bottom in places]
