"""JSON in its canonical form (JCS, RFC 8785): the same bytes for the same data, everywhere.

Keys are sorted by their UTF-16 code units, numbers are written as ECMAScript writes them, and
nothing stands between. It is written here because the packages that do it take several times as
long, and a lock of a thousand tools has to be verified within a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from hashlib import sha256
from json.encoder import encode_basestring
from math import isfinite
from typing import Any

from toolshift.core.errors import UsageError

EXACT = 2**53
"""Integers up to here are exact as the floating-point numbers that JCS has."""


def canonical(value: Any) -> bytes:
    """Writes JSON data as the bytes of RFC 8785."""
    try:
        return _written(value).encode()
    except UnicodeEncodeError:
        raise UsageError(
            "the JSON contains half of a character (a lone surrogate), which has no canonical form"
        ) from None
    except RecursionError:
        raise UsageError("the JSON is nested too deeply for a canonical form") from None


def canonical_hash(value: Any) -> str:
    """The SHA-256 of JSON data in its canonical form, as `sha256:` and 64 digits."""
    return f"sha256:{sha256(canonical(value)).hexdigest()}"


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same in JSON, where 1 is 1.0 and is not true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _written(value: Any) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return f"{{{','.join([f'{_key(k)}:{_written(value[k])}' for k in _ordered(value)])}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_written, value))}]"
    if isinstance(value, int) and abs(value) <= EXACT:
        return str(value)
    if isinstance(value, int | float):
        return _number(value)
    raise UsageError(f"{type(value).__name__} is not JSON, so it has no canonical form")


def _ordered(value: Mapping[Any, Any]) -> list[Any]:
    try:
        if all(map(str.isascii, value)):
            return sorted(value)
        return sorted(value, key=lambda key: key.encode("utf-16-be"))
    except TypeError:
        raise UsageError("a key of the JSON is not a text, so it has no canonical form") from None


def _key(key: str) -> str:
    return encode_basestring(key)


def _number(value: float) -> str:
    """A number as `Number::toString` of ECMAScript writes it."""
    try:
        value = float(value)
    except OverflowError:
        value = float("inf")
    if not isfinite(value):
        raise UsageError("the JSON contains a number that is too large, NaN or infinite")
    if value == 0:
        return "0"
    sign, several, exponent = Decimal(repr(value)).normalize().as_tuple()
    digits, minus = "".join(map(str, several)), "-" if sign else ""
    point = len(digits) + int(exponent)
    return minus + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
    """Puts the decimal point behind the first `point` digits."""
    if len(digits) <= point <= 21:
        return digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{mantissa}e{point - 1:+d}"
