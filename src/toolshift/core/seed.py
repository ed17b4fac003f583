"""Derived randomness: every random choice is a stable hash of what it is for."""

from __future__ import annotations

from hashlib import blake2b
from random import Random

_ALPHABET = "BCDFGHJKLMNPQRSTVWXZ23456789"  # no vowels, 0 or 1: codes spell no words


def derive(*parts: object) -> int:
    """Hashes the parts (by their text) to 64 bits; the same on every machine and run."""
    text = "\x1f".join(map(str, parts))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def rng(*parts: object) -> Random:
    """A generator of its own for one purpose, seeded by `derive`."""
    return Random(derive(*parts))


_PAIRS = tuple(second + first for first in _ALPHABET for second in _ALPHABET)


def code(*parts: object) -> str:
    """An unguessable code such as "K7Q2-M9XD", derived from the parts."""
    number, size, pairs = derive("code", *parts), len(_PAIRS), _PAIRS
    number, a = divmod(number, size)
    number, b = divmod(number, size)
    number, c = divmod(number, size)
    return f"{pairs[a]}{pairs[b]}-{pairs[c]}{pairs[number % size]}"
