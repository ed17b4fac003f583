"""Derived randomness: every random choice is a stable hash of what it is for."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from random import Random

_ALPHABET = "BCDFGHJKLMNPQRSTVWXZ23456789"  # no vowels, 0 or 1: codes spell no words


def derive(*parts: object) -> int:
    """Hashes the parts (by their text) to 64 bits; the same on every machine and run."""
    return _kept("\x1f".join(map(str, parts)))


def derive_once(*parts: object) -> int:
    """The same as `derive`, but without a cache."""
    return _hashed("\x1f".join(map(str, parts)))


def _hashed(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


_kept = lru_cache(maxsize=4096)(_hashed)  # one task asks for the same again in each of its episodes


def rng(*parts: object) -> Random:
    """A separate random generator for one purpose, seeded by `derive`."""
    return Random(derive(*parts))  # noqa: S311 - derived, and no secret


_PAIRS = tuple(second + first for first in _ALPHABET for second in _ALPHABET)


def code(*parts: object) -> str:
    """An unguessable code such as "K7Q2-M9XD", derived from the parts."""
    return _code("\x1f".join(map(str, parts)))


@lru_cache(maxsize=4096)
def _code(joined: str) -> str:
    number, size, pairs = derive("code", joined), len(_PAIRS), _PAIRS
    number, a = divmod(number, size)
    number, b = divmod(number, size)
    number, c = divmod(number, size)
    return f"{pairs[a]}{pairs[b]}-{pairs[c]}{pairs[number % size]}"
