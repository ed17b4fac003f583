"""Slots: who goes on in its own, who copies, and who is forgotten."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from toolshift.lm.slots import ROUND, Place, Slots  # noqa: E402


def tokens(first: int, length: int) -> np.ndarray:
    return np.arange(first, first + length, dtype=np.int32)


def filled(slots: Slots, *sequences: np.ndarray) -> list[Place]:
    """Places sequences, and writes as their keys what they are."""
    places = slots.place(list(sequences), 0)
    for place, sequence in zip(places, sequences, strict=True):
        for cells in slots.cells:
            cells[:, place.slot, :, : len(sequence)] = torch.tensor(sequence)[:, None].float()
        slots.slots[place.slot].tokens = sequence
    return places


def keys(slots: Slots, place: Place) -> list[int]:
    return slots.cells[-1][0, place.slot, 0, : place.known, 0].int().tolist()


@pytest.fixture
def slots() -> Slots:
    return Slots(2, 1, 1, torch.zeros(0), 3 * ROUND)


def test_a_sequence_that_goes_on_stays_where_it_is(slots: Slots) -> None:
    (first,) = filled(slots, tokens(0, 10))
    (again,) = slots.place([tokens(0, 13)], 0)
    assert (again.slot, again.known) == (first.slot, 10)


@pytest.mark.parametrize(
    ("most", "length", "slots"),
    [(0, 300, 1), (1000, 300, 1), (20 * ROUND, 300, 10), (10**6, 9, 32)],
)
def test_slots_are_made_ahead_within_what_is_remembered(most: int, length: int, slots: int) -> None:
    store = Slots(2, 1, 1, torch.zeros(0), most, at_once=32)
    filled(store, tokens(0, length))
    assert store.cells[0].shape[1] == slots
    before = store.cells[0]
    filled(store, tokens(500, length))
    assert store.cells[0] is before, "the store has not moved"


def test_one_that_begins_like_another_copies_it_and_leaves_it(slots: Slots) -> None:
    filled(slots, tokens(0, 40))
    other = np.concatenate([tokens(0, 20), tokens(900, 5)])
    (copied,) = slots.place([other], 0)
    assert (copied.known, keys(slots, copied)) == (20, list(range(20)))
    assert slots.longest(tokens(0, 40)) == 40


def test_two_of_one_batch_that_go_on_alike_stand_in_two_slots(slots: Slots) -> None:
    filled(slots, tokens(0, 40))
    one, other = np.concatenate([tokens(0, 40), [7]]), np.concatenate([tokens(0, 40), [8]])
    places = slots.place([one.astype(np.int32), other.astype(np.int32)], 0)
    assert len({place.slot for place in places}) == 2
    assert [keys(slots, place) for place in places] == [list(range(40))] * 2


def test_the_last_token_is_always_computed(slots: Slots) -> None:
    filled(slots, tokens(0, 10))
    assert slots.place([tokens(0, 10)], 0)[0].known == 9


def test_the_oldest_is_evicted_where_memory_is_full(slots: Slots) -> None:
    for first in range(0, 400, 100):  # three slots of ROUND positions
        filled(slots, tokens(first, 10))
    assert len(slots.slots) == 3
    assert [slots.longest(tokens(first, 10)) for first in range(0, 400, 100)] == [0, 10, 10, 10]


def test_what_is_known_survives_that_the_store_grows(slots: Slots) -> None:
    filled(slots, tokens(0, 10))
    (long,) = slots.place([tokens(0, 2 * ROUND)], 5)
    assert keys(slots, long) == list(range(10))
    assert slots.cells[0].shape[3] == 3 * ROUND


def test_no_more_is_held_than_may_be() -> None:
    slots = Slots(1, 1, 1, torch.zeros(0), 25)
    filled(slots, tokens(0, 10), tokens(100, 10), tokens(200, 10))
    slots.shrink()
    assert slots.held == 20
    slots.forget()
    assert (slots.held, slots.cells[0].numel()) == (0, 0)


def test_where_slots_widen_so_many_are_given_up_that_the_limit_holds(slots: Slots) -> None:
    for first in (0, 100, 200):  # three slots of ROUND positions: all that may be remembered
        filled(slots, tokens(first, 10))
    longer = np.concatenate([tokens(200, 10), tokens(9000, ROUND)])
    (place,) = filled(slots, longer)
    assert (place.slot, place.known) == (0, 10), "what was of use last stays, with its keys"
    assert keys(slots, place) == list(range(200, 210))
    assert slots.cells[0].shape[1] * slots.cells[0].shape[3] <= slots.max_tokens
    assert slots.longest(tokens(0, 10)) == 0
    both = [tokens(5000, 2 * ROUND + 1), tokens(7000, 9)]
    assert len({each.slot for each in filled(slots, *both)}) == 2, "a batch has what it needs"
