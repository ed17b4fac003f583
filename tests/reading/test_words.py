"""Negation, offers and keys mean the same wherever a reader looks for them."""

from __future__ import annotations

import re

import pytest

from toolshift.reading.assertion import verdict
from toolshift.reading.prose_signs import Message
from toolshift.reading.words import (
    FURTHER_HELP,
    NEGATIVE,
    NO_THING,
    OFFER,
    OPPOSITES,
    SCALES,
    key,
    negation,
    singular,
)


@pytest.mark.parametrize("word", [*NEGATIVE, *NO_THING])
def test_every_reader_knows_every_negative_word(word: str) -> None:
    text = f"I can say {word} of them is PAID"
    assert verdict(text, text.index("PAID"), len(text), False) == "denied"
    assert "~denials 1" in Message(text).kind_signs()


def test_no_negates_where_a_reader_says_so() -> None:
    assert re.search(negation(), "it isn't cheap")
    assert not re.search(negation(), "no ticket")
    assert re.search(negation("no"), "no ticket")


@pytest.mark.parametrize(
    ("text", "offers", "beside_the_task"),
    [
        ("Anything else?", True, True),
        ("Can I help you with more?", True, True),
        ("May I have your name?", True, False),
        ("Which city is it?", False, False),
    ],
)
def test_an_offer_is_wider_than_further_help(
    text: str, offers: bool, beside_the_task: bool
) -> None:
    assert bool(OFFER.search(text)) == offers
    assert bool(FURTHER_HELP.search(text)) == beside_the_task


def test_an_offer_behind_a_statement_leaves_it_a_statement() -> None:
    text = "There are 5 copies, shall I reserve one? Could it be a park, a gallery, something else?"
    assert verdict(text, text.index("5"), text.index("5") + 1, False) == "said"
    assert verdict(text, text.index("park"), text.index("park") + 4, False) == "open"


def test_keys_leave_signs_and_spaces_out() -> None:
    assert key("It's  A, b!") == key("it's a b") == "it's a b"
    assert [singular(word) for word in ("Cities", "days", "km")] == ["city", "day", "km"]


def test_opposites_are_pairs_of_different_words() -> None:
    assert all(one != other for one, other in OPPOSITES)
    assert len({frozenset(pair) for pair in OPPOSITES}) == len(OPPOSITES)
    assert SCALES["earlier"] == ("time", -1)
    assert SCALES["later"] == ("time", 1)
