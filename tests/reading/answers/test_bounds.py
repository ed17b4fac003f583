"""A bound is the value itself where the request asks for that bound, and vague elsewhere."""

from __future__ import annotations

import pytest

from toolshift.reading.answers.by_words import matches
from toolshift.reading.quantity import RequestContext

ASKED = [
    ("Within how many days are returns accepted?", "Within 30 days.", "30"),
    ("Within how many days are returns accepted?", "They are accepted within 30 days.", "30 days"),
    ("How many days do I have for a return?", "You can return it within 30 days.", "30"),
    ("How many books can I borrow at most?", "At most 5.", "5"),
    ("What is the maximum number of guests?", "A maximum of 8 guests.", "8"),
    ("What is the maximum number of guests?", "No more than 8 guests.", "8"),
    ("How many guests may we bring?", "You can bring 8 at most.", "8"),
    ("What is the minimum order?", "A minimum of 20 EUR.", "20 EUR"),
    ("At least how many points do I need?", "At least 30 points.", "30"),
    ("After which date can I renew?", "After 12 May 2026.", "2026-05-12"),
    ("From what age may children swim?", "From 6 years.", "6"),
    ("Above what temperature does it warn?", "Above 80 degrees.", "80"),
    ("Under what weight is shipping free?", "Under 5 kg.", "5"),
]
NOT_ASKED = [
    ("How many guests are booked?", "At most 8.", "8"),
    ("How many guests came?", "8 at most.", "8"),
    ("How many days will it take?", "Within 30 days.", "30"),
    ("How many orders do I have?", "Up to 8.", "8"),
    ("How many trains can I take?", "As many as 3.", "3"),
    ("When does it arrive?", "After 12 May 2026.", "2026-05-12"),
    ("What does the room cost?", "From 80 EUR.", "80 EUR"),
    ("At least how many points do I need?", "At most 30 points.", "30"),
    ("What is the maximum number of guests?", "At least 8.", "8"),
    ("How many guests may we bring?", "Under 8.", "8"),
    ("What is the maximum number of guests?", "A maximum of 8 or 9 guests.", "8"),
    ("Book a table for at most 40 EUR. How many seats are free?", "At most 8.", "8"),
    ("How many seats are free for at most 40 EUR?", "At most 8.", "8"),
]


@pytest.mark.parametrize(("request_", "answer", "wanted"), ASKED)
def test_the_bound_that_is_asked_for_is_the_value(request_: str, answer: str, wanted: str) -> None:
    assert matches(answer, wanted, RequestContext(request_, ""))


@pytest.mark.parametrize(("request_", "answer", "wanted"), NOT_ASKED)
def test_another_bound_is_vague(request_: str, answer: str, wanted: str) -> None:
    assert not matches(answer, wanted, RequestContext(request_, ""))
