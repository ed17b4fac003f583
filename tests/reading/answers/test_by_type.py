"""Answers that are compared by their type: right, wrong, or unclear."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.reading.answers.by_type import judge
from toolshift.reading.quantity import RequestContext

TIDES = RequestContext(
    "When is high water at the pier?",
    '{"high_water": "18:05", "low_water": "11:52", "tomorrow_high": "18:44"}',
)
SHOP = RequestContext(
    "How many copies of Dune are there?", '{"title": "Dune", "copies": 4, "reserved": 3}'
)
CASES = [
    # stated
    ("18:05", "High water is at 6:05 pm, low water at 11:52.", TIDES, "right"),
    ("18:05", "18.05 Uhr", TIDES, "right"),
    ("4", "four", SHOP, "right"),
    ("4", "There are 4 copies, and 3 are reserved.", SHOP, "right"),
    ("4", "4 of the 6 copies are free.", RequestContext("How many are free?", "{}"), "unclear"),
    # another value, or the wanted one under another's name
    ("18:05", "Low water is at 18:05, and high water at 11:52.", TIDES, "wrong"),
    ("4", "There are 3 copies.", SHOP, "wrong"),
    # denied, an alternative
    ("4", "There are not 4 copies.", SHOP, "wrong"),
    ("4", "4 or 5 copies.", SHOP, "wrong"),
    # in doubt
    ("4", "At least 4 copies.", SHOP, "unclear"),
    ("4", "4, maybe.", SHOP, "unclear"),
    ("4", "Is it 4?", SHOP, "unclear"),
    ("4", "There are 4 copies and 9 films.", SHOP, "unclear"),
    ("4", "No copies. 4 were lost.", SHOP, "unclear"),
]


@pytest.mark.parametrize(("wanted", "answer", "context", "verdict"), CASES)
def test_a_value_beside_what_the_results_explain(
    wanted: str, answer: str, context: RequestContext, verdict: str
) -> None:
    assert judge(answer, wanted, None, context) == verdict


@pytest.mark.parametrize(
    ("wanted", "answer", "verdict"),
    [
        ("2027-10-05", "am 5. Oktober 2027", "right"),
        ("2027-10-05", "le 5 octobre 2027", "right"),
        ("2027-10-05", "el 5 de octubre de 2027", "right"),
        ("2027-10-05", "2027年10月5日です。", "right"),
        ("2027-10-05", "2027年10月6日です。", "wrong"),
        ("2027-10-05", "5 октября 2027", "right"),
        ("2027-10-05", "nicht am 5. Oktober 2027", "wrong"),
        ("EUR 1,250.00", "1.250,00 €", "right"),
        ("EUR 1,250.00", "$1,250.00", "wrong"),
        ("4", "٤", "right"),
        ("4", "vier", "unclear"),  # a word for it in another language is no proof of another answer
        ("7", "vier", "wrong"),
    ],
)
def test_other_languages(wanted: str, answer: str, verdict: str) -> None:
    assert judge(answer, wanted) == verdict


FREE = RequestContext("Is berth A-3 free on Monday?", "{}")


@pytest.mark.parametrize(
    ("wanted", "answer", "verdict"),
    [
        ("no", "Berth A-3 is not free on Monday.", "right"),
        ("no", "Berth A-3 is free on Monday.", "wrong"),
        ("yes", "Berth A-3 is free on Monday.", "right"),
        ("yes", "Berth A-3 is occupied on Monday.", "unclear"),
        ("no", "There is no boat at A-3, so it's free.", "wrong"),
        ("yes", "Oui, tout à fait.", "right"),
        ("yes", "Nein.", "wrong"),
        ("no", "It doesn't.", "right"),
        ("no", '{"free": false}', "right"),
        ("yes", "Yes and no.", "unclear"),
    ],
)
def test_yes_and_no(wanted: str, answer: str, verdict: str) -> None:
    assert judge(answer, wanted, "yes_no", FREE) == verdict


@pytest.mark.parametrize(
    ("wanted", "kind", "answer", "verdict"),
    [
        ('{"a": 1, "b": 2.0}', "json", '```json\n{"b": 2, "a": 1}\n```', "right"),
        ('{"a": 1}', "json", '{"a": 2}', "wrong"),
        (r"RF-\d+", "regex", "Your refund is RF-17.", "right"),
        (r"RF-\d+", "regex", "There is no refund.", "wrong"),
        ("(new)", "text", "It is (new).", "right"),
        ("RF-17", "id", "rf 17", "right"),
        ("RF-17", "id", "RF-17, or RF-18.", "wrong"),
        ("shipped", "text", "It has not shipped.", "wrong"),
        ("not shipped", "text", "It hasn't shipped.", "right"),
        ("shipped", "text", "It may have been shipped.", "unclear"),
        ("shipped", "text", "shipped, delivered", "unclear"),
        ("90 minutes", "text", "It takes 90 min.", "right"),
        ("90 minutes", "text", "It takes 90 EUR.", "unclear"),
    ],
)
def test_each_type(wanted: str, kind: str, answer: str, verdict: str) -> None:
    assert judge(answer, wanted, kind) == verdict  # type: ignore[arg-type]


def test_of_several_each_counts() -> None:
    assert judge("Dune and Emma", ["Dune", "Emma"]) == "right"
    assert judge("Dune", ["Dune", "Emma"]) == "wrong"
    assert judge("Dune, Emma and Ulysses", ["Dune", "Emma"]) == "unclear"


FRAMES = st.sampled_from(["{}", "It is {}.", "**{}**", "Answer: {}", '{{"answer": "{}"}}'])
DAYS = st.dates(date(2001, 1, 1), date(2099, 12, 31))


@given(DAYS, st.integers(1, 300), FRAMES)
def test_a_day_is_right_in_every_frame_and_another_one_is_wrong(
    day: date, later: int, frame: str
) -> None:
    other = day + timedelta(days=later)
    for said in (day.isoformat(), f"{day.day} {day:%B} {day.year}"):
        assert judge(frame.format(said), day.isoformat()) == "right"
    assert judge(frame.format(other.isoformat()), day.isoformat()) == "wrong"


@given(st.integers(2, 10**6), st.integers(1, 10**6), FRAMES)
def test_so_is_a_number(number: int, more: int, frame: str) -> None:
    assert judge(frame.format(f"{number:,}"), str(number)) == "right"
    assert judge(frame.format(number + more), str(number)) == "wrong"
    assert judge(f"It is not {number}.", str(number)) == "wrong"
    assert judge(f"It is {number} or {number + more}.", str(number)) == "wrong"


@given(st.text(max_size=80), st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_read(answer: str, wanted: str, shown: str) -> None:
    for kind in ("number", "text", "id", "choice", "yes_no", "date", "json"):
        if kind == "yes_no":
            assert judge(answer, "yes", kind, RequestContext(wanted, shown))
        else:
            assert judge(answer, wanted, kind, RequestContext(answer, shown))  # type: ignore[arg-type]
