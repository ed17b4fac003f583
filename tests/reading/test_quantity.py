"""A number counts as the answer where it is the quantity that was asked for.

The first forms were written before the rule, the others after it; docs/strangers.md says how many
were read rightly at first sight.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from toolshift.reading.answers.by_words import matches
from toolshift.reading.quantity import RequestContext

Forms = Mapping[tuple[str, str, str], list[str]]
"""Answers, by the request, what was shown, and what is wanted."""

RIGHT: Forms = {
    ("How many copies of Dune are there?", '{"title": "Dune", "copies": 4}', "4"): [
        "4 copies",
        "4 pcs.",
        "4 of them, and 20% are on loan.",
        "4 copies. None were lost.",
        "No problem. There are 4 copies.",
        "No delays. 4 copies are on the shelf.",
        "No copies are lost. 4 are on the shelf.",
        "No results in the first branch. 4 copies in the second.",
        "Copies: 4. Reservations: none.",
    ],
    ("How long is the ride?", '{"ride": 90}', "90"): [
        "90 minutes",
    ],
    ("What did it cost?", '{"price": 1250.0}', "1250"): [
        "$1,250",
    ],
    ("Tell me the total of O-17.", '{"total": 1250.0}', "1250"): [
        "1250 EUR",
    ],
    ("What is my discount?", '{"discount": 15}', "15"): [
        "15 %",
    ],
    ("How far is it?", '{"distance": 12}', "12"): [
        "12 km",
    ],
    ("How warm is it?", '{"temp": -3}', "-3"): [
        "-3 °C",
    ],
    ("What is the battery level?", '{"battery": 80}', "80"): [
        "80%",
    ],
    ("How heavy is the lamp?", '{"lamp": 3}', "3"): [
        "3 kg",
    ],
    ("How many copies of Dune are there?", '{"title": "Dune", "copies": 0}', "0"): [
        "No copies. 4 were lost.",
        "None, I am afraid; 4 were sold.",
    ],
    ("How many copies of Dune were lost?", '{"lost": 4}', "4"): [
        "No copies on the shelf. 4 were lost.",
    ],
    ("How many seats are free in Aurora?", '{"room": "Aurora", "free_seats": 7}', "7"): [
        "7 seats, which is 35% of the room.",
        "7 people can still sit down.",
        "7. No reservations are needed.",
        "No obstacles. 7 seats are free.",
        "None of the front seats, but 7 in the back are free.",
        "7 seats. Zero are reserved.",
        "No reservation today. 7 free seats.",
    ],
    ("How many stars does the hotel have?", '{"hotel": "Sol", "stars": 3}', "3"): [
        "3 out of 5 stars",
        "It has 3 stars and lies 3 km from the station.",
    ],
    ("What's the humidity?", '{"hum": 60}', "60"): [
        "60 %",
    ],
    ("How old is the cat?", '{"cat": 4}', "4"): [
        "4 years",
    ],
    ("What do I owe?", '{"open": 40}', "40"): [
        "40 CHF",
    ],
    ("How tall is the tower?", '{"tower": 324}', "324"): [
        "324 m",
    ],
    ("How many seats are free in Aurora?", '{"room": "Aurora", "free_seats": 0}', "0"): [
        "No free seats; 7 people are on the waiting list.",
    ],
    ("How many seats are reserved in Aurora?", '{"reserved": 7}', "7"): [
        "None free. 7 are reserved.",
    ],
    ("How many lamps are in stock?", '{"item": "lamp", "stock": 12}', "12"): [
        "12 units",
        "A dozen lamps.",
        "12 lamps. No chairs.",
        "No trouble at all: 12 lamps.",
        "No other item matched. 12 lamps are in stock.",
    ],
    ("How much is the membership?", '{"membership": {"fee": 30}}', "30"): [
        "30 € a year",
        "$30.00 per month",
    ],
    ("How many lamps are in stock?", '{"item": "lamp", "stock": 0}', "0"): [
        "None at the moment. 12 come on Friday.",
    ],
}

ANOTHER: Forms = {
    ("How many copies of Dune are there?", '{"title": "Dune", "copies": 4}', "4"): [
        "4%",
        "4 percent of them.",
        "The fine is 4 EUR.",
        "It weighs 4 kg.",
        "It takes 4 hours.",
        "It is 4 km away.",
        "It is 4 °C.",
        "No copies. 4 were lost.",
        "None. 4 are on loan.",
        "Zero copies; 4 were lost.",
        "No copies left, 4 lost.",
        "Not a single copy. 4 went missing.",
        "Nope, none: 4 were sold.",
        "0 copies. 4 were sold.",
        "Two copies. 4 were lost.",
    ],
    ("On which floor is Aurora?", '{"room": "Aurora", "floor": 4}', "4"): [
        "4 minutes",
    ],
    ("How many copies of Dune are there?", '{"title": "Dune", "copies": 0}', "0"): [
        "4 copies. No problems.",
    ],
    ("How many seats are free in Aurora?", '{"room": "Aurora", "free_seats": 7}', "7"): [
        "7 %",
        "seven percent",
        "A seat costs 7 euros.",
        "It is 7 metres long.",
        "No seats. 7 were taken this morning.",
        "Not one seat, sorry. 7 have been sold.",
        "None free - 7 are reserved.",
        "Zero. 7 were taken.",
        "No free seats; 7 people are on the waiting list.",
        "Three seats. 7 are broken.",
        "Nothing left. 7 people came early.",
    ],
    ("How many stars does the hotel have?", '{"hotel": "Sol", "stars": 3}', "3"): [
        "3 minutes on foot",
        "$3",
    ],
    ("How many lamps are in stock?", '{"item": "lamp", "stock": 12}', "12"): [
        "12% of the shelf is lamps.",
        "They cost £12.",
        "Each weighs 12 kg.",
        "12 days until more arrive.",
        "No lamps in stock; 12 are on order.",
        "None at the moment. 12 come on Friday.",
        "Zero in stock, 12 in transit.",
        "No, none. 12 were returned.",
        "Not any lamps. 12 chairs, though.",
        "Nil. (12 were sold.)",
    ],
}


def cases(forms: Forms) -> list[tuple[str, str, str, str]]:
    return [(*about, answer) for about, answers in forms.items() for answer in answers]


@pytest.mark.parametrize(("request_", "shown", "wanted", "answer"), cases(RIGHT))
def test_it_is_said(request_: str, shown: str, wanted: str, answer: str) -> None:
    assert matches(answer, wanted, RequestContext(request_, shown))


@pytest.mark.parametrize(("request_", "shown", "wanted", "answer"), cases(ANOTHER))
def test_it_is_not_said(request_: str, shown: str, wanted: str, answer: str) -> None:
    assert not matches(answer, wanted, RequestContext(request_, shown))


def test_where_nothing_is_known_a_unit_does_no_harm() -> None:
    assert matches("It weighs 4 kg.", "4")
    assert matches("One moment. It is 4.", "4")
    assert not matches("No copies. 4 were lost.", "4 copies")


ALL, FREE = "How many copies of Dune are there?", "How many copies of Dune are free?"


@pytest.mark.parametrize(
    "answer",
    [
        "6, of which 4 are free.",
        "6 copies, 4 of them free.",
        "There are six copies, of which four are free.",
        "The library has 6 copies (of which only 4 are free at the moment).",
        "6 copies in all - 4 of these are free.",
        "6, 4 of which are free.",
    ],
)
def test_a_part_is_not_the_whole(answer: str) -> None:
    assert matches(answer, "6", RequestContext(ALL))
    assert not matches(answer, "4", RequestContext(ALL))
    assert matches(answer, "4", RequestContext(FREE))
    assert not matches(answer, "6", RequestContext(FREE))


@pytest.mark.parametrize(
    ("request_", "answer", "wanted"),
    [
        ("How many copies are left?", "6 in all, of which 4 are available.", "4"),
        ("How many copies are there left?", "6, of which 4 are free.", "4"),
        ("How many rooms do you have available?", "12 rooms, 3 of which are available.", "3"),
        ("How many copies does the library own?", "6, of which 4 copies are free.", "6"),
        ("", "12 rooms, 3 of which are booked.", "3"),
        ("How many copies are there?", "4 of them, of the 1965 edition.", "4"),
        (
            "How many rooms are there, and how many of them are free?",
            "12, of which 3 are free.",
            "3",
        ),
        ("How many rooms are there? Which are free?", "12, 3 of which are free.", "3"),
        ("How many rooms are free? Also tell me the total.", "12, of which 3 are free.", "12"),
        ("How many rooms are free, out of how many?", "12 rooms, 3 of them free.", "12"),
    ],
)
def test_where_the_request_says_neither_both_count(request_: str, answer: str, wanted: str) -> None:
    assert matches(answer, wanted, RequestContext(request_))
