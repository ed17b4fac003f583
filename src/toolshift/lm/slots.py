"""What is remembered between turns: the keys and values of token sequences, each in a slot.

A conversation that goes on is extended in its slot, so nothing of it is copied. A new one that
begins like another takes over a copy of what they have in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

Tokens = NDArray[np.int32]

ROUND = 256
"""Positions of a slot are a multiple of it, so that the store seldom grows."""
GOES_ON = 0.75
"""A sequence takes over a slot, instead of copying it, where it keeps this share of it."""
_EMPTY: Tokens = np.zeros(0, dtype=np.int32)


@dataclass
class Slot:
    """One sequence whose keys and values are known.

    Attributes:
        tokens: the sequence; of position n on, the keys of a slot are of no sequence.
        used: when it was last of use; the higher, the later.
    """

    tokens: Tokens
    used: int = 0


class Place(NamedTuple):
    """Where a sequence stands, and how many of its first tokens are known there."""

    slot: int
    known: int


class Slots:
    """The store, the least recently used sequences forgotten first.

    Args:
        layers: of the model.
        groups: heads of keys.
        size: of a head.
        like: a tensor of the type and on the device of the keys.
        max_tokens: how many positions are remembered (46 KB each for SmolLM2-135M on a CPU); a
            batch that needs more has them while it runs.
        at_once: how many slots are made at a time; the more, the seldomer the store moves.
    """

    def __init__(
        self, layers: int, groups: int, size: int, like: Any, max_tokens: int, at_once: int = 1
    ) -> None:
        self.max_tokens, self.at_once = max_tokens, at_once
        self.slots: list[Slot] = []
        empty = torch.zeros((2, 0, groups, 0, size), dtype=like.dtype, device=like.device)
        self.cells = [empty] * layers
        """Of each layer: [keys and values, slots, groups, positions, size]"""
        self._clock = count(1)

    @property
    def held(self) -> int:
        """How many positions are known."""
        return sum(len(slot.tokens) for slot in self.slots)

    def longest(self, tokens: Tokens) -> int:
        """The length of the longest known prefix of a sequence, which is kept from now on."""
        lengths = [common_prefix(slot.tokens, tokens) for slot in self.slots]
        if not lengths or not max(lengths):
            return 0
        best = int(np.argmax(lengths))
        self.slots[best].used = next(self._clock)
        return lengths[best]

    def place(self, sequences: list[Tokens], more: int, forks: int = 0) -> list[Place]:
        """Finds a slot for each sequence, with what is known of it, and room for `more` tokens.

        Where the store grows, it has room for as many `forks` as well.
        """
        width = -(-(max(map(len, sequences)) + more) // ROUND) * ROUND
        most = max(len(sequences), self.max_tokens // max(width, self.cells[0].shape[3]))
        if width > self.cells[0].shape[3]:
            self._give_up(most)
        common = [[common_prefix(s.tokens, tokens) for s in self.slots] for tokens in sequences]
        placed = self._taken_over(common)
        sources = {
            row: int(np.argmax(lengths))
            for row, lengths in enumerate(common)
            if row not in placed and lengths and max(lengths)
        }
        kept = {*placed.values(), *sources.values()}
        for row in range(len(sequences)):
            if row not in placed:
                placed[row] = self._free(kept, most)
                kept.add(placed[row])
        self._grow(width, forks)
        found = []
        for row, tokens in enumerate(sequences):
            source, known = sources.get(row, placed[row]), 0
            if source < len(common[row]):
                known = common[row][source]
            found.append(self._put(placed[row], tokens, source, known))
        return found

    def fork(self, source: int, known: int, kept: set[int]) -> int:
        """A slot that begins with the first `known` keys and values of another; `kept` stay."""
        width = self.cells[0].shape[3]
        slot = self._free(kept, max(len(kept) + 1, self.max_tokens // width))
        self._grow(width)
        self._copy(source, slot, known)
        self.slots[slot] = Slot(_EMPTY, next(self._clock))
        return slot

    def shrink(self) -> None:
        """Forgets the oldest sequences, until no more positions are known than may be.

        The latest one stays, however long it is, unless nothing may be kept.
        """
        known = sorted((s for s in self.slots if len(s.tokens)), key=lambda slot: slot.used)
        for slot in known[: len(known) - bool(self.max_tokens)]:
            if self.held <= self.max_tokens:
                return
            slot.tokens, slot.used = _EMPTY, 0

    def forget(self, keep_room: bool = False) -> None:
        """Forgets everything, and gives the memory back."""
        self.slots = []
        if keep_room:
            return
        two, _, groups, _, size = self.cells[0].shape
        self.cells = [self.cells[0].new_zeros((two, 0, groups, 0, size))] * len(self.cells)
        if self.cells[0].is_cuda:
            torch.cuda.empty_cache()  # other processes may be on the same GPU

    def _taken_over(self, common: list[list[int]]) -> dict[int, int]:
        """The slots of sequences that go on, the longest first."""
        pairs = [
            (length, row, place)
            for row, lengths in enumerate(common)
            for place, length in enumerate(lengths)
            if length and length >= GOES_ON * len(self.slots[place].tokens)
        ]
        placed: dict[int, int] = {}
        for _, row, place in sorted(pairs, key=lambda pair: -pair[0]):
            if row not in placed and place not in placed.values():
                placed[row] = place
        return placed

    def _free(self, kept: set[int], most: int) -> int:
        """A slot that is nobody's; the oldest is evicted where there are `most` of them."""
        free = [n for n, slot in enumerate(self.slots) if n not in kept]
        empty = [n for n in free if not len(self.slots[n].tokens)]
        if empty:
            return empty[0]
        if free and len(self.slots) >= most:
            return min(free, key=lambda n: self.slots[n].used)
        self.slots.append(Slot(_EMPTY))
        return len(self.slots) - 1

    def _give_up(self, most: int) -> None:
        """Drops the oldest slots where there are more than `most`: as wide as all will be."""
        if len(self.slots) <= most:
            return
        by_use = sorted(range(len(self.slots)), key=lambda n: self.slots[n].used)
        kept = sorted(by_use[-most:])
        self.slots = [self.slots[n] for n in kept]
        for layer, cells in enumerate(self.cells):
            self.cells[layer] = cells[:, kept]

    def _grow(self, width: int, forks: int = 0) -> None:
        """Makes room for all slots and for `width` positions of each, with some to spare."""
        two, slots, groups, positions, size = self.cells[0].shape
        if len(self.slots) <= slots and width <= positions:
            return
        width = max(width, positions)
        room = -(-len(self.slots) // self.at_once) * self.at_once
        room = max(len(self.slots), min(room + forks, self.max_tokens // width))
        shape = (two, max(room, slots), groups, width, size)
        for layer, cells in enumerate(self.cells):  # one by one, or all were there twice meanwhile
            # Zeros, not empty: on a GPU what is masked takes part in a product, and NaN * 0 is NaN.
            grown = cells.new_zeros(shape)
            grown[:, :slots, :, :positions] = cells
            self.cells[layer] = grown

    def _put(self, slot: int, tokens: Tokens, source: int, known: int) -> Place:
        # The last token is always computed: its logits are wanted.
        known = min(known, len(tokens) - 1)
        if source != slot and known:
            self._copy(source, slot, known)
            self.slots[source].used = next(self._clock)
        self.slots[slot] = Slot(tokens[:known], next(self._clock))
        return Place(slot, known)

    def _copy(self, source: int, slot: int, known: int) -> None:
        for cells in self.cells:
            cells[:, slot, :, :known] = cells[:, source, :, :known]


def common_prefix(one: Tokens, other: Tokens) -> int:
    """The length of the common prefix."""
    length = min(len(one), len(other))
    differs = one[:length] != other[:length]
    first = int(differs.argmax()) if length else 0
    return first if length and differs[first] else length
