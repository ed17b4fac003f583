"""Which of several texts says what, once the whole has changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.dialects.form import texts_now

TEXTS = st.lists(st.text("a\n ", max_size=5), min_size=1, max_size=4)


@given(TEXTS)
def test_lines_tell_which_block_says_what(before: list[str]) -> None:
    whole = "\n\n".join(before)
    assert texts_now({"content": whole}, before, "\n\n") == before
    now = [text.replace("a", "bb") for text in before]
    assert texts_now({"content": whole.replace("a", "bb")}, before, "\n\n") == now


@pytest.mark.parametrize(
    ("content", "before", "now"),
    [
        ("xy", ["x", "y"], ["x", "y"]),
        (None, ["x", "y"], ["", ""]),
        ("z", ["x", "y"], ["z", ""]),
        ("z", [], ["z"]),
        (None, [], []),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], ["x", "y"], ["a", "b"]),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], ["x"], ["ab"]),
    ],
    ids=range(7),
)
def test_parts_say_each_their_own(content: object, before: list[str], now: list[str]) -> None:
    assert texts_now({"content": content}, before) == now


def test_lines_that_came_leave_one_text() -> None:
    assert texts_now({"content": "a\nb\n\nc"}, ["a", "c"], "\n\n") == ["a\nb\n\nc", ""]
