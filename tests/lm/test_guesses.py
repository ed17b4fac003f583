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
