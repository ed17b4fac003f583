"""What is remembered between turns: the keys and values of token sequences, found by prefix."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

Tokens = NDArray[np.int32]


@dataclass(eq=False)
class Known:
    """A token sequence whose keys and values are known: a tail on top of a parent.

    `tail` has the shape [layers, 2, key/value heads, len(tokens) - start, head size]; `children`
    counts the remembered sequences that stand on this one.
    """

    tokens: Tokens
    parent: Known | None
    start: int
    tail: torch.Tensor
    children: int = 0

    def write(self, target: torch.Tensor, length: int) -> None:
        """Copies the first `length` positions into `target`, along its last but one axis."""
        if length > self.start:
            target[..., self.start : length, :] = self.tail[..., : length - self.start, :]
        if self.parent is not None:
            self.parent.write(target, min(length, self.start))


class PrefixMemory:
    """The sequences seen, the least recently used forgotten first.

    A sequence is not forgotten while one that stands on it is remembered, for it would be held by
    that one all the same.

    Args:
        max_tokens: how many positions are kept (23 KB each for SmolLM2-135M in bf16).
    """

    def __init__(self, max_tokens: int) -> None:
        self.max_tokens = max_tokens
        self.held = 0
        self._known: OrderedDict[bytes, Known] = OrderedDict()

    def longest(self, tokens: Tokens) -> tuple[Known | None, int]:
        """The sequence that shares the longest prefix with `tokens`, and that prefix's length."""
        best, length = None, 0
        for known in self._known.values():
            common = common_prefix(known.tokens, tokens)
            if common > length:
                best, length = known, common
        if best is not None:
            self._keep(best)
        return best, length

    def add(self, tokens: Tokens, parent: Known | None, start: int, tail: torch.Tensor) -> None:
        """Keeps a sequence that extends the first `start` tokens of `parent`.

        Args:
            tokens: of the whole sequence.
            parent: the known sequence that it extends; None for none.
            start: how many tokens it has in common with `parent`.
            tail: keys and values from `start` on, [layers, 2, heads, length, size].
        """
        if tokens.tobytes() in self._known:
            return
        # A parent shorter than `start` cannot be; a longer one is read only up to `start`.
        self._keep(Known(tokens, parent, start, tail))
        while self.held > self.max_tokens and len(self._known) > 1:
            self._forget_one()

    def _keep(self, known: Known) -> None:
        """Makes a sequence the latest, and then what it stands on, which others share.

        What was forgotten since it was found is remembered again.
        """
        key = known.tokens.tobytes()
        if key not in self._known:
            self._known[key] = known
            self.held += len(known.tokens) - known.start
            if known.parent is not None:
                known.parent = self._known.get(known.parent.tokens.tobytes(), known.parent)
                known.parent.children += 1
        self._known.move_to_end(key)
        if known.parent is not None:
            self._keep(known.parent)

    def _forget_one(self) -> None:
        key, old = next(pair for pair in self._known.items() if not pair[1].children)
        del self._known[key]
        self.held -= len(old.tokens) - old.start
        if old.parent is not None:
            old.parent.children -= 1


def common_prefix(one: Tokens, other: Tokens) -> int:
    """The length of the common prefix."""
    length = min(len(one), len(other))
    differs = one[:length] != other[:length]
    first = int(differs.argmax()) if length else 0
    return first if length and differs[first] else length
