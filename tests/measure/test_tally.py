from __future__ import annotations

import numpy as np

from toolshift.measure.tally import Tally, pairs


def tally(*rows: tuple[int, bool]) -> Tally:
    tasks, held = zip(*rows, strict=True)
    return Tally.count(np.array(tasks), np.array(held), 6)


def test_tasks_stand_in_the_order_of_their_first_rows() -> None:
    found = tally((4, True), (1, False), (4, False), (0, True), (1, False), (1, True))
    assert found.tasks.tolist() == [4, 1, 0]
    assert found.means.tolist() == [0.5, 1 / 3, 1.0]
    assert not found.single
    assert found.by_name().tasks.tolist() == [0, 1, 4]


def test_what_was_not_counted_is_left_out() -> None:
    found = tally((2, True), (5, False)).over(np.array([5, 3, 2]))
    assert found.tasks.tolist() == [5, 2]
    assert found.single
    assert len(Tally.count(found.tasks[:0], found.held[:0] > 0, 6)) == 0


def test_pairs_are_of_the_tasks_of_both_in_the_order_of_their_names() -> None:
    first, second = pairs(
        tally((3, True), (2, False), (0, True)), tally((5, True), (2, True), (0, False), (0, True))
    )
    assert first.tolist() == [1.0, 0.0]
    assert second.tolist() == [0.5, 1.0]
