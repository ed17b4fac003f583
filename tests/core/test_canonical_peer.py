"""Canonical JSON beside `rfc8785`, another implementation of the standard: every difference."""

from __future__ import annotations

import struct
from math import inf, nan
from random import Random
from types import MappingProxyType
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings, strategies

from toolshift.core.canonical import EXACT, canonical
from toolshift.core.errors import UsageError

REFUSED = (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError)
"""What the peer raises: the last two for half of a character in a key, and for depth."""

NUMBERS = strategies.integers(1 - EXACT, EXACT - 1) | strategies.floats()
VALUES = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.text() | NUMBERS,
    lambda inner: (
        strategies.lists(inner)
        | strategies.tuples(inner)
        | strategies.dictionaries(
            strategies.text() | strategies.text("\ud7ff\ue000\uffff\U00010000\U0001f600e\u0301"),
            inner,
        )
    ),
    max_leaves=12,
)


def of_the_peer(value: Any) -> bytes | None:
    """Canonical JSON by the peer; None where it refuses."""
    try:
        return rfc8785.dumps(value)
    except REFUSED:
        return None


def of_ours(value: Any) -> bytes | None:
    """Canonical JSON by ours; None where it refuses."""
    try:
        return canonical(value)
    except UsageError:
        return None


@settings(max_examples=300, deadline=None)
@given(VALUES)
def test_the_same_data_has_the_same_bytes_and_the_same_refusals(value: Any) -> None:
    assert of_ours(value) == of_the_peer(value)


def test_numbers_of_any_bits_are_written_the_same() -> None:
    rng = Random(8785)
    for _ in range(20_000):
        (number,) = struct.unpack(">d", rng.randbytes(8))
        assert of_ours(number) == of_the_peer(number), number.hex()


@pytest.mark.parametrize("exponent", range(-8, 24))
@pytest.mark.parametrize("digits", [1, 1.5, 9.999999999999999, 1.2345678901234567])
def test_numbers_where_the_notation_changes_are_written_the_same(
    digits: float, exponent: int
) -> None:
    number = digits * 10.0**exponent
    assert of_ours(number) == of_the_peer(number) is not None


@pytest.mark.parametrize(
    "value",
    [nan, inf, -inf, b"bytes", {1, 2}, 1j, object(), {1: 2}, {None: 1}, {True: 1}, {"a": 1, 2: 3},
     "\ud800", {"\udc00": 1}, ["\ud83d", "\ude00"], 10**400],
    ids=lambda value: type(value).__name__,  # the same in every process
)  # fmt: skip
def test_both_refuse_what_is_no_json(value: Any) -> None:
    assert of_ours(value) is None
    assert of_the_peer(value) is None


# -- the differences ---------------------------------------------------------------------------


@pytest.mark.parametrize("integer", [2**53, -(2**53), 2**53 + 1, 2**60, -(10**21), 3 * 10**300])
def test_difference_large_integers_are_written_as_the_float_that_they_are_read_as(
    integer: int,
) -> None:
    """The peer refuses integers from 2**53; ours writes what ECMAScript reads and writes.

    A schema may have a `maximum` of 2**63 - 1, and has to be locked.
    """
    assert of_the_peer(integer) is None
    assert of_ours(integer) == of_the_peer(float(integer)) is not None


@pytest.mark.parametrize("depth", [10, 200, 100_000])
def test_difference_what_is_nested_too_deep_is_refused_in_words(depth: int) -> None:
    """The peer raises `RecursionError`; ours `UsageError`. What is not too deep is the same."""
    value: Any = 0
    for _ in range(depth):
        value = [{"a": value}]
    assert of_ours(value) == of_the_peer(value)
    assert (of_ours(value) is None) == (depth > 1000)


def test_difference_any_mapping_is_an_object() -> None:
    """The peer takes `dict` alone; ours any mapping, such as one that cannot be changed."""
    value = MappingProxyType({"b": 1, "a": 2})
    assert of_the_peer(value) is None
    assert of_ours(value) == of_the_peer(dict(value))
