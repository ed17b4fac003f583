"""How likely a model finds tokens: log-probabilities computed only where they are wanted.

The head is computed at wanted tokens only. What rows have in common from their beginnings on is
computed once: on a CPU all of it (`toolshift.train.tree`), for the samples of a group share a
prompt of hundreds of tokens and often their first calls; elsewhere the opening that all rows share.
TRL's own path computes the head at every token on a CPU and every prompt again; the values are
equal.
"""

from __future__ import annotations

from types import MethodType
from typing import Any, NamedTuple

import torch
from torch.utils.checkpoint import checkpoint

from toolshift.train.loss import ODD_HEADS, states, tree_states
from toolshift.train.tree import tree_of

CHUNK = 1024
"""Tokens whose logits exist at once: 200 MB for a vocabulary of 49,000."""


class Packed(NamedTuple):
    """Rows pushed to the left, and which of their tokens are wanted.

    Attributes:
        ids: token ids, shape (rows, width), padded on the right.
        scored: which tokens are to be scored, shape (rows, width).
        shared: how many first tokens all rows have in common, none of them scored.
    """

    ids: torch.Tensor
    scored: torch.Tensor
    shared: int


def add_scores(model: Any, temperature: float, share: bool, tree: bool = False) -> None:
    """Teaches a model to score tokens: `model(input_ids=ids, scored=mask, shared=n)`.

    The result is log-probabilities and entropies (without gradient) of the scored tokens, row by
    row; both of shape (scored tokens,). Patching the forward keeps the computation inside whatever
    wraps the model (autocast, data parallel).

    Args:
        model: a transformers causal language model, below any adapter.
        temperature: by which logits are divided, as in the sampling.
        share: whether the first `shared` tokens may be computed once.
        tree: whether all that rows share may be, of a model with `plain_attention`.
    """
    forward = model.forward
    config = model.config.get_text_config()
    direct = not any(getattr(config, name, None) for name in ODD_HEADS)

    def scores_or_forward(
        self: Any, *args: Any, scored: Any = None, shared: int = 0, **kwargs: Any
    ) -> Any:
        if scored is None:
            return forward(*args, **kwargs)
        ids = kwargs["input_ids"]
        if direct and tree and bool(scored.any()):
            return _of_tree(self, ids, scored, temperature)
        if direct:
            return _direct(self, Packed(ids, scored, shared if share else 0), temperature)
        wanted = scored[:, 1:]
        logits = forward(input_ids=ids, use_cache=False).logits[:, :-1][wanted]
        return _of_logits(logits, ids[:, 1:][wanted], temperature)

    model.forward = MethodType(scores_or_forward, model)


def _direct(model: Any, rows: Packed, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    hidden = states(model, rows.ids, rows.shared)
    ids, wanted = rows.ids[:, rows.shared :], rows.scored[:, rows.shared + 1 :]
    return _by_head(model, hidden[:, :-1][wanted], ids[:, 1:][wanted], temperature)


def _of_tree(
    model: Any, ids: torch.Tensor, scored: torch.Tensor, temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Each pair of a node and a token after it is scored once, for all rows that have it."""
    rows = [
        (tokens[: wanted[-1]], wanted, tokens)
        for tokens, mask in zip(ids.tolist(), scored.tolist(), strict=True)
        for wanted in [[place for place, own in enumerate(mask) if own]]
        if wanted
    ]
    tree = tree_of([known for known, _, _ in rows])
    pairs: dict[tuple[int, int], int] = {}
    places = [
        pairs.setdefault((int(path[place - 1]), tokens[place]), len(pairs))
        for (_, wanted, tokens), path in zip(rows, tree.paths, strict=True)
        for place in wanted
    ]
    nodes, targets = torch.tensor(list(pairs), device=ids.device).T
    logps, entropies = _by_head(model, tree_states(model, tree)[nodes], targets, temperature)
    return logps[places], entropies[places]


def _by_head(
    model: Any, asked: torch.Tensor, targets: torch.Tensor, temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The scores of tokens by the states before them."""
    head = model.get_output_embeddings()

    def part(some: torch.Tensor, their: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return _of_logits(head(some), their, temperature)

    pieces = list(zip(torch.split(asked, CHUNK), torch.split(targets, CHUNK), strict=True))
    if len(pieces) == 1:
        return part(*pieces[0])
    found = [checkpoint(part, *piece, use_reentrant=False) for piece in pieces]
    return torch.cat([logps for logps, _ in found]), torch.cat([each for _, each in found])


def _of_logits(
    logits: torch.Tensor, targets: torch.Tensor, temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    logps = (logits.float() / temperature).log_softmax(dim=-1)
    with torch.no_grad():
        entropies = -(logps.exp() * logps).sum(dim=-1)
    return logps.gather(1, targets[:, None])[:, 0], entropies


def pack(ids: torch.Tensor, real: torch.Tensor, own: torch.Tensor) -> Packed:
    """Takes the padding between prompts and edges away.

    Args:
        ids: prompts padded on the left, completions on the right; shape (rows, length).
        real: 1 where a token is no padding, same shape.
        own: which of the last tokens are wanted, shape (rows, completion length).

    Returns:
        Rows without the padding, and where the wanted tokens are in them.
    """
    lengths = real.sum(dim=1)
    begins = real.argmax(dim=1)
    places = torch.arange(int(lengths.max()), device=ids.device)
    inside = places[None] < lengths[:, None]
    sources = (begins[:, None] + places[None]).clamp(max=ids.shape[1] - 1)
    scored = torch.zeros_like(ids, dtype=torch.bool)
    scored[:, ids.shape[1] - own.shape[1] :] = own
    scored = scored.gather(1, sources) & inside
    ids = ids.gather(1, sources) * inside
    return Packed(ids, scored, shared_opening(ids, scored))


def shared_opening(ids: torch.Tensor, scored: torch.Tensor) -> int:
    """How many first tokens all rows have in common, short of the first that is scored.

    Args:
        ids: token ids, shape (rows, width).
        scored: which tokens are to be scored, same shape.

    Returns:
        0 for one row, for which there is nothing to share.
    """
    if len(ids) == 1:
        return 0
    # The token before the first scored one predicts it, so it belongs to the rest.
    firsts = torch.where(scored.any(dim=1), scored.int().argmax(dim=1), ids.shape[1])
    limit = max(0, int(firsts.min()) - 1)
    same = (ids[:, :limit] == ids[:1, :limit]).all(dim=0)
    return limit if bool(same.all()) else int(same.int().argmin())
