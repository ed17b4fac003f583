"""Sequences as one tree: what several have in common from their beginnings on is computed once.

The samples of a group share their scene, and mostly their first calls and results too; scenes share
the list of tools. So the tokens of a batch are the nodes of a tree, laid out in one row in which
each node comes after its parent, stands at the position of its depth, and attends to its ancestors
alone. The states, and the gradients, are those of the sequences one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

BLOCK = 128
"""Nodes whose queries are taken together."""

Nodes = NDArray[np.int64]


class Block(NamedTuple):
    """Nodes whose queries are taken together, and the keys that at least one of them sees.

    Attributes:
        begin: the first node.
        end: the node after the last one.
        seen: the nodes that are seen, in order, shape (keys,).
        barred: what is added to the scores, 0 or minus infinity, shape (nodes, keys).
    """

    begin: int
    end: int
    seen: torch.Tensor
    barred: torch.Tensor


class Tree(NamedTuple):
    """The nodes of a tree of tokens; a parent's number is below that of its children.

    Attributes:
        ids: the token of each node.
        depth: how many ancestors each node has, which is its position.
        paths: the nodes of each sequence.
        blocks: of all nodes, in order.
    """

    ids: torch.Tensor
    depth: torch.Tensor
    paths: list[Nodes]
    blocks: list[Block]


class _Piece(NamedTuple):
    """The new nodes that one sequence brings: from the place `begin` on of its path."""

    path: Nodes
    begin: int


def tree_of(sequences: Sequence[Sequence[int]]) -> Tree:
    """The tree of some sequences of tokens, of which none is empty."""
    children: dict[tuple[int, int], int] = {}
    ids: list[int] = []
    depth: list[int] = []
    paths: list[Nodes] = []
    pieces: list[_Piece] = []
    for sequence in sequences:
        known, at = len(ids), -1
        path: list[int] = []
        for place, token in enumerate(sequence):
            node = children.setdefault((at, token), len(ids))
            if node == len(ids):
                ids.append(token)
                depth.append(place)
            path.append(node)
            at = node
        paths.append(np.asarray(path, dtype=np.int64))
        new = len(ids) - known
        if new:
            pieces.append(_Piece(paths[-1], len(path) - new))
    return Tree(torch.tensor(ids), torch.tensor(depth), paths, _blocks(pieces, len(ids)))


def _blocks(pieces: list[_Piece], nodes: int) -> list[Block]:
    blocks = []
    for begin in range(0, nodes, BLOCK):
        end = min(begin + BLOCK, nodes)
        here = [
            (piece, first, last)
            for piece in pieces
            for first in [max(begin, int(piece.path[piece.begin]))]
            for last in [min(end, int(piece.path[-1]) + 1)]
            if first < last
        ]
        # The new nodes of a piece are numbered one after the other, at the end of its path.
        sights = [
            piece.path[: len(piece.path) - int(piece.path[-1]) - 1 + b] for piece, _, b in here
        ]
        seen = np.unique(np.concatenate(sights))
        barred = np.full((end - begin, len(seen)), -np.inf, dtype=np.float32)
        for (_, first, last), sight in zip(here, sights, strict=True):
            columns = np.searchsorted(seen, sight)
            before = len(sight) - (last - first)
            sees = np.tri(last - first, len(sight), before, dtype=bool)
            barred[first - begin : last - begin, columns] = np.where(sees, 0.0, -np.inf)
        blocks.append(Block(begin, end, torch.from_numpy(seen), torch.from_numpy(barred)))
    return blocks


def tree_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float, tree: Tree
) -> torch.Tensor:
    """Each node attends to its ancestors and itself, block after block; weights are in float32.

    Args:
        query: [1, heads, nodes, size].
        key: [1, groups, nodes, size].
        value: the same.
        scaling: the factor on the scores.
        tree: whose nodes they are.

    Returns:
        The attended values, [1, nodes, heads, size].
    """
    _, heads, _, size = query.shape
    groups = key.shape[1]
    # One row a node: as such it is picked, and its gradient added, in one piece.
    keys, values = (each[0].transpose(0, 1).flatten(1) for each in (key, value))
    mixed = []
    for block in tree.blocks:
        some = (query[0, :, block.begin : block.end] * scaling).reshape(groups, -1, size)
        theirs = keys[block.seen].view(-1, groups, size).permute(1, 2, 0)
        scores = torch.bmm(some, theirs).view(groups, -1, *block.barred.shape) + block.barred
        weights = scores.softmax(dim=-1).to(value.dtype).view(groups, -1, len(block.seen))
        found = torch.bmm(weights, values[block.seen].view(-1, groups, size).transpose(0, 1))
        mixed.append(found.view(heads, -1, size).transpose(0, 1))
    return torch.cat(mixed)[None]
