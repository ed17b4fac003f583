"""Questions that name options: an answer that gives it to another option is no answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.core.choice import chooses_another
from toolshift.core.options import rivals
from toolshift.core.quantity import Asked
from toolshift.core.statement import says

FIRST = "Which is due first, T-101 or T-104?"
MORE = "Who has more tickets overall, Zoë Çelik or Jan Müller?"
CHEAP = "Is the lamp or the standing desk cheaper?"
LATER = "Which of Aurora and Borealis opens later?"
BLOCKED = "Which ticket is blocked, T-101 or T-104?"
STATE = "Is T-103 open, blocked or closed?"
WROTE = "Who wrote Dune, Frank Herbert or Brian Herbert?"
THREE = "Which costs the least: Dune, Emma or Ulysses?"

RIGHT = [
    (FIRST, "T-101", "T-101"),
    (FIRST, "T-101", "T-101 is due before T-104."),
    (FIRST, "T-101", "T-101 (before T-104)"),
    (FIRST, "T-101", "Of T-101 and T-104, T-101 is first."),
    (FIRST, "T-101", "Of T-104 and T-101, the first is T-101."),
    (FIRST, "T-101", "Between T-104 and T-101, T-101 comes first."),
    (FIRST, "T-101", "T-101 is due first (2026-04-02), before T-104 (2026-05-17)."),
    (FIRST, "T-101", "T-101 is due on 2 April, T-104 on 17 May, so T-101 is first."),
    (FIRST, "T-101", "T-101 is due on 2 April and T-104 on 17 May."),
    (FIRST, "T-101", "T-104 is due on 17 May, so the first is T-101."),
    (FIRST, "T-101", "T-104 is due after T-101."),
    (FIRST, "T-101", "T-104 is later than T-101."),
    (FIRST, "T-101", "Not T-104 but T-101."),
    (FIRST, "T-101", "T-101, not T-104."),
    (FIRST, "T-101", "T-101, rather than T-104, is due first."),
    (FIRST, "T-101", "T-101 comes first, then T-104."),
    (FIRST, "T-101", "First comes T-101, and T-104 follows later."),
    (FIRST, "T-101", "T-104 is not due before T-101."),
    (FIRST, "T-101", "T-104 isn't first; T-101 is."),
    (FIRST, "T-101", "It is T-101. T-104 comes later."),
    (FIRST, "T-101", "I looked at T-104 first and then at T-101. The answer is T-101."),
    (FIRST, "T-101", "First, I checked T-104. T-101 is due earlier."),
    (FIRST, "T-101", "T-104 was created first, but T-101 is due first."),
    (FIRST, "T-101", "After T-101 comes T-104."),
    (FIRST, "T-101", "T-101 and T-104 are due on 2 April and 17 May; the former is due first."),
    (FIRST, "T-101", "Compared to T-104, T-101 is due sooner."),
    (FIRST, "T-101", "T-101 is due in more than 5 days, T-104 in more than 40."),
    (FIRST, "T-101", "**T-101** - due 2026-04-02\nT-104 - due 2026-05-17"),
    (FIRST, "T-101", '{"first": "T-101", "second": "T-104"}'),
    (FIRST, "T-101", "T-101's due date (2 April) is earlier than T-104's (17 May)."),
    (FIRST, "T-101", "Since T-104 isn't due until 17 May, T-101 comes first."),
    (FIRST, "T-104", "T-104 is due before T-101."),
    (MORE, "Zoë Çelik", "Zoë Çelik has more tickets than Jan Müller."),
    (MORE, "Zoë Çelik", "Zoe Celik has more tickets (4) than Jan Muller (1)."),
    (MORE, "Zoë Çelik", "Zoë Çelik, with 4 tickets to Jan Müller's 1."),
    (MORE, "Zoë Çelik", "Jan Müller has fewer tickets than Zoë Çelik."),
    (MORE, "Zoë Çelik", "Zoë Çelik: 4 tickets vs. Jan Müller: 1 ticket."),
    (MORE, "Zoë Çelik", "Jan Müller has 1 ticket, Zoë Çelik has 4, which is more."),
    (MORE, "Zoë Çelik", "Jan Müller has more comments, but Zoë Çelik has more tickets."),
    (CHEAP, "lamp", "The lamp is cheaper than the standing desk."),
    (CHEAP, "lamp", "The standing desk costs more than the lamp."),
    (CHEAP, "lamp", "The standing desk is more expensive; the lamp costs only 20 EUR."),
    (CHEAP, "standing desk", "The standing desk is less expensive than the lamp."),
    (CHEAP, "lamp", "The lamp, not the standing desk."),
    (LATER, "Borealis", "Borealis opens later than Aurora."),
    (LATER, "Bor[a-z]+", "Borealis opens later than Aurora."),
    (LATER, "Borealis", "Aurora opens before Borealis."),
    (LATER, "Borealis", "Aurora opens at 9:30, Borealis only at 14:15."),
    (BLOCKED, "T-101", "T-101 is blocked, T-104 is open."),
    (BLOCKED, "T-101", "T-104 is not blocked, but T-101 is."),
    (BLOCKED, "T-101", "T-104 was blocked last week; T-101 is blocked now."),
    (STATE, "blocked", "T-103 is blocked."),
    (STATE, "blocked", "T-103 is not open but blocked."),
    (STATE, "blocked", "T-103 is blocked, and T-104 is open."),
    (WROTE, "Frank Herbert", "Frank Herbert wrote Dune. Brian Herbert wrote sequels to Dune."),
    (WROTE, "Frank Herbert", "It was Frank Herbert, not Brian Herbert."),
    (THREE, "Emma", "Emma costs the least; Dune and Ulysses cost more."),
    (THREE, "Emma", "Emma is cheaper than Dune and Ulysses."),
]
WRONG = [
    (FIRST, "T-101", "T-104 is due before T-101."),
    (FIRST, "T-101", "T-101 is later than T-104."),
    (FIRST, "T-101", "T-101 is due after T-104."),
    (FIRST, "T-101", "not T-101 but T-104"),
    (FIRST, "T-101", "T-104, rather than T-101"),
    (FIRST, "T-101", "T-104 comes first, then T-101."),
    (FIRST, "T-101", "First T-104, then T-101."),
    (FIRST, "T-101", "T-104 is first and T-101 is second."),
    (FIRST, "T-101", "T-104 (T-101 is later)."),
    (FIRST, "T-101", "T-101 is due on 2 April, T-104 on 1 April, so T-104 is first."),
    (FIRST, "T-101", "The first one due is T-104; T-101 follows."),
    (FIRST, "T-101", "T-104. It is due before T-101."),
    (FIRST, "T-101", "It's due before T-101: T-104."),
    (FIRST, "T-101", "After T-104 comes T-101."),
    (FIRST, "T-101", "T-101 is not due before T-104."),
    (FIRST, "T-101", "T-101 isn't first; T-104 is first."),
    (FIRST, "T-101", "T-104 is due earlier than T-101."),
    (FIRST, "T-101", "T-104 over T-101."),
    (FIRST, "T-101", "T-104 beats T-101."),
    (FIRST, "T-101", "T-101 and T-104 are both open; the latter is due first."),
    (FIRST, "T-101", '{"first": "T-104", "second": "T-101"}'),
    (FIRST, "T-101", "T-104 precedes T-101."),
    (FIRST, "T-104", "T-101 is due before T-104."),
    (MORE, "Zoë Çelik", "Jan Müller has more tickets than Zoë Çelik."),
    (MORE, "Zoë Çelik", "Jan Müller, with 4 tickets to Zoë Çelik's 1."),
    (MORE, "Zoë Çelik", "Zoë Çelik has fewer tickets than Jan Müller."),
    (MORE, "Zoë Çelik", "Zoë Çelik has less, so Jan Müller has more tickets."),
    (CHEAP, "lamp", "The standing desk is cheaper than the lamp."),
    (CHEAP, "lamp", "The lamp is more expensive than the standing desk."),
    (CHEAP, "lamp", "The lamp costs more than the standing desk."),
    (CHEAP, "standing desk", "The standing desk costs more than the lamp."),
    (LATER, "Borealis", "Aurora opens later than Borealis."),
    (LATER, "Borealis", "Borealis opens before Aurora."),
    (LATER, "Bor[a-z]+", "Borealis opens before Aurora."),
    (BLOCKED, "T-101", "T-104 is blocked; T-101 is open."),
    (BLOCKED, "T-101", "The blocked ticket is T-104, T-101 is fine."),
    (WROTE, "Frank Herbert", "Brian Herbert wrote Dune; Frank Herbert is his father."),
    (WROTE, "Frank Herbert", "It was Brian Herbert who wrote Dune; Frank Herbert is his father."),
    (THREE, "Emma", "Dune costs the least, less than Emma."),
]


@pytest.mark.parametrize(("request_", "wanted", "answer"), RIGHT)
def test_an_answer_that_names_both_and_gives_it_to_the_right_one(
    request_: str, wanted: str, answer: str
) -> None:
    assert says(answer, wanted, Asked(request_))


@pytest.mark.parametrize(("request_", "wanted", "answer"), WRONG)
def test_an_answer_that_gives_it_to_the_other_one(request_: str, wanted: str, answer: str) -> None:
    assert not says(answer, wanted, Asked(request_))


NAMES = st.sampled_from(["T-101", "T-104", "Aurora", "Jo Haas", "Zoë Çelik", "the red lamp", "B12"])
ASKS = st.sampled_from([
    ("Which is due first, {} or {}?", "is due", "earlier", "later"),
    ("Which of {} and {} came last?", "came", "later", "earlier"),
    ("Does {} or {} cost less?", "costs", "less", "more"),
    ("Of {} and {}, which has more seats?", "has", "more seats", "fewer seats"),
    ("{} or {}: which is heavier?", "is", "heavier", "lighter"),
])  # fmt: skip
FRAMES = st.sampled_from([
    "{a} {verb} {way} than {b}.",
    "{b} {verb} {other} than {a}.",
    "It is {a}: {a} {verb} {way} than {b}.",
    "Of {b} and {a}, {a} {verb} {way}.",
    "{b}? No, {a} {verb} {way} than {b}.",
    "I checked {b} and {a}. {a} {verb} {way} than {b}.",
    "{a}, not {b}.",
    "{a} rather than {b}.",
    "{a}. {b} {verb} {other}.",
    "{a} {verb} {way}, {b} {verb} {other}.",
])  # fmt: skip


@given(NAMES, NAMES, ASKS, FRAMES, st.booleans())
def test_a_relation_counts_for_the_one_that_it_is_stated_of(
    a: str, b: str, ask: tuple[str, str, str, str], frame: str, swapped: bool
) -> None:
    if a == b:
        return
    request, verb, way, other = ask
    asked = Asked(request.format(*((b, a) if swapped else (a, b))))
    answer = frame.format(a=a, b=b, verb=verb, way=way, other=other)
    assert says(answer, a, asked)
    assert not says(answer, b, asked)


@given(st.text(" ,.?or\nAB12isthanfirst", max_size=60), st.text(" ,.?or\nAB12isthan", max_size=60))
def test_any_text_is_read_and_none_without_another_option_is_held_against(
    answer: str, request: str
) -> None:
    chooses_another(answer, "A1", f"Which is first, A1 or B2? {request}")
    assert not chooses_another(f"{answer} A1".replace("B", ""), "A1", "Which is first, A1 or B2?")


@pytest.mark.parametrize(
    ("request_", "wanted", "others"),
    [
        ("Which of T-101 and T-104 is due first?", "T-104", ["t-101"]),
        ("Of the two, T-101 or T-104, which is due first?", "T-101", ["t-104"]),
        ("Tell me whether T-101 or T-104 is due first.", "T-104", ["t-101"]),
        ("T-101 vs T-104: which is first?", "T-104", ["t-101"]),
        ("Is T-103 open, blocked or closed?", "closed", ["blocked", "open"]),
        ("Who is older: Ada, Alan, or Grace?", "Alan", ["ada", "grace"]),
        ("Is the lamp or the standing desk cheaper?", "lamp", ["standing desk"]),
        ("Which is bigger: A-1/B-2?", "B-2", ["a-1"]),
        ("Who is the owner of KA-72?", "Ada", []),
        ("Are Dune and Emma free?", "Dune", []),
        ("", "Dune", []),
    ],
)
def test_the_options_of_a_request(request_: str, wanted: str, others: list[str]) -> None:
    assert rivals(request_, wanted) == others
