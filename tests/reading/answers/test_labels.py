"""Values that an answer gives to another label or subject than the one that was asked for."""

from __future__ import annotations

import pytest

from toolshift.reading.answers.by_type import judge
from toolshift.reading.answers.by_words import matches
from toolshift.reading.answers.kinds import AnswerKind
from toolshift.reading.quantity import RequestContext

INVOICE = (
    '{"booking_id": "BK-1", "due_date": "2026-03-26", "net": {"amount": 1034.45}, '
    '"vat": {"amount": 215.55}, "gross": {"amount": 1250.0, "currency": "EUR"}, "paid": false}'
)
GROSS = RequestContext("What is the gross amount of the invoice for booking BK-1?", INVOICE)
DUE = RequestContext("When is the invoice for booking BK-1 due?", INVOICE)
FREE = RequestContext(
    "How many angle grinders (PW-102) are free from 9 to 12 March?", '{"sku": "PW-102", "free": 9}'
)
WHO = RequestContext(
    "Who is assigned to booking BK-1?", '{"customer_id": "C-41", "assignee": "Lena"}'
)
END = RequestContext(
    "On which day does booking BK-1 end?",
    '{"period": {"start": "2026-03-09", "end": "2026-03-12"}}',
)
START = RequestContext("On which day does booking BK-1 start?", END.shown)
HEAVY = RequestContext("How heavy is the core drill?", '{"name": "Core drill", "weight_kg": 14.5}')
RENTED = RequestContext("Until when is it rented?", '{"from": "2026-07-01", "until": "2026-07-08"}')
NOT_RIGHT = ("wrong", "unclear")


@pytest.mark.parametrize(
    ("context", "wanted", "kind", "answer", "right"),
    [
        (GROSS, "EUR 1,250.00", "amount", "Net EUR 1,250.00, gross EUR 1,465.55.", False),
        (GROSS, "EUR 1,250.00", "amount", "The net amount is EUR 1,250.00.", False),
        (GROSS, "EUR 1,250.00", "amount", "EUR 1,250.00 net", False),
        (GROSS, "EUR 1,250.00", "amount", "Net: 1,034.45 EUR, gross: 1,250.00 EUR.", True),
        (GROSS, "EUR 1,250.00", "amount", "It comes to EUR 1,250.00 including VAT.", True),
        (GROSS, "EUR 1,250.00", "amount", "With VAT it comes to EUR 1,250.00.", True),
        (GROSS, "EUR 1,250.00", "amount", "1,250.00 EUR gross", True),
        (GROSS, "EUR 1,250.00", "amount", "EUR 1,250.00 is due on 26 March 2026.", True),
        (DUE, "2026-03-26", "date", "The booking ends on 26 March 2026; the invoice is due later.",
         False),
        (DUE, "2026-03-26", "date", "The booking is open; the invoice is due on 26 March 2026.",
         True),
        (DUE, "2026-03-26", "date", "It is not paid yet. It is due on 26 March 2026.", True),
        (DUE, "2026-03-26", "date", "It must be paid by March 26, 2026.", True),
        (DUE, "2026-03-26", "date", "No later than 26 March 2026.", True),
        (WHO, "Lena", "text", "Lena is the customer; Omar is assigned.", False),
        (WHO, "Lena", "text", "Lena takes care of it; she was assigned on Monday.", True),
        (WHO, "Lena", "text", "Ines is the customer; Lena is assigned.", True),
        (FREE, "9", "number", "9 hedge trimmers are free, and 4 angle grinders.", False),
        (FREE, "9", "number", "9 days", False),
        (FREE, "9", "number", "9 for 4 days.", True),
        (FREE, "9", "number", "9 angle grinders are free.", True),
        (END, "2026-03-12", "date", "It starts on 12 March and ends on 15 March 2026.", False),
        (END, "2026-03-12", "date", "It starts on 12 March 2026.", False),
        (END, "2026-03-12", "date", "It runs from 9 March 2026 through 12 March 2026.", True),
        (START, "2026-03-09", "date", "It runs from 9 March 2026 through 12 March 2026.", True),
        (END, "2026-03-12", "date", "It runs from 9 March 2026 through 13 March 2026.", False),
        (END, "2026-03-09", "date", "It runs from 9 March 2026 through 12 March 2026.", False),
        (HEAVY, "14.5 kg", "text", "The rotary hammer weighs 14.5 kg, the core drill 7.2 kg.",
         False),
        (HEAVY, "14.5 kg", "text", "The rotary hammer weighs 7.2 kg, the core drill 14.5 kg.",
         True),
    ],
)  # fmt: skip
def test_a_value_under_another_label_does_not_pass(
    context: RequestContext, wanted: str, kind: AnswerKind, answer: str, right: bool
) -> None:
    assert matches(answer, wanted, context) is right
    assert judge(answer, wanted, kind, context) in (("right", "unclear") if right else NOT_RIGHT)


def test_the_end_of_a_range_of_days_in_one_month() -> None:
    assert matches("It runs from 9 to 12 March 2026.", "2026-03-12", END)
    assert matches("It is rented from 1 July 2026 until 8 July 2026.", "2026-07-08", RENTED)
    assert not matches("It runs from 9 to 12 March 2026.", "2026-03-12", DUE)
