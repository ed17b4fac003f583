"""Yes-or-no questions that are answered without yes or no, by what was asked, stated or denied."""

from __future__ import annotations

import pytest

from toolshift.reading.answers.by_type import judge
from toolshift.reading.answers.by_words import matches
from toolshift.reading.answers.predicate import says_predicate
from toolshift.reading.quantity import RequestContext

PAID = RequestContext(
    "Has the invoice for booking BK-7002 been paid?",
    '{"invoice_id": "INV-5502", "booking_id": "BK-7002", "paid": true, "deposit": 20}',
)
HOLD = RequestContext(
    "Is tom@baird.example on credit hold?",
    '{"customer_id": "C-42", "name": "Tom Baird", "credit_hold": true}',
)
TWO = RequestContext(HOLD.request, '[{"name": "Tom Baird"}, {"name": "Ines Morel"}]')
LAMP = RequestContext("Please tell me whether the lamp is on.", "{}")
TRAM = RequestContext("Does the 14 tram stop at the museum?", "{}")


@pytest.mark.parametrize(
    ("context", "text", "said"),
    [
        (PAID, "The invoice for booking BK-7002 has been paid.", True),
        (PAID, "Invoice INV-5502 is paid.", True),
        (PAID, "It's already been paid.", True),
        (PAID, "That invoice is marked as paid.", True),
        (PAID, "Paid in full.", True),
        (PAID, "It has not been paid.", False),
        (PAID, "It hasn't been paid yet.", False),
        (PAID, "The invoice is unpaid.", False),
        (PAID, "It is not unpaid.", True),
        (PAID, "It has yet to be paid.", False),
        (PAID, "Nobody has paid it.", False),
        (PAID, "It hasn't.", False),
        (HOLD, "The customer is on credit hold.", True),
        (HOLD, "Tom Baird isn't on credit hold.", False),
        (HOLD, "He is no longer on credit hold.", False),
        (HOLD, "He was on credit hold, but no longer is.", False),
        (LAMP, "The lamp is on.", True),
        (TRAM, "I'm afraid the 14 doesn't.", False),
        (TRAM, "It stops at the museum.", True),
        # another predicate, time or subject, or a doubt
        (PAID, "It has been partly paid.", None),
        (PAID, "It will be paid soon.", None),
        (PAID, "It has to be paid by Friday.", None),
        (PAID, "It is being paid.", None),
        (PAID, "It may have been paid.", None),
        (PAID, "Has it been paid?", None),
        (PAID, "The deposit has been paid.", None),
        (PAID, "The invoice for booking BK-7001 has been paid.", None),
        (PAID, "It has been booked.", None),
        (PAID, "The invoice is for booking BK-7002.", None),
        (PAID, "It is still open.", None),
        (PAID, "It has been paid. It has not been paid.", None),
        (HOLD, "He was on credit hold.", None),
        (TWO, "Ines Morel is on credit hold.", None),
        (LAMP, "The lamp is off.", None),
        (LAMP, "The lamp.", None),
        (TRAM, "The museum.", None),
    ],
)
def test_what_was_asked_is_stated_or_denied(
    context: RequestContext, text: str, said: bool | None
) -> None:
    assert says_predicate(text, context) is said


@pytest.mark.parametrize(
    ("wanted", "text", "right"),
    [
        ("yes", "It has been paid.", True),
        ("no", "It has been paid.", False),
        ("no", "The invoice is unpaid.", True),
        ("no", "Not yet.", True),
        ("no", "No, that is wrong: it has been paid.", False),
        ("yes", "No, that is wrong: it has been paid.", False),
        ("yes", "Yes, but no payment was received.", False),
        ("yes", "Yes, but I cannot send you the receipt.", True),
        ("yes", "Yes, it has been paid, but no receipt was sent.", True),
        ("yes", "Yes, and there is no charge.", True),
        ("yes", "Yes, but it has not been paid.", False),
        ("yes", "Yes, but not in full.", False),
        ("yes", "Yes, but it has not been shipped.", True),
        ("yes", "Yes, but no receipt was issued.", True),
        ("yes", "Yes, but it was paid late, not on time.", True),
        ("yes", "Yes, although not until 2 January.", True),
    ],
)
def test_both_rules_read_it(wanted: str, text: str, right: bool) -> None:
    assert matches(text, wanted, PAID) is right
    assert (judge(text, wanted, "yes_no", PAID) == "right") is right


NAMES = ["Rotary hammer", "Angle grinder"]
TOOLS = RequestContext(
    "Which power tools cost at most 50 EUR a day?",
    '{"items": [{"name": "Rotary hammer", "rate": 38.5}, {"name": "Angle grinder", "rate": 21}]}',
)


@pytest.mark.parametrize("kind", ["text", "choice"])
@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("Rotary hammer and Angle grinder", "right"),
        ("1. Rotary hammer\n2. Angle grinder", "right"),
        ("- Rotary hammer: 38.50 EUR\n- Angle grinder: 21 EUR", "right"),
        ("Rotary hammer, Angle grinder and Core drill", "unclear"),
        ("Rotary hammer", "wrong"),
        ("Rotary hammer or Angle grinder", "unclear"),
        ("Not the rotary hammer, but the angle grinder.", "wrong"),
    ],
)
def test_several_names_are_no_rivals_of_each_other(kind: str, answer: str, verdict: str) -> None:
    assert judge(answer, NAMES, kind, TOOLS) == verdict  # type: ignore[arg-type]
