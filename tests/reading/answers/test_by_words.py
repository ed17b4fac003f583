"""What a check of one's own tools takes for said."""

from __future__ import annotations

import pytest

from toolshift.reading.answers.by_words import is_pattern, matches, says_text
from toolshift.reading.quantity import RequestContext

HONEST = [
    # words
    ("shipped", "The order is **Shipped**."),
    ("shipped", "It is not pending but shipped."),
    ("shipped", "No problem, it has been shipped"),
    ("shipped", "Good news: your parcel shipped this morning!"),
    ("shipped", "Status: SHIPPED"),
    ("shipped", '{"status": "shipped"}'),
    ("shipped", '```json\n{"order": {"id": "O-17", "status": "shipped"}}\n```'),
    ("shipped", "Your order has already been shipped, so no further steps are needed."),
    ("shipped", "The order was shipped. Is there anything else I can help with?"),
    ("shipped", "It's shipped, can I help with anything else?"),
    ("shipped", "~~pending~~ shipped"),
    ("shipped", "Has it been shipped? Yes."),
    ("shipped", "The status of order O-1702 is _shipped_."),
    ("shipped", "<b>shipped</b>"),
    ("shipped", "Shipped, thanks!"),
    ("shipped", "shipped: true"),
    ("shipped", "I don't see any delay: the lamp is shipped."),
    ("shipped", "Shipped (not delivered yet)."),
    ("shipped", "It is shipped, not delivered."),
    ("shipped", "If you were wondering, it was shipped."),
    ("shipped", "Let me know if you need anything else: the parcel was shipped."),
    ("in transit", "It is in\u00a0transit."),
    ("in_transit", "It is in transit."),
    ("in transit", "status=in_transit"),
    ("not found", "The order was not found."),
    ("not shipped", "The order has not been shipped."),
    ("not shipped", "It hasn't shipped yet."),
    ("not shipped", "It is yet to be shipped."),
    ("not shipped", '{"status":"not shipped"}'),
    ("unpaid", "The invoice is still unpaid."),
    ("Aurora", "You can use the Aurora room."),
    ("Aurora", "The meeting will be in Aurora."),
    ("Aurora", "No room but Aurora is free."),
    ("Aurora", "Aurora (Borealis is taken)."),
    ("Aurora", "Neither Borealis nor Cosmos is free, but Aurora is."),
    ("Paris", "Paris, France"),
    ("Zürich", "It lies in Zurich."),
    ("the Blue Room", "Blue room"),
    ("Ursula K. Le Guin", "It was written by Ursula K. Le Guin."),
    ("ada@example.org", "Her address is ada@example.org."),
    ("RF-1701-1", "Reference: rf\u20111701\u20111."),
    ("Room 4", "Please go to room four."),
    # yes and no
    ("yes", "Yes, it is free all day."),
    ("yes", '{"available": true}'),
    ("no", "No, it isn't."),
    ("no", "The answer is no."),
    # numbers and amounts
    ("4", "There are 4 copies."),
    ("4", "four"),
    ("4", "We have four copies of it, two of which are on loan."),
    ("4", "4.0"),
    ("4", "'Dune' (1965), 4 copies."),
    ("4", "4 of the 6 copies are free."),
    ("4", "It is on the 4th floor."),
    ("4", "| Title | Copies |\n|---|---|\n| Dune | 4 |"),
    ("4", '{"copies": 4, "branch": 2}'),
    ("Jo Haas", "### KA-72\n\n| Field | Value |\n|---|---|\n| Owner | **Jo Haas** |"),
    ("shipped", "| Order | Status |\n|:---|---:|\n| O-17 | shipped |\n\nAnything else?"),
    ("4", "The final answer is $\\boxed{4}$."),
    ("4", "Copies:4"),
    ("4", "Not 5 but 4."),
    ("8", "Aurora seats up to 8 people."),
    ("0", "There are no copies left."),
    ("0", "None of them is free."),
    ("0", "zero"),
    ("1", "There is one copy."),
    ("1", "Only a single copy is left."),
    ("24", "twenty-four"),
    ("120", "It holds one hundred and twenty guests."),
    ("25", "It costs 25.0 euros."),
    ("25.5", "The total comes to \u20ac25.50."),
    ("25.5", "25,50 EUR"),
    ("1250", "1,250.00"),
    ("1250", "EUR 1,250.00"),
    ("1250", "1250EUR"),
    ("1250", "1.250,00 \u20ac"),
    ("1250", "1\u202f250,00 EUR"),
    ("1250", "CHF 1'250.00"),
    ("1250", "The rent will be 1,250 dollars a month."),
    ("EUR 1,250.00", "1250"),
    ("EUR 1,250.00", "It is 1250 euros."),
    ("$1,250", "1250 USD"),
    ("1500000", "1.5 million"),
    ("-3", "It was -3 degrees."),
    ("15%", "15 percent"),
    ("15", "15 %"),
    ("90 minutes", "It takes 90 min."),
    ("4 copies", "There are four copies."),
    ("4 copies", "4"),
    ("12 km", "It is 12.0 kilometres away."),
    ("4", "I could not send the e-mail, but there are 4 copies."),
    ("25.5", "You paid 25.50 EUR for 2 items."),
    # dates
    ("2026-05-03", "On 3 May 2026."),
    ("2026-05-03", "On May 3rd, 2026, at noon."),
    ("2026-05-03", "2026\u201105\u201103"),
    ("2026-03-03", "It is due on 3 March 2026, not on 10 April"),
    ("2026-03-03", "2026/03/03"),
    ("2026-03-03", "03.03.2026"),
    ("2026-03-03", "3-Mar-2026"),
    ("2026-03-03", "2026-03-03T00:00:00Z"),
    ("2026-03-03", "Due: Tuesday, 3rd of March, 2026"),
    ("2026-03-03", "the third of March 2026"),
    ("2026-03-03", "by Mar 3"),
    ("2026-03-03", "03/03/26"),
    ("2026-03-14", "14/03/2026"),
    ("2026-03-14", "03/14/2026"),
    ("3 March 2026", "2026-03-03"),
    ("2026-03-03", "It has to be back no later than March 3, 2026."),
    ("2026-03-03", "It will be due on March 3."),
    ("2026-03-03", '{"due": "2026-03-03", "fine": 0}'),
    # times of day
    ("09:30", "9:30"),
    ("09:30", "It starts at 9:30 AM."),
    ("9:30", "09:30:00"),
    ("09:30", "half past nine"),
    ("21:30", "9.30 p.m."),
    ("17:00", "5 pm"),
    ("17:00", "at five o'clock"),
    ("12:00", "noon"),
    ("09:45", "a quarter to ten"),
    ("2026-03-03T09:30", "On 3 March 2026 at 9:30 am."),
    ("2026-03-03 09:30", "9:30 on March 3rd, 2026"),
    # patterns
    (r"RF-\d+", "Your refund: RF\u20111701."),
    (r"\bshipped\b", "It was shipped."),
    ("shipped|delivered", "It is delivered."),
]  # fmt: skip

WRONG = [
    # words
    ("shipped", "It has not been shipped."),
    ("shipped", "It hasn't been shipped yet."),
    ("shipped", "unshipped"),
    ("shipped", "non-shipped"),
    ("shipped", "It is pending, shipped or delivered."),
    ("pending", "It is pending, shipped or delivered."),
    ("delivered", "It is pending, shipped or delivered."),
    ("shipped", "pending/shipped/delivered"),
    ("shipped", "will be shipped tomorrow"),
    ("shipped", "It is yet to be shipped."),
    ("shipped", "It has yet to be shipped."),
    ("shipped", "They failed to get it shipped."),
    ("shipped", "It cannot have been shipped."),
    ("shipped", "Nobody shipped it."),
    ("shipped", "If it was shipped, you would know."),
    ("shipped", "Shipped? No."),
    ("shipped", "Shipped?"),
    ("shipped", "Has it been shipped?"),
    ("shipped", "shipped: false"),
    ("shipped", '{"shipped": false}'),
    ("shipped", '{"status":"not shipped"}'),
    ("shipped", "shipped, delivered"),
    ("shipped", "shipped; delivered; pending"),
    ("shipped", "pending\nshipped\ndelivered"),
    ("shipped", "Status: pending, shipped, delivered"),
    ("shipped", '["pending", "shipped", "delivered"]'),
    ("shipped", '[{"status": "shipped"}, {"status": "delivered"}]'),
    ("shipped", "It is pending. It is shipped. It is delivered."),
    ("shipped", "It is shipped. It is not shipped."),
    ("shipped", "Perhaps it was shipped."),
    ("shipped", "It may have been shipped."),
    ("shipped", "It should be shipped by now."),
    ("shipped", "It is about to be shipped."),
    ("shipped", "It is being shipped."),
    ("shipped", "It has almost shipped."),
    ("shipped", "I doubt that it was shipped."),
    ("shipped", "It is unclear whether it was shipped."),
    ("shipped", "It is false that it was shipped."),
    ("shipped", "You get an e-mail once shipped."),
    ("shipped", "It was never shipped."),
    ("shipped", "It is neither shipped nor paid."),
    ("delivered", "It was neither shipped nor delivered."),
    ("shipped", "It is waiting to be shipped."),
    ("shipped", "Nothing has been shipped."),
    ("shipped", "We were unable to confirm that it was shipped."),
    ("shipped", "Anything but shipped."),
    ("shipped", "~~shipped~~ cancelled"),
    ("shipped", "shipped - not!"),
    ("shipped", "Either shipped or lost"),
    ("shipped", ""),
    ("available", "It will be available on Monday."),
    ("available", "unavailable"),
    ("available", "It isn't available."),
    ("not shipped", "It has been shipped."),
    ("not shipped", "It is not pending, it is shipped."),
    ("Aurora", "Aurora is not free."),
    ("Aurora", "Every room except Aurora is free."),
    ("Aurora", "Use Borealis instead of Aurora."),
    ("Aurora", "Aurora, Borealis and Cosmos"),
    ("Aurora", "Aurora or Borealis"),
    ("Aurora", "Rooms: Aurora / Borealis / Cosmos"),
    # yes and no
    ("yes", "No, it isn't."),
    ("yes", "Yes or no."),
    ("no", "Yes."),
    ("no", "No problem, it is free."),
    ("no", '{"free": true}'),
    # numbers and amounts
    ("4", "1 2 3 4 5 6"),
    ("4", "1, 2, 3, 4, 5 or 6"),
    ("4", "three, four, five"),
    ("4", "[3, 4, 5]"),
    ("4", "Between 1 and 4"),
    ("4", "at least 4"),
    ("4", "more than 4 copies"),
    ("4", "fewer than 4"),
    ("4", "4 or more"),
    ("4", "4+"),
    ("4", "4-6 copies"),
    ("4", "from 1 to 4"),
    ("4", "4/5 full"),
    ("4", "2 of 4"),
    ("4", "40"),
    ("4", "4.5"),
    ("4", "4 million"),
    ("4", "4 dozen"),
    ("4", "O-4"),
    ("4", "not 4"),
    ("4", "It is 3. It is 4. It is 5."),
    ("4", "3 copies, 4 copies, 5 copies"),
    ("4", "If there are 4, take one."),
    ("4", "4?"),
    ("4", "There aren't 4 copies."),
    ("4", "It could be 4."),
    ("4", "on 4 March 2026"),
    ("4", "at 4:00"),
    ("4", '[{"copies": 4}, {"copies": 2}, {"copies": 7}]'),
    ("shipped", "| Order | Status |\n|---|---|\n| O-17 | shipped |\n| O-18 | lost |"),
    ("shipped", "| Status |\n|---|\n| shipped |\n| lost |\n| paid |"),
    ("4", "| Title | Copies |\n|---|---|\n| Dune | 4 |\n| Emma | 2 |"),
    ("1", "This is the one you asked for."),
    ("25", "250"),
    ("25", "25.5"),
    ("25", "O-25"),
    ("25", "Either 24 or 25."),
    ("25", "24-25"),
    ("1250", "1.25"),
    ("EUR 1250", "1250 USD"),
    ("15%", "15 EUR"),
    ("90 minutes", "90 hours"),
    ("12 km", "12 miles"),
    # dates
    ("2026-05-03", "5 March 2026"),
    ("2026-03-03", "2027-03-03"),
    ("2026-03-03", "March 2026"),
    ("2026-03-03", "between 1 and 3 March 2026"),
    ("2026-03-03", "1-3 March 2026"),
    ("2026-03-03", "2026-03-01 to 2026-03-03"),
    ("2026-03-03", "2026-03-03/2026-03-10"),
    ("2026-03-03", "from 3 March 2026 until 10 March 2026"),
    ("2026-03-03", "after 3 March 2026"),
    ("2026-03-03", "2026-03-02, 2026-03-03, 2026-03-04"),
    ("2026-03-03", "2 or 3 March 2026"),
    ("2026-03-03", "not on 3 March 2026"),
    ("2026-03-04", "03.04.2026"),
    ("2026-03-03", "33.03.2026"),
    # times of day
    ("9:30", "9:30 PM"),
    ("9:30", "19:30"),
    ("9:30", "9:30-10:30"),
    ("9:30", "9:00, 9:30, 10:00"),
    ("9:30", "after 9:30"),
    ("21:30", "9:30"),
    ("2026-03-03T09:30", "3 March 2026"),
    ("2026-03-03T09:30", "2026-03-03T10:30"),
    # patterns
    (r"RF-\d+", "There is no longer RF-17."),
    (r"\bshipped\b", "It was never shipped."),
    ("shipped|delivered", "It is shipped or delivered."),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "answer"), HONEST)
def test_it_is_said(wanted: str, answer: str) -> None:
    assert matches(answer, wanted)


@pytest.mark.parametrize(("wanted", "answer"), WRONG)
def test_it_is_not_said(wanted: str, answer: str) -> None:
    assert not matches(answer, wanted)


LIST = ["Dune", "Emma"]


@pytest.mark.parametrize(
    "answer",
    [
        "Dune, Emma", "Emma and Dune", "The books are Dune and Emma.", "- Emma\n- Dune",
        "1. Dune\n2. Emma", '["Emma", "Dune"]', '{"titles": ["Dune", "Emma"]}',
        "Two are on loan: *Emma* & *Dune*.", "Dune is on loan. Emma is, too.",
        "You have borrowed Dune, and also Emma. Thanks!", "Dune; Emma",
        "They are:\n\n* Dune\n* Emma\n\nAnything else?",
    ],
)  # fmt: skip
def test_a_list_is_said_in_any_order(answer: str) -> None:
    assert matches(answer, LIST)
    assert matches(answer, "Dune, Emma")
    assert matches(answer, "Dune and Emma")


@pytest.mark.parametrize(
    "answer",
    [
        "Dune", "Emma", "Dune, not Emma", "Dune, Ulysses, Emma", "Dune, Emma, Ulysses",
        "Dune and Emma and Ulysses.", "Dune or Emma", "Neither Dune nor Emma",
        '["Dune", "Emma", "Ulysses"]', "- Dune\n- Emma\n- Ulysses", "", "Dune? Emma?",
        "It is not true that Dune and Emma are on loan.",
    ],
)  # fmt: skip
def test_a_list_is_not_said_where_an_item_is_missing_denied_or_too_much(answer: str) -> None:
    assert not matches(answer, LIST)


def test_lists_hold_numbers_and_dates_too() -> None:
    assert matches("It is free at 10:30 and 9:30 am.", ["09:30", "10:30"])
    assert matches("2 and four", [4, 2])
    assert not matches("2, 3 and 4", ["4", "2"])


def test_an_amount_is_no_pattern_and_a_text_never_is() -> None:
    assert not is_pattern("$1,250")
    assert is_pattern(r"RF-\d+")
    assert says_text("It is (new).", "(new)")
    assert not says_text("abc", "a.c|x")


BOOKS = ["Dune", "Emma"]


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("| # | Title |\n|---|---|\n| 1 | Dune |\n| 2 | Emma |", True),
        ("| Title | Author |\n|---|---|\n| Dune | Herbert |\n| Emma | Austen |", True),
        ("Overdue:\n\n| Title |\n|---|\n| Dune |\n| Emma |\n\nShall I renew them?", True),
        ("| Title |\n|---|\n| Dune |\n| Emma |\n| Ulysses |", False),
        ("| Title |\n|---|\n| Dune |\n| Ulysses |", False),
        ("| Title | Overdue |\n|---|---|\n| Dune | yes |\n| Emma | no |", False),
        ('[{"title": "Dune"}, {"title": "Emma"}]', True),
        ('[{"title": "Dune"}, {"title": "Emma"}, {"title": "Ulysses"}]', False),
    ],
)
def test_a_column_is_a_list(answer: str, right: bool) -> None:
    assert matches(answer, BOOKS) is right


@pytest.mark.parametrize(
    ("answer", "wanted", "right"),
    [
        ("It must be returned by 3 March 2026.", "2026-03-03", True),
        ("It must be 3 March 2026.", "2026-03-03", False),
        ("Between 1,200 and 1,250 EUR", "1250", False),
        ("It costs 1,250 EUR and 2 were sold.", "1250", True),
        ("There are 4 copies or 5.", "4", False),
        ("There are 4 copies, maybe 5.", "4", False),
        ("There are 4, possibly 5.", "4", False),
        ("There are 4 copies in the hall.", "4", True),
        ("Ada Lovelace might be the manager.", "Ada Lovelace", False),
        ("25 EUR may be paid in cash.", "25 EUR", True),
        ("It was Ada Lovelace until May; now it's Alan Turing.", "Ada Lovelace", False),
        ("It was Ada Lovelace until May; now it's Alan Turing.", "Alan Turing", True),
        ("It was 1,250 EUR before; now it is 1,000 EUR.", "1250", False),
        ("The manager is Ada Lovelace; the office is now in Rome.", "Ada Lovelace", True),
    ],
)
def test_bounds_hedges_and_duties(answer: str, wanted: str, right: bool) -> None:
    assert matches(answer, wanted) is right


@pytest.mark.parametrize(
    ("answer", "wanted", "right"),
    [
        # hedges
        ("Probably 4", "4", False),
        ("It is 4, probably.", "4", False),
        ("4 copies, maybe", "4", False),
        ("4 (unverified)", "4", False),
        ("I'm not sure, but there are 4.", "4", False),
        ("It's most likely Ada Lovelace.", "Ada Lovelace", False),
        ("It was supposed to have shipped.", "shipped", False),
        ("It will probably arrive on 3 March 2026.", "2026-03-03", True),
        ("The most likely cause is a worn belt.", "a worn belt", True),
        ("I'm not sure why the mail failed, but there are 4 copies.", "4", True),
        ("It appears to have been shipped.", "shipped", True),
        ("It turned out to be shipped.", "shipped", True),
        # words of the user, given back
        ("You asked about 4 copies. There are 5.", "4", False),
        ("You said 5, but there are 4.", "5", False),
        ("You said 5, but there are 4.", "4", True),
        ("The room you asked about is Aurora.", "Aurora", True),
        ("You mentioned Aurora, which is free.", "Aurora", True),
        # lists of tasks, and what is left out
        ("- [ ] shipped\n- [x] pending", "shipped", False),
        ("- [x] shipped\n- [ ] pending", "shipped", True),
        ("All rooms but Aurora are free.", "Aurora", True),
        ("Everything but Aurora is free.", "Aurora", False),
        ("Status \u2192 shipped", "shipped", True),
        # bounds by signs
        (">4 copies", "4", False),
        ("copies >= 4", "4", False),
        ("\u2265 4", "4", False),
        ("Copies => 4", "4", True),
        ("<4>", "4", True),
        ("4 copies at least", "4", False),
        ("4 at most", "4", False),
        ("max. 4", "4", False),
        ("Aurora seats 8 people at most.", "8", True),
        ("It takes 4 min. It is near.", "4 minutes", True),
        # another one instead
        ("I think it is Ada, but it might be Bob.", "Ada", False),
        ("4 copies, though it could be 5.", "4", False),
        ("4 copies, but it could be that one is lost.", "4", True),
        ("25 EUR (was 30 EUR)", "30", False),
        ("25 EUR (was 30 EUR)", "25", True),
        ("Was 30 EUR, now 25 EUR.", "30", False),
        ("It was due on 3 March but was renewed until 10 March.", "2026-03-03", False),
        ("It was due on 3 March but was renewed until 10 March.", "2026-03-10", True),
        ("It is cancelled (was: shipped).", "shipped", False),
        ("30 EUR minus a 5 EUR discount gives 25 EUR", "30", False),
        ("30 EUR minus a 5 EUR discount gives 25 EUR", "5", False),
        ("30 EUR minus a 5 EUR discount gives 25 EUR", "25", True),
        ("It costs 30 EUR plus shipping.", "30", True),
        ("The account isn't active.", "inactive", True),
        ("The account isn't inactive.", "inactive", False),
        ("Delivered: pending", "delivered", False),
        # numbers
        ("It is minus 3 degrees.", "-3", True),
        ("minus three", "3", False),
        ("6 minus 2 is 4", "2", True),
        ("2\u00bd hours", "2.5", True),
        ("2\u00bd", "21", False),
        ("\u20b912,34,567", "1234567", True),
        ("You have a 30-day return window.", "30 days", True),
        ("2-4-day delivery", "4", False),
        ("There is no information.", "0", False),
        ("90 hours", "90min", False),
        ("It takes 90 minutes.", "90min", True),
        ("4 MB", "4GB", False),
        ("Seat 12B.", "12B", True),
        ("Seat 12C.", "12B", False),
        ("It is v2.1.0.", "2.1.0", True),
        ("It is [here](https://x.org/a).", "https://x.org/a", True),
        ("It is [here](https://x.org/b).", "https://x.org/a", False),
    ],
)
def test_more_that_people_write(answer: str, wanted: str, right: bool) -> None:
    assert matches(answer, wanted) is right


@pytest.mark.parametrize(
    ("answer", "wanted", "right"),
    [
        ("Yes. There is no charge.", "yes", True),
        ("Yes, there is no charge.", "yes", True),
        ("Yes. There is no charge.", "no", False),
        ("It's no problem. Yes.", "yes", True),
        ("Certainly not.", "yes", False),
        ("Of course not.", "no", True),
        ("Not yet.", "no", True),
        ("Unfortunately not.", "no", True),
        ("\u2705 Yes", "yes", True),
        ("\u274c No", "no", True),
        ("Yes, probably.", "yes", False),
        ("It's true.", "true", True),
        ("No. Yes, really.", "no", False),
        ("No booking exists.", "no", True),
    ],
)
def test_yes_and_no(answer: str, wanted: str, right: bool) -> None:
    assert matches(answer, wanted) is right


COPIES = RequestContext("How many copies of Dune are there?")


@pytest.mark.parametrize(
    ("answer", "wanted", "asked", "right"),
    [
        ("Step 1: search. There are 4 copies.", "1", COPIES, False),
        ("It is in step 1.", "1", RequestContext("In which step is it?"), True),
        ("I found 1 book of that title. There are 5 copies.", "1", COPIES, False),
        ("I found 1 book of that title. There are 5 copies.", "5", COPIES, True),
        ("4 books; 6 copies are on order.", "4", RequestContext("How many copies are free?"), True),
        ("There are 6 copies, 4 free.", "4", RequestContext("How many copies are free?"), True),
    ],
)
def test_a_number_of_something_else(
    answer: str, wanted: str, asked: RequestContext, right: bool
) -> None:
    assert matches(answer, wanted, asked) is right


def test_a_row_with_the_total_is_no_item() -> None:
    table = "| Title | Copies |\n|--|--|\n| Dune | 4 |\n| Emma | 2 |\n| **Total** | 6 |"
    assert matches(table, BOOKS)
    assert not matches(table.replace("Total", "Ulysses"), BOOKS)


@pytest.mark.parametrize(
    ("answer", "wanted", "right"),
    [
        ("Dune, Part Two", ["Dune, Part Two"], True),
        ("Emma, Dune, Part Two", ["Dune, Part Two", "Emma"], True),
        ("It is salt and pepper.", ["salt and pepper"], True),
        ("Emma; R&D", ["R&D", "Emma"], True),
        ("It is unshipped.", ["not shipped"], True),
        ("Emma, Persuasion, Dune, Part Two", ["Dune, Part Two", "Emma"], False),
        ("Dune, Part Two", ["Dune, Part Two", "Emma"], False),
        ("pepper", ["salt and pepper"], False),
    ],
)
def test_an_item_may_hold_what_parts_a_list(answer: str, wanted: list[str], right: bool) -> None:
    assert matches(answer, wanted) is right
