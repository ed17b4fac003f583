"""Questions that name options: an answer that gives it to another option is no answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.reading.answers.by_words import matches
from toolshift.reading.choice import chooses_another
from toolshift.reading.options import rivals
from toolshift.reading.quantity import RequestContext

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
    assert matches(answer, wanted, RequestContext(request_))


@pytest.mark.parametrize(("request_", "wanted", "answer"), WRONG)
def test_an_answer_that_gives_it_to_the_other_one(request_: str, wanted: str, answer: str) -> None:
    assert not matches(answer, wanted, RequestContext(request_))


OTHERS = [
    (
        "Which flight is cheaper, LH400 or BA212?",
        "LH400",
        [
            "LH400 is cheaper at $320 versus BA212's $410.",
            "LH400.",
            "The cheaper flight is LH400 ($320); BA212 costs $410.",
            "BA212 costs $410 and LH400 costs $320, so LH400 is the cheaper option.",
            "BA212 is more expensive than LH400.",
            "BA212 is $90 more expensive.",
            "LH400 - it's $90 less than BA212",
            "Compared with BA212 ($410), LH400 ($320) is the better deal.",
            "I compared both: BA212 is $410, LH400 is $320. LH400 is cheaper.",
            "It's LH400, not BA212.",
            "You'd save $90 with LH400 over BA212.",
            "| Flight | Price |\n|---|---|\n| LH400 | 320 |\n| BA212 | 410 |\n\n**LH400** it is.",
            "While BA212 leaves earlier, LH400 is cheaper.",
            "LH400 beats BA212 on price.",
            "BA212: $410\nLH400: $320\n\nCheaper: LH400",
        ],
        [
            "BA212 is cheaper than LH400.",
            "BA212.",
            "LH400 is more expensive than BA212",
            "BA212 beats LH400 on price",
            "The cheaper one is BA212 (LH400 costs 320).",
            "It's BA212, not LH400.",
            "LH400 costs more than BA212.",
            "BA212 costs $410 and LH400 costs $320, so BA212 is cheaper.",
            "Cheaper: BA212 (vs LH400)",
        ],
    ),
    (
        "Who has more points, Ana or Bo?",
        "Bo",
        [
            "Bo has more points (12) than Ana (9).",
            "Bo leads Ana by 3 points.",
            "Ana has fewer points than Bo.",
            "Ana has 9 points; Bo has 12, so Bo has more.",
            "Bo, with 12 to Ana's 9.",
            "Bo is ahead of Ana.",
            "Ana trails Bo.",
        ],
        [
            "Ana has more points than Bo.",
            "Bo has fewer points than Ana.",
            "Ana, with 12 to Bo's 9.",
            "Ana is ahead of Bo.",
        ],
    ),
    (
        "Should I take the train or the bus to get there sooner?",
        "bus",
        [
            "Take the bus, it arrives sooner than the train.",
            "The bus gets you there sooner.",
            "The train takes longer, so take the bus.",
            "The bus is faster than the train.",
        ],
        ["Take the train, it arrives sooner than the bus.", "The train is faster than the bus."],
    ),
    (
        "Is Berlin or Hamburg the warmer city today?",
        "Hamburg",
        [
            "Hamburg is warmer today: 18 degrees against 15 in Berlin.",
            "Berlin is colder than Hamburg.",
            "Hamburg, at 18°C, is warmer than Berlin at 15°C.",
            "It's warmer in Hamburg (18) than in Berlin (15).",
        ],
        [
            "Berlin is warmer today: 18 against 15 in Hamburg.",
            "Hamburg is colder than Berlin.",
            "It's warmer in Berlin (18) than in Hamburg (15).",
        ],
    ),
    (
        "Of the tickets T-1, T-2 and T-3, which is blocked?",
        "T-2",
        [
            "T-2 is blocked.",
            "T-1 and T-3 are open; T-2 is blocked.",
            "T-2 is blocked by T-1.",
            "Only T-2 is blocked, T-1 and T-3 are not.",
            "T-1 isn't blocked, T-2 is.",
        ],
        ["T-1 is blocked; T-2 is open.", "T-3 is blocked, T-2 is not."],
    ),
    (
        "Which of the invoices INV-7 and INV-9 is unpaid?",
        "INV-9",
        [
            "INV-9 is unpaid; INV-7 was paid on 3 May.",
            "INV-9 is still unpaid.",
            "INV-7 has been paid, INV-9 has not.",
        ],
        ["INV-7 is unpaid; INV-9 was paid."],
    ),
    (
        "Who is the manager of Ana: Bo or Cy?",
        "Cy",
        [
            "Cy is Ana's manager.",
            "Ana's manager is Cy, Bo is her colleague.",
            "Cy (Bo manages someone else).",
        ],
        ["Bo is Ana's manager; Cy is not."],
    ),
    (
        "Book the cheaper of the rooms A1 and B2 and tell me which.",
        "B2",
        [
            "I booked room B2, which is cheaper than A1.",
            "Booked B2 for you. A1 was more expensive.",
        ],
        ["I booked A1, which is cheaper than B2."],
    ),
    (
        "Which is larger, room A1 or room B2?",
        "A1",
        [
            "Room A1 is larger.",
            "A1 is the larger room.",
            "The larger room is A1.",
            "Room A1 (32 sqm) is larger than room B2 (20 sqm).",
        ],
        ["Room B2 is larger.", "Room B2 is larger than room A1."],
    ),
    (
        "Which is larger, room A1 or room B2?",
        "room A1",
        ["Room A1 is larger.", "A1 is the larger room.", "The larger room is A1."],
        ["Room B2 is larger than room A1."],
    ),
    (
        "Which order shipped later, order 1001 or order 1002?",
        "1002",
        [
            "Order 1002 shipped later.",
            "1002 shipped later than order 1001",
            "The order that shipped later is 1002.",
        ],
        ["Order 1001 shipped later than order 1002"],
    ),
    (
        "Is flight LH1 or flight BA2 cheaper?",
        "LH1",
        ["Flight LH1 is the cheaper flight.", "The flight LH1 is cheaper by $20."],
        ["Flight BA2 is cheaper than LH1."],
    ),
    (
        "Which hotel has a higher rating: Hotel Alpha or Hotel Beta?",
        "Hotel Beta",
        [
            "Hotel Beta has a higher rating (4.5) than Hotel Alpha (4.1).",
            "Beta has the higher rating.",
            "The hotel with a higher rating is Beta.",
            "Hotel Alpha has 4.1, so Hotel Beta is rated higher.",
        ],
        ["Hotel Alpha has a higher rating than Hotel Beta."],
    ),
    (
        "Which city is bigger, New York or New Delhi?",
        "New Delhi",
        ["New Delhi is bigger than New York.", "New Delhi.", "The bigger city is New Delhi."],
        ["New York is bigger than New Delhi."],
    ),
    (
        "Was the deploy on Monday or on Tuesday?",
        "Tuesday",
        [
            "The deploy was on Tuesday.",
            "On Tuesday, not on Monday.",
            "It was deployed on Tuesday; Monday's was cancelled.",
        ],
        ["It was on Monday, not Tuesday.", "The deploy was on Monday."],
    ),
    (
        "Please tell me which of Ana and Bo should get the task: whoever has fewer open tickets.",
        "Ana",
        [
            "Ana should get it, she has fewer open tickets (2) than Bo (5).",
            "Bo has more open tickets, so Ana.",
            "Ana has 2 open tickets and Bo has 5.",
        ],
        [
            "Bo should get it, he has fewer open tickets than Ana.",
            "Bo has fewer open tickets than Ana.",
        ],
    ),
    (
        "Does the fee go up or down in 2026?",
        "up",
        ["The fee goes up in 2026.", "It goes up."],
        ["It goes down, not up."],
    ),
    (
        "Is the invoice paid or unpaid?",
        "unpaid",
        ["The invoice is unpaid.", "It has not been paid; it is unpaid."],
        ["The invoice is paid, not unpaid."],
    ),
    (
        "Give me the status of order 5 and order 6.",
        "shipped",
        ["Order 5 is shipped and order 6 is shipped."],
        [],
    ),
    (
        "What is the price of the desk and the lamp together?",
        "120",
        ["The desk is 80 and the lamp 40: 120 together."],
        [],
    ),
    ("When did Ana or Bo last change it?", "Ana", ["Ana last changed it on 3 May."], []),
    (
        "Find the email address or phone number of Jo.",
        "jo@x.org",
        ["Jo's email address is jo@x.org; there is no phone number."],
        [],
    ),
    (
        "Search for a flight or a train to Rome under $100 and name the provider.",
        "Trenitalia",
        ["The Trenitalia train costs $60; no flight is under $100."],
        [],
    ),
    (
        "Which one is closer, the pharmacy on Main Street or the one on Oak Avenue?",
        "Main Street",
        [
            "The pharmacy on Main Street is closer than the one on Oak Avenue.",
            "Main Street's pharmacy is closer (0.4 km).",
            "The Oak Avenue pharmacy is farther away than the one on Main Street",
        ],
        ["The pharmacy on Oak Avenue is closer than the one on Main Street."],
    ),
    (
        "Which of the two files, a.txt and b.txt, contains the key?",
        "b.txt",
        [
            "b.txt contains the key.",
            "The key is in b.txt.",
            "a.txt does not contain the key; b.txt does.",
            "The key is found in b.txt, not in a.txt.",
        ],
        [],
    ),
    (
        "Compare the plans Basic and Pro: which has more storage?",
        "Pro",
        [
            "Pro has more storage (1 TB) than Basic (100 GB).",
            "Basic has 100 GB, Pro has 1 TB.",
            "Basic has less storage than Pro.",
        ],
        ["Basic has more storage than Pro.", "Pro has less storage than Basic."],
    ),
    (
        "Between the servers alpha, beta and gamma, which one has the highest load?",
        "gamma",
        [
            "gamma has the highest load at 93%.",
            "The highest load is on gamma, beta follows with 60%.",
            "alpha 20%, beta 60%, gamma 93%: gamma is the highest.",
        ],
        ["beta has the highest load, gamma the lowest."],
    ),
    (
        "Of these customers, Miller and Smith, who ordered last?",
        "Smith",
        [
            "Smith ordered last, on 4 May.",
            "Miller ordered on 1 May and Smith on 4 May, so Smith ordered last.",
            "The last to order was Smith.",
        ],
        ["Miller ordered last, after Smith."],
    ),
    (
        "My two accounts are savings and checking. Which has the lower balance?",
        "checking",
        [
            "Your checking account has the lower balance ($50).",
            "The checking account: $50, versus $900 in savings.",
            "Savings has the higher balance, so checking has the lower.",
        ],
        [],
    ),
    (
        "Who of Eva, Finn and Gus is on call this weekend?",
        "Finn",
        [
            "Finn is on call this weekend.",
            "Neither Eva nor Gus is on call this weekend; Finn is.",
            "Finn. Eva was on call last weekend.",
        ],
        ["Eva is on call this weekend, Finn is not."],
    ),
    (
        "Send Jo the report from these folders, inbox and archive; say which folder was larger.",
        "archive",
        ["I sent both. The archive folder was larger.", "Sent. archive was larger than inbox."],
        [],
    ),
    (
        "Check both tickets T-1 and T-2 and tell me the status of T-2.",
        "closed",
        ["T-2 is closed.", "T-1 is open and T-2 is closed."],
        [],
    ),
    (
        "Is the shop open or closed at 9 pm?",
        "closed",
        [
            "The shop is closed at 9 pm.",
            "It is closed; it's open until 8 pm.",
            "At 9 pm it's closed (open 10-20).",
        ],
        [],
    ),
    (
        "Tell me whether the Red or Blue line gets to Airport faster.",
        "Blue",
        [
            "The Blue line is faster: 20 minutes, against 35 for the Red line.",
            "Blue line is faster than the Red line.",
            "The Red line takes 35 min; the Blue line, 20. Blue is faster.",
        ],
        ["The Red line is faster than the Blue line."],
    ),
    (
        "What's the distance from A to B or C, whichever is nearer? Name it.",
        "C",
        ["C is nearer (3 km).", "C is nearer than B."],
        ["B is nearer than C."],
    ),
    (
        "From Ulm or Kiel, where is it warmer, and by how much?",
        "Ulm",
        [
            "It is warmer in Ulm by 4 degrees.",
            "Ulm, by 4 degrees.",
            "Kiel is 4 degrees colder than Ulm.",
        ],
        ["It is warmer in Kiel than in Ulm."],
    ),
    (
        "Which supplier delivers earlier: Acme Corp or Bolt Ltd?",
        "Acme Corp",
        [
            "Acme Corp delivers earlier (3 June) than Bolt Ltd (9 June).",
            "Bolt Ltd delivers on 9 June, 6 days after Acme Corp.",
            "Acme Corp delivers on 3 June; Bolt Ltd only on 9 June.",
        ],
        ["Bolt Ltd delivers earlier than Acme Corp.", "Acme Corp delivers 6 days after Bolt Ltd."],
    ),
]
"""Requests, each with what is expected, answers that give it, and answers that give another."""


@pytest.mark.parametrize(("request_", "wanted", "right", "wrong"), OTHERS)
def test_answers_to_requests_of_many_kinds(
    request_: str, wanted: str, right: list[str], wrong: list[str]
) -> None:
    assert not [text for text in right if chooses_another(text, wanted, request_)]
    assert all(chooses_another(text, wanted, request_) for text in wrong)


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
    asked = RequestContext(request.format(*((b, a) if swapped else (a, b))))
    answer = frame.format(a=a, b=b, verb=verb, way=way, other=other)
    assert matches(answer, a, asked)
    assert not matches(answer, b, asked)


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
