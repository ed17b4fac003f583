"""Words are what Unicode says, in any script; fewer than three in common are no likeness."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.adapt.words import LEAST, in_common, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("getOrder reads one_order", {"get", "order", "reads", "one"}),
        ("can't stop", {"can't", "stop"}),
        ("Открыть счёт", {"открыть", "счёт"}),
        ("खाता हटाएं", {"खाता", "हटाएं"}),
        ("تجميد البطاقة", {"تجميد", "البطاقة"}),
        ("계좌 잠금", {"계좌", "잠금"}),
        ("读取文件", {"读取", "取文", "文件"}),
        ("", set()),
        ("-- !", set()),
    ],
)
def test_words_are_divided_in_any_script(text: str, words: set[str]) -> None:
    assert words_of(text) == words


def test_one_letter_in_common_is_no_word_in_a_script_without_spaces() -> None:
    assert not words_of("残高を取得") & words_of("取り消す")


@given(
    st.sets(st.text("abc", min_size=1, max_size=3), max_size=6), st.sets(st.text("abc"), max_size=6)
)
def test_fewer_than_three_words_in_common_are_no_likeness(one: set[str], other: set[str]) -> None:
    alike = in_common(one, other)
    assert alike == in_common(other, one)
    assert (alike > 0) == (len(one & other) >= LEAST)
    assert alike <= 1
