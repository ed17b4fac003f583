"""Shapes of arguments: what is written reads back, whatever the type."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.core.tool import JSON
from toolshift.core.value_shape import Shape, moved

TEXT = st.text(max_size=8)
NUMBER = st.integers(-(10**6), 10**6) | st.floats(-(10**4), 10**4).map(lambda x: round(x, 3))
VALUES: dict[str, tuple[Shape, st.SearchStrategy[Any]]] = {
    "object": (Shape("object", "value"), TEXT | NUMBER),
    "list": (Shape("list"), TEXT | NUMBER),
    "text": (Shape("text"), NUMBER),
    "keys": (Shape("keys", "sku"), st.lists(TEXT.map(lambda x: {"sku": x}), max_size=3)),
    "json": (Shape("json"), st.lists(st.dictionaries(TEXT, NUMBER, max_size=2), max_size=3)),
    "choice": (Shape("choice", choices=(("a", "x"), ("b", "y"))), st.sampled_from("ab")),
    "unit": (Shape("unit", scale=1000), NUMBER),
    "clock": (Shape("clock", minutes=-90), st.times().map(lambda at: f"{at:%H:%M}")),
}


@pytest.mark.parametrize("kind", VALUES)
def test_what_is_written_reads_back(kind: str) -> None:
    shape, values = VALUES[kind]

    @given(values)
    def holds(value: Any) -> None:
        written = shape.write(value)
        assert shape.read(written) == value
        assert shape.inverse.write(written) == value
        assert shape.inverse.read(value) == written
        assert shape.inverse.inverse == shape

    holds()


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("wrong", [None, True, "x", 3, [], [1, 2], {}, {"other": 1}, ["{"]])
def test_what_does_not_fit_never_breaks(kind: str, wrong: Any) -> None:
    shape, _ = VALUES[kind]
    assert JSON.encode([shape.write(wrong), shape.read(wrong)])


@pytest.mark.parametrize(
    "number", [7, 1234567, 0.1, 1e-6, 12345678.25, 47.3744489, 1e-7, 175928847299117063]
)
def test_a_number_as_text_keeps_its_digits(number: float) -> None:
    written = Shape("text").write(number)
    assert jsonschema_rs.is_valid({"pattern": r"^-?[0-9]+(\.[0-9]+)?$"}, written)
    assert Shape("text").read(written) == number


def test_a_clock_goes_past_midnight() -> None:
    assert moved("from 23:30 to 00:10, 7:15 and 24:00 stay", 60) == (
        "from 00:30 to 01:10, 7:15 and 24:00 stay"
    )
