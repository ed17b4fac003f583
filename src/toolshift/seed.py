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


def code(*parts: object) -> str:
    """An unguessable code such as "K7Q2-M9XD", derived from the parts."""
    number = derive("code", *parts)
    letters = []
    for _ in range(8):
        number, place = divmod(number, 28)
        letters.append(_ALPHABET[place])
    return "".join(letters[:4]) + "-" + "".join(letters[4:])
