"""Whether a value was shown, in whatever form."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.reading.shown_values import is_shown, is_shown_number


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("2026-12-03", "due: 3 Dec 2026"),
        ("3 December 2026", '{"due":"2026-12-03"}'),
        ("2026-12-03", "It is due on 3 December."),
        ("09:30", "at 9:30 am"),
        ("2026-12-03T09:30", "3 Dec 2026, half past nine"),
        ("1200", "1,200 votes"),
        ("1250.00", "EUR 1.250,00"),
        ("jan haas", "Owner: Jan  Haas"),
        ("in_transit", "In transit"),
        ("A\u2011101", "A-101"),
    ],
)
def test_the_same_value_in_another_form(value: str, shown: str) -> None:
    assert is_shown(value, shown)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("2026-12-04", "due: 3 Dec 2026"),
        ("2027-12-03", "due: 3 Dec 2026"),
        ("1201", "1,200 votes"),
        ("T-102", "T-101 T-103"),
        ("2026-12-03T09:30", "3 Dec 2026, at 10:30"),
        ("Jan Haas", "Ada Haas"),
    ],
)
def test_another_value(value: str, shown: str) -> None:
    assert not is_shown(value, shown)


@given(
    st.dates(date(2000, 1, 1), date(2099, 12, 31)), st.dates(date(2000, 1, 1), date(2099, 12, 31))
)
def test_dates_in_words(day: date, other: date) -> None:
    said = f"It is due on {day.day} {day:%B} {day.year}."
    assert is_shown(day.isoformat(), said)
    assert is_shown(other.isoformat(), said) == (day == other)


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_numbers_with_separators(number: int, other: int) -> None:
    assert is_shown(str(number), f"{number:,} of them")
    assert is_shown_number(number, f"{number:,} of them")
    assert is_shown_number(other, f"{number:,} of them") == (number == other)


def test_a_number_is_no_part_of_another_and_no_is_no_zero() -> None:
    assert not is_shown_number(11, "S11 and 111 and 11.5")
    assert not is_shown_number(0, "no cars")
    assert is_shown_number(4, "four cars")
    assert is_shown_number(0, "zero cars")
