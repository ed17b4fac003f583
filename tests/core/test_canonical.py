"""JSON in canonical form: the examples of RFC 8785, and what has no such form."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given, settings, strategies

from toolshift.core.canonical import canonical, canonical_hash
from toolshift.core.errors import UsageError

# RFC 8785, appendix B: a number by its bits, and how it is written.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize(("bits", "written"), NUMBERS.items())
def test_numbers_are_written_as_the_standard_says(bits: str, written: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(number) == written.encode()


def test_keys_are_sorted_by_their_utf16_units() -> None:
    # The example of section 3.2.3: a smiley (two units, from D83D) stands before U+FB33.
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\x80", "\u00f6"]
    written = json.loads(canonical(dict.fromkeys(keys, 0)))
    assert list(written) == ["\r", "1", "\x80", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


def test_texts_are_escaped_as_little_as_can_be() -> None:
    text = '\u20ac$\x0f\nA\'B"\\\\"/\x7f'
    assert canonical(text) == '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/\x7f"'.encode()


def test_the_hash_is_of_the_data_and_not_of_how_it_stands() -> None:
    one, other = {"b": [1, None], "a": 1.0}, {"a": 1, "b": [1.0, None]}
    assert canonical(one) == b'{"a":1,"b":[1,null]}'
    assert canonical_hash(one) == canonical_hash(other)
    assert canonical_hash(one) != canonical_hash({"a": 1, "b": [None, 1]})


@pytest.mark.parametrize(
    "wrong", [float("nan"), float("inf"), 10**400, {1: 2}, {1: 1, "a": 2}, "\ud800", object()]
)
def test_what_is_no_json_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"JSON"):
        canonical(wrong)


JSON = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.text()
    | strategies.integers()
    | strategies.floats(allow_nan=False, allow_infinity=False),
    lambda inner: strategies.lists(inner) | strategies.dictionaries(strategies.text(), inner),
    max_leaves=8,
)


@settings(max_examples=50, deadline=None)
@given(JSON)
def test_reading_it_again_gives_the_same_form(value: Any) -> None:
    assert canonical(json.loads(canonical(value))) == canonical(value)
