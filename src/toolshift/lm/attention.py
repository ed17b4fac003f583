"""How the local agent attends: over keys that stay where they are, in slots of a shared store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

BLOCK = 64
"""Queries that are taken together on a CPU, so few that their scores stay in a cache."""


@dataclass
class Step:
    """Which positions one forward pass computes: of each row, `length` from its start on.

    Attributes:
        slots: the slot of each row.
        starts: the first position that is computed, one a row.
        length: how many positions are computed, of every row.
        device: of the keys.
    """

    slots: list[int]
    starts: list[int]
    length: int
    device: Any
    rows: torch.Tensor = field(init=False, repr=False)
    columns: torch.Tensor = field(init=False, repr=False)
    _masks: dict[tuple[int, int, int], torch.Tensor] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.rows = torch.tensor(self.slots, device=self.device)
        first = torch.tensor(self.starts, device=self.device)
        self.columns = first[:, None] + torch.arange(self.length, device=self.device)

    @property
    def end(self) -> int:
        """The position after the last one that is computed, of any row."""
        return max(self.starts) + self.length

    def mask(self, like: torch.Tensor, before: int, length: int, window: int) -> torch.Tensor:
        """What is added to the scores of `length` queries, `before` columns behind the first seen.

        Args:
            like: its type and device.
            before: how many columns come before that of the first query.
            length: how many queries.
            window: how many positions a query sees, its own included; 0 for all.

        Returns:
            Of shape [length, before + length]: 0 or minus infinity; kept for the other layers.
        """
        known = self._masks.get((before, length, window))
        if known is None:
            barred = like.new_full((length, before + length), -torch.inf)
            known = barred.triu(before + 1)
            if window:
                known += barred.tril(before - window)
            self._masks[before, length, window] = known
        return known


@dataclass
class Pages:
    """The keys and values of one layer, [slots, groups, positions, size], where a step writes."""

    keys: torch.Tensor
    values: torch.Tensor
    step: Step

    def write(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Writes new ones, [rows, groups, length, size], in place."""
        where = self.step.rows[:, None], slice(None), self.step.columns
        self.keys[where] = keys.transpose(1, 2).to(self.keys.dtype)
        self.values[where] = values.transpose(1, 2).to(self.values.dtype)


def grouped_attention(
    module: object,
    query: torch.Tensor,
    key: Pages,
    value: Pages,
    mask: object,
    scaling: float = 1.0,
    sliding_window: int | None = None,
    **_: object,
) -> tuple[torch.Tensor, None]:
    """Attention as two matrix products, the heads that share keys folded into the length.

    On a CPU each row is taken alone, in blocks of its queries, against as many keys as it has:
    nothing is padded, nothing of the store is copied, and one query needs no mask. It is done in
    the type of the store. On a GPU all rows are taken at once.

    Args:
        module: the attention layer, not used.
        query: [rows, heads, length, size].
        key: where the keys and values of all rows are, new ones written already.
        value: the same.
        mask: not used: who sees what follows from the positions.
        scaling: the factor on the scores.
        sliding_window: how many positions a query sees, its own included; None for all.

    Returns:
        The attended values, [rows, length, heads, size]; and None, for there are no weights to
        show.
    """
    window = sliding_window or 0
    if query.is_cuda:
        return all_at_once(query, key, scaling, window), None
    rows, heads, length, size = query.shape
    mixed = query.new_empty(rows, length, heads, size)
    scaled = query.to(key.keys.dtype) * scaling
    for row in range(rows):
        for begin in range(0, length, BLOCK):
            some = slice(begin, min(begin + BLOCK, length))
            mixed[row, some] = _one(scaled[row, :, some], key, row, begin, window)
    return mixed, None


def _one(query: torch.Tensor, pages: Pages, row: int, begin: int, window: int) -> torch.Tensor:
    """A block of one row's queries, [heads, length, size]; returns [length, heads, size]."""
    heads, length, size = query.shape
    first = pages.step.starts[row] + begin
    low = max(0, first - window + 1) if window else 0
    slot, seen = pages.step.slots[row], slice(low, first + length)
    keys, values = pages.keys[slot, :, seen], pages.values[slot, :, seen]
    groups = keys.shape[0]
    scores = torch.bmm(query.reshape(groups, -1, size), keys.transpose(1, 2))
    if length > 1:
        barred = pages.step.mask(scores, first - low, length, window)
        scores.view(groups, -1, length, scores.shape[-1]).add_(barred)
    mixed = torch.bmm(scores.softmax(dim=-1), values)
    return mixed.view(heads, length, size).transpose(0, 1)


def all_at_once(query: torch.Tensor, pages: Pages, scaling: float, window: int) -> torch.Tensor:
    """All rows at once, against as many keys as the longest has; [rows, length, heads, size]."""
    rows, heads, length, size = query.shape
    step = pages.step
    keys = pages.keys[step.rows, :, : step.end]
    values = pages.values[step.rows, :, : step.end]
    groups = keys.shape[1]
    places = torch.arange(step.end, device=query.device)
    behind = step.columns[:, :, None] - places
    unseen = (behind < 0) | (behind >= window) if window else behind < 0
    folded = (query * scaling).reshape(rows, groups, -1, size)
    scores = (folded @ keys.transpose(2, 3)).view(rows, heads, length, -1)
    weights = scores.masked_fill_(unseen[:, None], -torch.inf).softmax(dim=-1)
    mixed = weights.view(rows, groups, -1, step.end) @ values
    return mixed.view(rows, heads, length, size).transpose(1, 2).contiguous()
