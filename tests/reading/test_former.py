"""What was so before does not count as the answer, unless it was asked for.

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

NOW: Forms = {
    ("Who is the author of Dune?", '{"title": "Dune", "author": "Herbert"}', "Herbert"): [
        "The author is now Herbert; the previous author was Asimov.",
        "It was Asimov before; it is Herbert today.",
        "It used to be Asimov, but the current author is Herbert.",
        "The author was Herbert.",
        "Herbert replaced Asimov as the author.",
        "Herbert (previously listed as Asimov).",
    ],
    ("What does the lamp cost?", '{"item": "lamp", "price": 25.0}', "25"): [
        "The price rose from 20 to 25 EUR.",
        "The price was raised to 25 EUR last year.",
    ],
    ("Who was the previous author of Dune?", '{"previous_author": "Herbert"}', "Herbert"): [
        "The previous author was Herbert.",
    ],
    ("What is the original price?", '{"original_price": 20}', "20"): [
        "The original price was 20 EUR.",
    ],
    ("When did I last borrow Dune?", '{"last_loan": "2026-03-03"}', "2026-03-03"): [
        "You last borrowed it on 3 March 2026.",
    ],
    ("Where do I stay?", '{"hotel": "Old Bridge Inn"}', "Old Bridge Inn"): [
        "You stay in the Old Bridge Inn.",
    ],
    ("What is the status of O-17?", '{"status": "shipped"}', "shipped"): [
        "It was shipped earlier today.",
        "I checked the earlier message as well: it is shipped.",
    ],
    ("Who is the doctor of Mara Lind?", '{"patient": "Mara Lind", "doctor": "Dr. Haas"}', "Haas"): [
        "Her doctor is Dr. Haas, who took over from Dr. Roth.",
        "Dr. Haas is her doctor now, after Dr. Roth left.",
        "As of today it's Dr. Haas (earlier: Dr. Roth).",
        "In the old system I saw Dr. Roth, but the current record says Dr. Haas.",
        "As in my previous reply: Dr. Haas.",
    ],
    ("When is my appointment?", '{"appointment": "2026-03-03"}', "2026-03-03"): [
        "It was originally on 10 April; you moved it to 3 March 2026.",
        "Your appointment was moved from 10 April to 3 March 2026.",
        "Previously booked for 10 April, it is on 3 March 2026 now.",
        "I looked at the previous entries too. The date is 3 March 2026.",
    ],
    ("What is the status of ticket 9?", '{"ticket": 9, "status": "open"}', "open"): [
        "The ticket was reopened last week and is open.",
        "It is still open, as it was before.",
    ],
    ("Which room is booked for the workshop?", '{"workshop": "w1", "room": "Aurora"}', "Aurora"): [
        "Aurora, which replaced Borealis.",
        "It has always been Aurora.",
        "You had Borealis before, but you are in Aurora this time.",
        "Aurora was booked for the workshop two weeks ago.",
    ],
    ("How much is the membership?", '{"membership": {"fee": 30}}', "30"): [
        "It went up from 25 EUR to 30 EUR.",
        "The membership was 25 EUR until 2025 and is 30 EUR now.",
        "Since January it's 30 EUR.",
    ],
}

BEFORE: Forms = {
    ("Who is the author of Dune?", '{"title": "Dune", "author": "Herbert"}', "Herbert"): [
        "The previous author was Herbert.",
        "Its former author is Herbert.",
        "Herbert used to be the author.",
        "Originally Herbert, now Asimov.",
        "It was Herbert until last year.",
        "Before the change, the author was Herbert.",
        "Herbert, before it was corrected to Asimov.",
        "Herbert has been replaced by Asimov.",
        "The author changed from Herbert to Asimov.",
        "The old entry says Herbert.",
        "Formerly Herbert.",
        "An earlier edition lists Herbert as the author.",
        "Asimov replaced Herbert as the author.",
    ],
    ("What does the lamp cost?", '{"item": "lamp", "price": 20.0}', "20"): [
        "Last year's price was 20 EUR.",
        "It was 20 EUR, but it is 25 EUR now.",
        "The price rose from 20 to 25 EUR.",
    ],
    ("Who is the doctor of Mara Lind?", '{"patient": "Mara Lind", "doctor": "Dr. Haas"}', "Haas"): [
        "Dr. Haas was her doctor before Dr. Roth took over.",
        "Her doctor in the past was Dr. Haas.",
        "The record from 2019 still names Dr. Haas, who has since left.",
        "Dr. Roth took over from Dr. Haas.",
        "Her ex-doctor is Dr. Haas.",
        "It once was Dr. Haas.",
        "Dr. Haas (outdated)",
        "Up to last month it was Dr. Haas.",
    ],
    ("When is my appointment?", '{"appointment": "2026-03-03"}', "2026-03-03"): [
        "Your appointment was moved from 3 March to 10 April 2026.",
        "The initial date was 3 March 2026.",
        "It had been 3 March 2026, and now it's 10 April.",
        "3 March 2026 was the date before you rescheduled.",
    ],
    ("What is the status of ticket 9?", '{"ticket": 9, "status": "open"}', "open"): [
        "Its prior status was open.",
    ],
    ("Which room is booked for the workshop?", '{"workshop": "w1", "room": "Aurora"}', "Aurora"): [
        "Aurora was the room at first.",
        "We switched from Aurora to Borealis.",
        "In the older plan it is Aurora.",
        "Until yesterday: Aurora.",
        "Aurora got replaced by Borealis.",
    ],
    ("How much is the membership?", '{"membership": {"fee": 30}}', "30"): [
        "Back in 2020 it was 30 EUR.",
        "The old fee: 30 EUR.",
        "30 EUR, which no longer applies.",
        "It went up from 30 EUR to 45 EUR.",
    ],
}


def cases(forms: Forms) -> list[tuple[str, str, str, str]]:
    return [(*about, answer) for about, answers in forms.items() for answer in answers]


@pytest.mark.parametrize(("request_", "shown", "wanted", "answer"), cases(NOW))
def test_it_is_said(request_: str, shown: str, wanted: str, answer: str) -> None:
    assert matches(answer, wanted, RequestContext(request_, shown))


@pytest.mark.parametrize(("request_", "shown", "wanted", "answer"), cases(BEFORE))
def test_it_is_not_said(request_: str, shown: str, wanted: str, answer: str) -> None:
    assert not matches(answer, wanted, RequestContext(request_, shown))


@pytest.mark.parametrize("title", ["Dr.", "Mr.", "Prof."])
def test_a_title_ends_no_sentence(title: str) -> None:
    assert matches(f"It is {title} Haas.", "Haas")
    assert not matches(f"It is not {title} Haas.", "Haas")
