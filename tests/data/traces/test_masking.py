"""What looks personal or secret goes, the same thing is the same everywhere, and the rest stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.data.traces.masking import Mask, _luhn, _remainder

THINGS = {
    "email": ["mara.lind@shop-mail.net", "Jo+x@mail.co.uk"],
    "card": ["4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005"],
    "phone number": ["+49 30 901820", "+14155552671", "(415) 555-2671", "415-555-2671"],
    "bank account": ["DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819"],
    "social security number": ["078-05-1120"],
    "secret": [
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "sk-proj-9fXk28Qm4LzR7tYw3VbN",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlMTIz", "q8Zr2LmX0vTbY7nKc4WdE1sHf6",
    ],
}  # fmt: skip
EVERY = [(kind, thing) for kind, things in THINGS.items() for thing in things]
PLAIN = [
    "O-1701", "4111 1111 1111 1112", "2026-11-27T10:00:00Z", "123e4567-e89b-12d3-a456-426614174000",
    "1790000000000", "user@example.com", "the order of 17 books", "DE88 3704 0044 0532 0130 00",
    "get_order_by_customer_and_date", "1234-56-7890", "12.50", "d41d8cd98f00b204e9800998ecf8427e",
]  # fmt: skip


def masked(*values: Any) -> list[Any]:
    mask = Mask()
    mask.learn(list(values))
    return [mask.apply(value) for value in values]


@pytest.mark.parametrize(
    ("kind", "thing"), EVERY, ids=[f"{k}-{n}" for n, (k, _) in enumerate(EVERY)]
)
def test_a_thing_goes_from_texts_and_data_alike(kind: str, thing: str) -> None:
    mask = Mask()
    request, result = f"Write to {thing}, please.", {"found": [{"value": thing}], "note": thing}
    mask.learn([request, result])
    assert mask.counts == {kind: 1}
    text = json.dumps([mask.apply(request), mask.apply(result)])
    assert thing not in text
    new = mask.apply(result)["note"]
    assert mask.apply(request) == f"Write to {new}, please."
    again = Mask()
    again.learn(new)
    if kind in ("card", "bank account"):  # a tool that checks digits takes it still
        assert again.counts == {kind: 1}
        assert (_luhn(new) if kind == "card" else _remainder(new.replace(" ", "")) == 1) is True
    if kind not in ("secret", "email"):
        assert [sign.isalnum() for sign in new] == [sign.isalnum() for sign in thing]


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_no_such_thing_stays(text: str) -> None:
    assert masked(text, {"value": text}) == [text, {"value": text}]


@given(st.lists(st.sampled_from([thing for _, thing in EVERY] + PLAIN), max_size=8))
def test_what_was_different_stays_different(things: list[str]) -> None:
    new = masked(*things)
    assert len(set(new)) == len(set(things))
    assert masked(*things) == new


def test_digits_are_the_same_however_they_are_written() -> None:
    said, called, number = masked("Call +1 415 555 2671.", {"phone": "+14155552671"}, 14155552671)
    digits = "".join(sign for sign in said if sign.isdigit())
    assert (called["phone"], number) == (f"+{digits}", int(digits))
    assert digits != "14155552671"
    text, value = masked("card 4111 1111 1111 1111", {"card": 4111111111111111})
    assert str(value["card"]) == text.removeprefix("card ").replace(" ", "")


def test_the_value_of_a_secret_key_is_secret_wherever_it_stands() -> None:
    text, data = masked("My password: hunter2x", {"password": "hunter2x", "user": "jo"})
    assert "hunter2x" not in text
    assert data == {"password": text.removeprefix("My password: "), "user": "jo"}


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_the_form_of_data_stays(value: Any) -> None:
    (new,) = masked(value)
    assert type(new) is type(value)
