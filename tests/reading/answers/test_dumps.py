"""An answer that lists all that may be right says nothing; a record and a list of steps do."""

from __future__ import annotations

import pytest

from toolshift.reading.answers.by_words import matches
from toolshift.reading.quantity import RequestContext

CODES = "RF-1067, RF-1077, RF-1087"
DUMPS = [
    f"{CODES}, shipped, packed, lost, returned",
    f"One of: shipped, packed, lost, returned, {CODES}",
    "- shipped\n- packed\n- lost\n- RF-1067\n- RF-1077\n- RF-1087",
    f"It is one of shipped, packed, lost, or {CODES}.",
]
RECORDS = [
    ("What is the status?", "Kettle, blue, shipped, 40 EUR", "shipped"),
    ("What is the status?", "O-1701, shipped, 2026-05-12", "shipped"),
    ("What is the status?", "The order is shipped, paid and insured.", "shipped"),
    ("Refund it.", "Order O-1701, refund RF-1067", "RF-1067"),
    ("Refund it.", "Reference: RF-1067, transaction TX-9", "RF-1067"),
    ("Refund it.", "RF-1067\nO-1701", "RF-1067"),
    ("Move me from 12B to 12A.", "Moved from 12B to 12A.", "12A"),
    ("Which is mine?", "There are BK-1001 (Mara), BK-1002 (Jon). Yours is BK-1001.", "BK-1001"),
    ("Which is first, T-1 or T-4?", "Of T-1 and T-4, T-1 is first.", "T-1"),
    ("Book it.", "Your new booking is BK-1002 (BK-1001 was cancelled).", "BK-1002"),
    ("Book it.", "I cancelled BK-1001; BK-1002 is the new one.", "BK-1002"),
    ("Book it.", "Cancelled BK-1001\nBK-1002 is your new booking.", "BK-1002"),
    ("Which is the latest?", "- TCK-29\n- TCK-30\n- **TCK-31** \u2190 latest", "TCK-31"),
    ("Which gate?", "Gate A4, A5 is closed", "A4"),
    ("Whose is it?", "T-1, Ann, T-2, Bob", "Ann"),
    ("Which street?", "Main St, 12, 1010, Vienna", "Main St"),
    ("Who drives?", "One of our drivers can do it, and Ann is assigned.", "Ann"),
]


@pytest.mark.parametrize("wanted", ["shipped", "lost", "RF-1067", "RF-1077", "RF-1087"])
@pytest.mark.parametrize("answer", DUMPS)
def test_a_list_of_all_that_may_be_right_is_wrong(answer: str, wanted: str) -> None:
    assert not matches(answer, wanted, RequestContext("Refund it and say what it is now.", ""))


@pytest.mark.parametrize("answer", [CODES, f"The reference is {CODES}.", "RF-1067 \u2013 RF-1087"])
def test_codes_of_one_series_beside_each_other_are_guesses(answer: str) -> None:
    for wanted in ("RF-1067", r"RF-\d{4}"):
        assert not matches(answer, wanted, RequestContext("Refund it.", ""))


@pytest.mark.parametrize(("request_", "answer", "wanted"), RECORDS)
def test_a_record_or_a_choice_that_is_made_is_an_answer(
    request_: str, answer: str, wanted: str
) -> None:
    assert matches(answer, wanted, RequestContext(request_, ""))
