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

    `tail` has the shape [layers, 2, key/value heads, len(tokens) - start, head size].
    """

    tokens: Tokens
    parent: Known | None
    start: int
    tail: torch.Tensor

    def write(self, target: torch.Tensor, length: int) -> None:
        """Copies the first `length` positions into `target`, along its last but one axis."""
        if length > self.start:
            target[..., self.start : length, :] = self.tail[..., : length - self.start, :]
        if self.parent is not None:
            self.parent.write(target, min(length, self.start))


class PrefixMemory:
    """The sequences seen, the least recently used forgotten first.

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
        self._touch(best)
        return best, length

    def add(self, tokens: Tokens, parent: Known | None, start: int, tail: torch.Tensor) -> None:
        """Keeps a sequence that extends the first `start` tokens of `parent`."""
        key = tokens.tobytes()
        if key in self._known:
            return
        # A parent shorter than `start` cannot be; a longer one is read only up to `start`.
        self._known[key] = Known(tokens, parent, start, tail)
        self.held += len(tokens) - start
        while self.held > self.max_tokens and len(self._known) > 1:
            _, old = self._known.popitem(last=False)
            self.held -= len(old.tokens) - old.start

    def _touch(self, known: Known | None) -> None:
        # The child first, so that its parents, which others share, are forgotten after it.
        while known is not None:
            key = known.tokens.tobytes()
            if key in self._known:
                self._known.move_to_end(key)
            known = known.parent


def common_prefix(one: Tokens, other: Tokens) -> int:
    """The length of the common prefix."""
    length = min(len(one), len(other))
    differs = one[:length] != other[:length]
    first = int(differs.argmax()) if length else 0
    return first if length and differs[first] else length
