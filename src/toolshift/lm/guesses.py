"""What a model will say next, guessed from what it has read and said: it copies names and values.

Guesses cost a place in a forward pass that is made anyway, and only those that the model would
have chosen itself are taken. Saxena, "Prompt lookup decoding" (2023), describes the method.
"""

from __future__ import annotations

from collections.abc import Iterable

CONTEXTS = (6, 3, 2)
"""How many last tokens are looked up; the longest that was seen before decides."""
MORE = 2
"""A guess is at most so much longer than what was looked up: the more agrees, the surer it is."""


class Guesser:
    """A sequence, and what followed some tokens of it when they were last seen.

    Args:
        tokens: the prompt.
        others: what was said elsewhere, looked up where the sequence itself has nothing as long.
    """

    def __init__(self, tokens: Iterable[int], others: Guesser | None = None) -> None:
        self.tokens: list[int] = []
        self.others = others
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
            last = tuple(self.tokens[-length:])
            for source in filter(None, (self, self.others)):
                place = source._after.get(last)
                if place is not None:
                    return source.tokens[place : place + min(most, length + MORE)]
        return []
