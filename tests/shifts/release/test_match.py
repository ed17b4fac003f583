"""The likeness of names and parameters."""

from __future__ import annotations

from difflib import SequenceMatcher

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolshift.core.tool import Param
from toolshift.shifts.release.match import (
    CLOSE_PARAMS,
    alike_letters,
    alike_names,
    alike_params,
    pair,
)

NAMES = st.text("abcd", max_size=14) | st.text(max_size=14)


@settings(max_examples=500, deadline=None)
@given(NAMES, NAMES)
@example("", "")
@example("ab", "ba")
@example("xabyab", "abxab")
def test_common_runs_are_those_of_difflib(one: str, other: str) -> None:
    """All likenesses were measured with it, so none may move."""
    assert alike_letters(one, other) == SequenceMatcher(None, one, other, autojunk=False).ratio()


def bare(name: str, required: bool = True) -> Param:
    return Param(name, name, {"type": "string"}, required=required)


@pytest.mark.parametrize(
    ("old", "new", "likely"),
    [
        ("status", "state", True),
        ("cust_id", "customer_id", True),
        ("user", "users", True),
        ("amount", "amount_minor", True),
        ("nom", "nom_complet", True),
        ("customer_id", "cursor", False),
        ("page", "package", False),
        ("start_date", "state", False),
        ("from", "format", False),
        ("to", "token", False),
        ("currency", "country", False),
        ("title", "tile", False),
    ],
)
def test_letters_and_a_type_do_not_make_a_parameter_without_a_text_likely(
    old: str, new: str, likely: bool
) -> None:
    assert (alike_params(bare(old), bare(new)) >= CLOSE_PARAMS) == likely


def test_a_required_parameter_is_more_like_one_that_is_required() -> None:
    olds = {"customer_id": bare("customer_id")}
    news = {"cursor": bare("cursor", required=False), "account_id": bare("account_id")}
    assert [(one.old, one.new) for one in pair(olds, news, alike_params)] == [
        ("customer_id", "account_id")
    ]


@pytest.mark.parametrize(
    ("old", "new"), [("create_invoice", "invoices_create"), ("listCities", "city_list")]
)
def test_the_same_words_in_another_order_and_number_are_the_same_name(old: str, new: str) -> None:
    assert alike_names(old, new) == 1.0


@pytest.mark.parametrize(("one", "many"), [("get_order", "get_orders"), ("entry", "entries")])
def test_one_and_many_in_the_same_order_are_two_names(one: str, many: str) -> None:
    assert alike_names(one, many) < 1.0
