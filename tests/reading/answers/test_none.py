"""Answers that nobody or nothing is the value."""

from __future__ import annotations

import pytest

from toolshift.reading.answers.by_words import matches
from toolshift.reading.answers.none import is_none
from toolshift.reading.quantity import RequestContext
from toolshift.reading.refusals import read_plain_prose

WHO = RequestContext(
    "Who is T-107 assigned to?", '{"ticket": {"id": "T-107", "assignee": null, "tags": []}}'
)
TAGS = RequestContext("What are the tags of T-107?", '{"ticket": {"id": "T-107", "tags": []}}')
OFF = RequestContext("What is the discount on order O-17?", '{"order": "O-17", "discount": 0}')
NONE = [
    (WHO, "Nobody is assigned to T-107."),
    (WHO, "T-107 is assigned to nobody."),
    (WHO, "Nobody."),
    (WHO, "No one"),
    (WHO, "There is no assignee."),
    (WHO, "T-107 has no assignee."),
    (WHO, "T-107 does not have an assignee."),
    (WHO, "T-107 is not assigned to anyone."),
    (WHO, "It hasn't been assigned yet."),
    (WHO, "The ticket is currently unassigned."),
    (WHO, '{"assignee": null}'),
    (TAGS, "None."),
    (TAGS, "T-107 has no tags."),
    (TAGS, "It has none."),
    (TAGS, "It has no tags: 0."),
    (OFF, "There is no discount on it."),
]
NOT_NONE = [
    (WHO, "T-107 is assigned to Jan M\u00fcller."),
    (WHO, "Nobody but Jan M\u00fcller is assigned."),
    (WHO, "Nobody knows."),
    (WHO, "Perhaps nobody."),
    (WHO, "There is no ticket T-107."),
    (WHO, "I found no ticket."),
    (WHO, "It is assigned."),
    (WHO, "There is no information."),
    (TAGS, "It is not open."),
]


@pytest.mark.parametrize(("asked", "text"), NONE)
def test_a_claim_of_none_is_an_answer_and_the_right_one(asked: RequestContext, text: str) -> None:
    assert read_plain_prose(text, asked.shown, asked.request, may_be_none=True) == ("answer", "")
    for wanted in ("nobody", "no one", "none", "Nothing"):
        assert matches(text, wanted, asked)


@pytest.mark.parametrize(("asked", "text"), NOT_NONE)
def test_what_claims_something_else_is_no_such_answer(asked: RequestContext, text: str) -> None:
    assert not any(matches(text, wanted, asked) for wanted in ("nobody", "no one", "none"))


@pytest.mark.parametrize(
    "text",
    [
        "I could not find ticket T-107.",
        "There is no ticket T-107.",
        "There is no such ticket.",
        "No information is available.",
        "Unfortunately the tool is unavailable.",
        "I could not find anyone by that name.",
    ],
)
def test_what_was_not_found_is_a_refusal_there_too(text: str) -> None:
    assert read_plain_prose(text, WHO.shown, WHO.request, may_be_none=True)[0] == "refusal"


@pytest.mark.parametrize("text", ["Nobody is assigned to T-107.", "There is no assignee."])
def test_elsewhere_the_words_are_read_as_before(text: str) -> None:
    assert read_plain_prose(text, WHO.shown, WHO.request)[0] == "refusal"


def test_zero_may_be_said_as_none() -> None:
    assert matches("There is no discount.", "0", OFF)
    assert read_plain_prose("There is no discount.", OFF.shown, OFF.request, True)[0] == "answer"


def test_words_for_none() -> None:
    assert all(map(is_none, ("nobody", "No one", "none.", "0", "zero", "null")))
    assert not any(map(is_none, ("no", "10", "noon", "Jan", "none of them is free", "")))
