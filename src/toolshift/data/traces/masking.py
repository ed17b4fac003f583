"""Masks what looks personal or secret in recorded conversations, the same thing everywhere alike.

    mask = Mask()
    mask.learn(text)        # everything first: what is found in one place is masked in all
    mask.apply(value)       # texts and data, at every depth
    mask.counts             # {"email": 2, "secret": 1}

Things are known by their form: emails; card and bank account numbers by their check digits; phone
numbers that are written as such; numbers of US social security; credentials as `core.redaction`
knows them, and long random texts. Names and postal addresses have no form and are not found. What
stands in place of a thing is counted and not made from it, so that it cannot be led back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from toolshift.core.redaction import ASSIGNED, KEY, RANDOM, SECRET_KEY, SECRET_TEXT

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.)+[A-Za-z]{2,24}(?![\w-])")
_RESERVED = re.compile(r"@(?:.+\.)?(?:example\.(?:com|net|org)|[\w-]+\.(?:example|test|invalid))$")
"""Addresses that belong to nobody (RFC 2606)."""
_IBAN = re.compile(r"(?<![\w-])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![\w-])")
_CARD = re.compile(r"(?<![\w.-])[2-6](?:[ -]?\d){13,18}(?![\w-]|\.\d)")
_SOCIAL = re.compile(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])")
_PHONE = re.compile(
    r"(?<![\w.])\+\d(?:[ ().-]{0,2}\d){6,14}(?![\w])"
    r"|(?<![\w.-])(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}(?![\w-])"
)
_LONG = re.compile(r"(?<![\w/+.-])[A-Za-z0-9_-]{24,512}={0,2}(?![\w/+-])")
_DIGITS = re.compile(r"(?<![\w.])\d{9,19}(?![\w]|\.\d)")
_LEAST_DIGITS, _LEAST_SECRET = 9, 4


class Mask:
    """Replaces personal and secret things consistently.

    Attributes:
        counts: how many different things were found, by kind.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._known: dict[str, str] = {}
        self._secrets: dict[str, str] = {}
        self._digits: dict[str, str] = {}
        self._secret_places: re.Pattern[str] | None = None

    # -- learning --------------------------------------------------------------------------------

    def learn(self, value: Any, key: str = "") -> None:
        """Looks for such things in a text, or in data at every depth."""
        if isinstance(value, Mapping):
            for name, inner in value.items():
                self.learn(inner, str(name))
        elif isinstance(value, list | tuple):
            for inner in value:
                self.learn(inner, key)
        elif isinstance(value, str):
            if SECRET_KEY.search(key) and len(value) >= _LEAST_SECRET:
                self._take_secret(value)
            self._learn_text(value)
        elif isinstance(value, int) and not isinstance(value, bool) and _CARD.fullmatch(str(value)):
            self._learn_text(str(value))

    def _learn_text(self, text: str) -> None:
        for found in (*SECRET_TEXT.finditer(text), *KEY.finditer(text)):
            if found.re is not KEY or RANDOM.search(found[0], 3):
                self._take_secret(re.sub(r"(?i)^(bearer|basic)\s+", "", found[0]))
        for found in ASSIGNED.finditer(text):
            if SECRET_KEY.search(found["key"]):
                self._take_secret(found["value"])
        for found in _LONG.finditer(text):
            if _is_random(found[0]):
                self._take_secret(found[0])
        for kind, pattern, is_one in _KINDS:
            for found in pattern.finditer(text):
                if is_one(found[0]):
                    self._take(kind, found[0])

    def _take_secret(self, value: str) -> None:
        if value not in self._secrets:
            self.counts["secret"] += 1
            self._secrets[value] = f"masked-secret-{self.counts['secret']}"
            self._secret_places = None

    def _take(self, kind: str, found: str) -> None:
        """Notes a thing under each of its spellings: digits may be grouped in any way."""
        digits = re.sub(r"\D", "", found)
        if kind == "email":
            same = next(
                (new for old, new in self._known.items() if old.lower() == found.lower()), ""
            )
            if not same:
                self.counts[kind] += 1
                same = f"user{self.counts[kind]}@example.com"
            self._known[found] = same
            return
        plain = digits if kind != "bank account" else re.sub(r"\s", "", found)
        if plain not in self._digits:
            self.counts[kind] += 1
            self._digits[plain] = _stand_in(kind, plain, self.counts[kind])
        self._known[found] = _in_form(found, self._digits[plain])

    # -- applying --------------------------------------------------------------------------------

    def apply(self, value: Any, key: str = "") -> Any:
        """The same with everything replaced that was learned."""
        if isinstance(value, Mapping):
            return {self._text(str(k)): self.apply(inner, str(k)) for k, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.apply(inner, key) for inner in value]
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return int(self._digits.get(str(value), value))
        return value

    def _text(self, text: str) -> str:
        if self._secrets:
            if self._secret_places is None:
                longest = sorted(self._secrets, key=len, reverse=True)
                every = "|".join(map(re.escape, longest))
                self._secret_places = re.compile(rf"(?<!\w)(?:{every})(?!\w)")
            text = self._secret_places.sub(lambda found: self._secrets[found[0]], text)
        for _, pattern, _ in _KINDS:
            text = pattern.sub(lambda found: self._known.get(found[0], found[0]), text)
        return _DIGITS.sub(lambda found: self._digits.get(found[0], found[0]), text)


def _stand_in(kind: str, plain: str, number: int) -> str:
    """As many digits, in a range that belongs to nobody, with a check digit where there is one."""
    if kind == "bank account":
        body = f"{number:0{len(plain) - 4}d}"[-(len(plain) - 4) :]
        check = 98 - _remainder(plain[:2] + "00" + body)
        return f"{plain[:2]}{check:02d}{body}"
    if kind == "card":
        body = "4000" + f"{number:0{len(plain) - 5}d}"[-(len(plain) - 5) :]
        return next(body + str(last) for last in range(10) if _luhn(body + str(last)))
    lead = "555" if len(plain) > len("555") + 3 else ""
    return lead + f"{number:0{len(plain) - len(lead)}d}"[-(len(plain) - len(lead)) :]


def _in_form(found: str, plain: str) -> str:
    """Other signs in the grouping of a text."""
    signs = iter(plain)
    return "".join(next(signs, "") if each.isalnum() else each for each in found)


def _luhn(text: str) -> bool:
    digits = [int(each) for each in reversed(re.sub(r"\D", "", text))]
    doubled = (sum(divmod(2 * each, 10)) for each in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _remainder(account: str) -> int:
    """The remainder of ISO 7064 by which a bank account is checked."""
    turned = account[4:] + account[:4]
    return int("".join(str(int(each, 36)) for each in turned)) % 97


def _is_account(found: str) -> bool:
    plain = re.sub(r"\s", "", found)
    return 15 <= len(plain) <= 34 and _remainder(plain) == 1


def _is_phone(found: str) -> bool:
    return 7 <= len(re.sub(r"\D", "", found)) <= 15


def _is_random(text: str) -> bool:
    """Whether a text looks drawn: letters of both cases and digits, mixed; no word, no UUID."""
    kinds = [bool(re.search(kind, text)) for kind in (r"[a-z]", r"[A-Z]", r"\d")]
    changes = sum(_kind(a) != _kind(b) for a, b in pairwise(text))
    return all(kinds) and changes > len(text) / 4


def _kind(sign: str) -> str:
    return "d" if sign.isdigit() else "u" if sign.isupper() else "l" if sign.islower() else "s"


_KINDS: tuple[tuple[str, re.Pattern[str], Callable[[str], bool]], ...] = (
    ("email", _EMAIL, lambda found: not _RESERVED.search(found.lower())),
    ("bank account", _IBAN, _is_account),
    ("card", _CARD, lambda found: 14 <= len(re.sub(r"\D", "", found)) <= 19 and _luhn(found)),
    ("social security number", _SOCIAL, lambda found: True),
    ("phone number", _PHONE, _is_phone),
)
