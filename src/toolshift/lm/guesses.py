"""What a model will say next, guessed from what it has read: it copies names and values.

Guesses cost a place in a forward pass that is made anyway, and only those that the model would
have chosen itself are taken. Saxena, "Prompt lookup decoding" (2023), describes the method.
"""

from __future__ import annotations

from collections.abc import Iterable

CONTEXTS = (3, 2)
"""How many last tokens are looked up; the longest that was seen before decides."""


class Guesser:
    """A sequence, and what followed each two or three tokens of it when they were last seen.

    Args:
        tokens: the prompt.
    """

    def __init__(self, tokens: Iterable[int]) -> None:
        self.tokens: list[int] = []
        self._after: dict[tuple[int, ...], int] = {}
        for token in tokens:
            self.add(token)

    def add(self, token: int) -> None:
        """Goes on by one token."""
        for length in CONTEXTS:
            if len(self.tokens) >= length:
                self._after[tuple(self.tokens[-length:])] = len(self.tokens)
        self.tokens.append(token)

    def guess(self, most: int) -> list[int]:
        """At most `most` tokens that may follow; none where nothing like it was seen."""
        for length in CONTEXTS:
            place = self._after.get(tuple(self.tokens[-length:]))
            if place is not None:
                return self.tokens[place : place + most]
        return []
