"""Guesses: what followed the same tokens when they were last seen."""

from __future__ import annotations

from toolshift.lm.guesses import Guesser


def test_what_followed_last_time_is_guessed() -> None:
    assert Guesser([1, 2, 3, 4, 5, 1, 2, 3]).guess(2) == [4, 5]


def test_the_latest_time_counts_and_three_tokens_before_two() -> None:
    assert Guesser([1, 2, 7, 1, 2, 8, 1, 2]).guess(1) == [8]
    assert Guesser([5, 1, 2, 7, 6, 1, 2, 8, 5, 1, 2]).guess(1) == [7]


def test_nothing_is_guessed_of_what_was_never_seen() -> None:
    guesser = Guesser([1, 2, 3])
    assert guesser.guess(4) == []
    for token in (9, 1, 2):
        guesser.add(token)
    assert guesser.guess(8) == [3, 9, 1, 2]


def test_the_longest_that_was_seen_decides_whoever_said_it() -> None:
    others = Guesser([1, 2, 3, 4, 5, 6, 7, 8])
    assert Guesser([9, 2, 3, 4], others).guess(2) == [5, 6]
    assert Guesser([3, 4, 9, 2, 3, 4], others).guess(1) == [5]  # three before two
    assert Guesser([2, 3, 4, 9, 2, 3, 4], others).guess(1) == [9]  # its own before others'


def test_what_agrees_more_is_guessed_further() -> None:
    said = [*range(10, 30), 3, *range(10, 12)]
    assert Guesser(said).guess(9) == [12, 13, 14, 15]
    assert Guesser([*range(10, 30), *range(10, 16)]).guess(9) == list(range(16, 24))
