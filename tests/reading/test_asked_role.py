"""An answer that gives what was asked for to another does not name the right one."""

from __future__ import annotations

import pytest

from toolshift.reading.answers.by_words import matches
from toolshift.reading.quantity import RequestContext

ASKED = "Who is the manager of KA-72?"
PRICE = "What is the price of the lamp?"


@pytest.mark.parametrize(
    ("wanted", "answer", "request_"),
    [
        ("Ada Lovelace", "Alan Turing is the manager; Ada Lovelace is the deputy.", ASKED),
        ("Ada Lovelace", "The manager is Alan Turing. The deputy is Ada Lovelace.", ASKED),
        ("Ada Lovelace", '{"manager": "Alan Turing", "deputy": "Ada Lovelace"}', ASKED),
        ("4 EUR", "The price is 5 EUR; the fee is 4 EUR.", PRICE),
    ],
)
def test_what_is_said_to_be_something_else_is_not_it(
    wanted: str, answer: str, request_: str
) -> None:
    assert matches(answer, wanted)
    assert not matches(answer, wanted, RequestContext(request_))


@pytest.mark.parametrize(
    ("answer", "request_"),
    [
        ("Ada Lovelace is the manager; Alan Turing is the deputy.", ASKED),
        ("Ada Lovelace is the deputy; she is the acting manager.", ASKED),
        ("Ada Lovelace is the deputy of KA-72. Lovelace is the manager too.", ASKED),
        ("Alan Turing was the manager; Ada Lovelace is the new head.", ASKED),
        ("Alan Turing is the manager; Ada Lovelace is the deputy.", "Who is the manager's deputy?"),
        ("Alan Turing is the manager; Ada Lovelace is the deputy.", "Who stands in for them?"),
        (
            "Alan Turing is the manager; Ada Lovelace is the deputy.",
            "Who is the manager and who is the deputy?",
        ),
        (
            "Alan Turing is the manager; Ada Lovelace is the deputy.",
            "Who is the manager? Who is the deputy?",
        ),
    ],
)
def test_another_role_beside_it_does_no_harm(answer: str, request_: str) -> None:
    assert matches(answer, "Ada Lovelace", RequestContext(request_))
