"""The reading of prose where answers are plain values."""

from __future__ import annotations

import pytest

from toolshift.episode.plain_prose import read_plain_prose

SHOWN = '{"title":"Dune","copies":4,"status":"shipped","due":"2026-03-03","room":"Aurora"}'
REQUEST = "How is order O-17 of mara@example.com, and how many copies of it are there?"


@pytest.mark.parametrize(
    "text",
    [
        "There are 4 copies.",
        "It is due on 3 March 2026, not on 10 April",
        "No problem, it has been shipped",
        '{"status":"not shipped"}',
        '{"error": null, "value": "K7Q2-M9XD"}',
        "Should you have questions, write to us. The code is K7Q2-M9XD.",
        "only one match: K7Q2-M9XD",
        "Sorry, no e-mail could be sent. The reference itself is K7Q2-M9XD",
        "Unfortunately, the order has not been shipped yet.",
        "I'm sorry to say that there are no copies left.",
        "It has been shipped. Can I help with anything else?",
        "The room is Aurora. Would you like me to book it?",
        "shipped",
        "Yes.",
        "Has it been shipped? Yes.",
        "I could not send you the confirmation, but there are four copies.",
        "I couldn't find it at first. It turned out to be shipped.",
        "Done! Let me know if you need anything else.",
        "I've returned the book for you.",
        "The loan is overdue, I am afraid.",
        "Please note that the due date is 3 March 2026.",
    ],
)
def test_a_plain_value_is_an_answer(text: str) -> None:
    assert read_plain_prose(text, SHOWN, REQUEST) == ("answer", "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I could not find any order with this number.", "not_found"),
        ("Sorry, there is no order O-17 in our system.", "not_found"),
        ("Order O-17 does not exist.", "not_found"),
        ("I found the room Aurora, but the order O-17 could not be found.", "not_found"),
        ("I looked. There is no such order. Would you like me to try another one?", "not_found"),
        ("I can't complete this: the service has been decommissioned.", "service_failure"),
        ("I am unable to do this because the tool get_order was removed.", "tool_unavailable"),
        ('refuse(reason="tool_unavailable")', "tool_unavailable"),
    ],
)
def test_a_refusal_says_that_it_cannot_be_done(text: str, reason: str) -> None:
    assert read_plain_prose(text, SHOWN, REQUEST) == ("refusal", reason)


@pytest.mark.parametrize(
    "text",
    [
        "I find no trace of KA-99 in the ledger: no car with that plate.",
        '{"ok": false, "error": "no car with that plate", "plate": "KA-99"}',
        "There was a typo at first, but with the right spelling, too: no car with that plate.",
    ],
)
def test_where_nothing_is_counted_no_such_thing_is_a_refusal(text: str) -> None:
    asked = "Who owns the car KA-99?"
    assert read_plain_prose(text, "no car KA-99", asked) == ("refusal", "not_found")


def test_where_things_are_counted_none_of_them_is_an_answer() -> None:
    asked = "How many cars of this make are there?"
    assert read_plain_prose("There are no cars of this make.", "[]", asked)[0] == "answer"


@pytest.mark.parametrize(
    "text",
    [
        "Which order do you mean?",
        "There are two orders, O-1701 and O-1702. Which one do you mean?",
        "Please provide the order number.",
        "I need your e-mail address before I can look it up.",
        "Let me know which of the two you would like.",
    ],
)
def test_a_question_asks_for_a_detail(text: str) -> None:
    assert read_plain_prose(text, SHOWN, REQUEST) == ("question", "")
