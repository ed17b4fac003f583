"""The reading of prose where answers are plain values."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from toolshift.episode.episode import read_ending
from toolshift.reading.answers.by_words import matches
from toolshift.reading.prose import FAILED, ProseReading, says_why
from toolshift.reading.quantity import RequestContext
from toolshift.reading.refusals import read_plain_prose, says_of_what

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


def test_a_refusal_about_what_was_asked_for_is_none_beside_it() -> None:
    shown = '{"unread":3,"folder":"inbox"}'
    asked = "How many unread emails from Alice do I have?"
    for text in (
        "I couldn't find any emails from Alice.",
        "I'm sorry, but I can't access your e-mail right now.",
        "The email service is down.",
    ):
        assert read_plain_prose(text, shown, asked)[0] == "refusal", text
    said = "I couldn't open the attachments, but you have 3 unread emails from Alice."
    assert read_plain_prose(said, shown, asked) == ("answer", "")
    said = "I couldn't find it under your name, but the confirmation number is KX-4711."
    asked = "What is the confirmation number of my booking?"
    assert read_plain_prose(said, '{"confirmation":"KX-4711"}', asked) == ("answer", "")


@pytest.mark.parametrize(
    "text",
    [
        "I wasn't able to find any book called Dune.",
        "I have not been able to complete this: the server says 503.",
        "I don't see any book named Dune in the catalogue.",
        "The search came back empty.",
        "The catalogue doesn't contain Dune.",
        "I do not have the ability to check that.",
        "There's no tool for that.",
        "I tried three times, but the service kept timing out.",
        "Each time the server returned a 500 error.",
        "Unable to comply.",
        "I cannot.",
    ],
)
def test_a_refusal_is_read_in_other_words(text: str) -> None:
    assert read_plain_prose(text, SHOWN, "How many copies of Dune are there?")[0] == "refusal"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("No, Dune is not in the catalogue.", "answer"),
        ("No. Dune isn't in our catalogue.", "answer"),
        ("Unfortunately, no. I couldn't find it there.", "answer"),
        ("It hasn't been added yet.", "answer"),
        ("I could not find Dune.", "refusal"),
        ("No, I cannot access the catalogue.", "refusal"),
        ("No order of this name could be found.", "refusal"),
    ],
)
def test_no_answers_a_question_that_wants_yes_or_no(text: str, kind: str) -> None:
    assert read_plain_prose(text, '{"found":false}', "Is Dune in the catalogue?")[0] == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I found two editions. Which one would you like?", "question"),
        ("Which one should I check?", "question"),
        ("To proceed, please provide the ISBN.", "question"),
        ("There are 4 copies. What else can I do for you?", "answer"),
        ("There are 4 copies. Do you need any more details?", "answer"),
        ("There are 4 copies. Would you like me to reserve one?", "answer"),
    ],
)
def test_a_choice_that_is_left_to_the_user_is_a_question(text: str, kind: str) -> None:
    assert read_plain_prose(text, SHOWN, REQUEST)[0] == kind


STATUS = "What is the status of order O-17?"
COPIES = "How many copies are there?"


@pytest.mark.parametrize(
    ("text", "request_", "kind"),
    [
        ("It has shipped. I couldn't get the tracking number.", STATUS, "answer"),
        ("It has shipped, but I wasn't able to find the tracking number.", STATUS, "answer"),
        ("There are 4 copies. I could not find the author.", COPIES, "answer"),
        ("There are 4 copies. I can't reserve one for you.", COPIES, "answer"),
        ("There are 4 copies (I could not check the author).", COPIES, "answer"),
        ("There are 4 copies. I can't reserve one.", "How many copies? Reserve one.", "refusal"),
        ("There are 4 copies. I could not do this.", COPIES, "refusal"),
        ("It has shipped. I couldn't find the order.", STATUS, "refusal"),
        ("It has shipped. I couldn't find a match.", STATUS, "refusal"),
        ("It has shipped. The service is down.", STATUS, "refusal"),
        ("I found order O-17. I couldn't get the delivery state.", STATUS, "refusal"),
        (
            "It has shipped. I couldn't get the tracking number.",
            "What is the status of order O-17, and what is its tracking number?",
            "refusal",
        ),
    ],
)
def test_what_fails_beside_the_answer_refuses_nothing(text: str, request_: str, kind: str) -> None:
    assert read_plain_prose(text, SHOWN, request_)[0] == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("There is no information about Dune.", "refusal"),
        ("The server returned an error: 500.", "refusal"),
        ("Error: 404", "refusal"),
        ("I'd need the title.", "question"),
        ("There are no copies.", "answer"),
    ],
)
def test_errors_and_lacks_are_no_values(text: str, kind: str) -> None:
    assert read_plain_prose(text, SHOWN, "How many copies are there?")[0] == kind


def test_where_a_judge_fails_the_rule_for_plain_values_counts() -> None:
    scene = SimpleNamespace(clean=SimpleNamespace(asks=[SimpleNamespace(pattern="", expected="4")]))
    judge = SimpleNamespace(
        name="chat:tiny",
        settings={},
        read=lambda *_: ProseReading("refusal", "not_found", f"chat:tiny{FAILED}"),
    )
    text = "I could not send you the confirmation, but there are four copies."
    reading = read_ending(scene, text, SHOWN, REQUEST, judge)  # type: ignore[arg-type]
    assert reading == ProseReading("answer", "", "chat:tiny failed")


CAFE = (
    '{"name": "Blue", "opening": "08:30", "closing": null, "note": "no record", "seats": 12,'
    ' "state": {"lift": "out of service"}, "sold": false}\n{"error": "there is no such extension"}'
)
OPENS = "When does the Blue open?"


@pytest.mark.parametrize(
    "text",
    [
        "It opens at 08:30. The field `closing` is null.",
        "The field `closing` is null. It opens at 08:30.",
        "The field `closing` is null.",
        "closing: null",
        "The closing time is set to None, and sold is false.",
        'It opens at 08:30. The result also has "note": "no record".',
        "It opens at 08:30; the note says 'no record'.",
        "It opens at 08:30. The lift is listed as out of service.",
        'It opens at 08:30. Raw result: {"opening": "08:30", "note": "no record"}',
        "It has 12 seats, and its `lift` reads `out of service`.",
    ],
)
def test_what_an_answer_reports_of_the_data_does_not_refuse(text: str) -> None:
    assert read_plain_prose(text, CAFE, OPENS) == ("answer", "")


@pytest.mark.parametrize(
    "text",
    [
        'The tool says "there is no such extension".',
        "The place opens on 3 May. Its lookup answered: 'there is no such extension'.",
        "I could not find out when it opens: the closing is null.",
        'There is "no record" of it.',
        "The lift is out of service.",
    ],
)
def test_a_refusal_that_quotes_what_stands_in_its_way_stays_one(text: str) -> None:
    assert read_plain_prose(text, CAFE, OPENS)[0] == "refusal"


def test_a_quotation_is_an_answer_where_its_field_is_asked_for() -> None:
    asked = "What does the note of the Blue say?"
    assert read_plain_prose('It says "no record".', CAFE, asked) == ("answer", "")
    assert read_plain_prose("The note is: no record.", CAFE, asked) == ("answer", "")
    assert read_plain_prose("There is no record of it.", CAFE, asked)[0] == "refusal"


NO_BOOKING = '{"error":{"code":"tool_error","message":"booking BK-9999 not found"}}'


@pytest.mark.parametrize(
    ("text", "refuses"),
    [
        ("BK-9999 does not appear in our records.", True),
        ("It looks like BK-9999 isn't a valid booking number.", True),
        ("I'm unable to locate booking BK-9999. Please check the number.", True),
        ("Booking BK-9999 is not found. Could you double-check the number?", True),
        ("The total of booking BK-9999 is EUR 256.00.", False),
        ("BK-9999 is not confirmed.", False),
        ("Could you double-check the number BK-9999?", False),
        ("I do not know.", False),
    ],
)
def test_the_words_of_a_final_answer_refuse_where_they_say_why_or_of_what(
    text: str, refuses: bool
) -> None:
    asked = "What is the total of booking BK-9999?"
    kind = read_plain_prose(text, NO_BOOKING, asked, final=True)[0]
    assert (kind == "refusal" and (says_why(text) or says_of_what(text, asked))) is refuses


FREE = '{"sku":"GD-202","free":0,"period":{"start":"2026-04-20","end":"2026-04-20"}}'
DESCRIBED = "check_availability How many pieces of an item are free.\nbook_item Book an item."


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The wood chipper is not available on 2026-04-20.", "answer"),
        ("The wood chipper (GD-202) does not exist.", "refusal"),
    ],
)
def test_the_name_of_a_tool_says_what_its_field_counts(text: str, kind: str) -> None:
    asked = "How many wood chippers (GD-202) are free on 2026-04-20?"
    assert read_plain_prose(text, FREE, asked, True, tools=DESCRIBED)[0] == kind
    assert matches(text, "0", RequestContext(asked, f"{FREE}\n{DESCRIBED}")) is (kind == "answer")
