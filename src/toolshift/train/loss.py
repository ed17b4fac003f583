"""The loss of a causal language model on weighted tokens, computed only where it is wanted.

Two things save work without changing the result. The head, a product with the whole vocabulary,
is computed only at tokens that carry weight. The opening that the rows of a batch have in common
(one system message, one list of tools) is computed once, and its keys and values are handed to
every row; gradients flow through them. Neither is possible for every model and setting, so both
have a plain path of equal loss.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint
from transformers import AttentionInterface
from transformers.cache_utils import DynamicCache

from toolshift.lm.decode import Decoder
from toolshift.lm.device import fills_a_gpu
from toolshift.train.tree import Tree, tree_attention

MAX_KEPT = 2**25
"""Attention weights of one layer that are kept for the gradient: 67 MB in bf16."""
BLOCK = 128
"""Queries that are taken together on a CPU, so few that their scores stay in a cache."""
ODD_HEADS = ("final_logit_softcapping", "logit_scale", "logits_scaling", "lm_head_multiplier",
              "output_multiplier")  # fmt: skip


def worth_sharing(model: Any) -> bool:
    """Whether what rows have in common is computed sooner once, in a pass of its own.

    On a GPU a pass of a small model takes as long as its kernels take to be launched, so two take
    longer than one, whatever they save.

    Args:
        model: a transformers model, on the device that it is trained on.

    Returns:
        True on a CPU, and for a large model.
    """
    return bool(model.device.type == "cpu" or fills_a_gpu(model))


def add_loss(model: Any, share: bool = True) -> None:
    """Teaches a causal language model to return a loss: `model(input_ids, weights=w, shared=n)`.

    The result is the sum over tokens of weight times cross-entropy, in nats; shape (). Rows are
    padded on the right, where causal attention never looks. Without `weights` the model's forward
    is what it was. Patching the forward keeps the loss inside whatever wraps the model later
    (autocast, data parallel, FSDP).

    Args:
        model: a transformers causal language model, below any adapter.
        share: whether the first `shared` tokens of a batch may be computed once.
    """
    forward = model.forward
    direct = not any(getattr(model.config.get_text_config(), name, None) for name in ODD_HEADS)

    def loss_or_forward(
        self: Any, *args: Any, weights: Any = None, shared: int = 0, **kwargs: Any
    ) -> Any:
        if weights is None:
            return forward(*args, **kwargs)
        ids = kwargs["input_ids"]
        if not direct:
            return weighted(forward(input_ids=ids, use_cache=False).logits[:, :-1], ids, weights)
        return _direct(self, ids, weights, shared if share else 0)

    model.forward = MethodType(loss_or_forward, model)


def _direct(model: Any, ids: torch.Tensor, weights: torch.Tensor, shared: int) -> torch.Tensor:
    """The loss through the backbone, and the head at weighted tokens only."""
    hidden, ids, weights = states(model, ids, shared), ids[:, shared:], weights[:, shared:]
    carries = weights[:, 1:] != 0
    logits = model.get_output_embeddings()(hidden[:, :-1][carries])
    return _sum(logits, ids[:, 1:][carries], weights[:, 1:][carries])


def states(model: Any, ids: torch.Tensor, shared: int) -> torch.Tensor:
    """The last hidden states of the tokens after the first `shared`, which all rows have in common.

    Args:
        model: a transformers causal language model.
        ids: token ids, shape (rows, length).
        shared: how many first tokens are read once for all rows; 0 shares no token.

    Returns:
        Shape (rows, length - shared, width).
    """
    backbone, cache = model.base_model, None
    if shared:
        cache = DynamicCache(config=model.config)
        backbone(input_ids=ids[:1, :shared], past_key_values=cache, use_cache=True)
        cache.batch_repeat_interleave(len(ids))
    hidden: torch.Tensor = backbone(
        input_ids=ids[:, shared:], past_key_values=cache, use_cache=cache is not None
    )[0]
    return hidden


def tree_states(model: Any, tree: Tree) -> torch.Tensor:
    """The last hidden states of the nodes of a tree, of a model with `plain_attention`.

    Args:
        model: a transformers causal language model.
        tree: of the tokens.

    Returns:
        Shape (nodes, width).
    """
    device = model.device
    hidden: torch.Tensor = model.base_model(
        input_ids=tree.ids[None].to(device),
        # Of the shape that transformers takes as it is; who sees whom, the tree says.
        attention_mask=torch.zeros((1, 1, 1, 1), dtype=model.dtype, device=device),
        position_ids=tree.depth[None].to(device),
        use_cache=False,
        tree=tree,
    )[0]
    return hidden[0]


def weighted(logits: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The same loss from the logits of all tokens but the last.

    Args:
        logits: of each token's successor, shape (rows, length - 1, vocabulary).
        ids: shape (rows, length).
        weights: same shape.

    Returns:
        A scalar, in nats, not yet divided.
    """
    carries = weights[:, 1:] != 0
    return _sum(logits[carries], ids[:, 1:][carries], weights[:, 1:][carries])


def _sum(logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return (cross_entropy(logits.float(), targets, reduction="none") * weights).sum()


def use_plain_attention(model: Any) -> None:
    """Switches a model to `plain_attention`."""
    AttentionInterface.register("plain", plain_attention)
    model.set_attn_implementation("plain")


def plain_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scaling: float = 1.0,
    tree: Tree | None = None,
    **_: object,
) -> tuple[torch.Tensor, None]:
    """Causal attention as two matrix products: on a CPU faster, with its gradient, than fused.

    The queries stand at the end of the keys. Where the weights of a layer are too many to be kept
    for the gradient, they are computed again: of four rows of 2,000 tokens, SmolLM2 has 8.6 GB.
    On a CPU the queries are taken in blocks, of which none reads the keys that come after it.
    Nodes of a tree attend to their ancestors (`toolshift.train.tree`).
    """
    if tree is not None:
        pairs = query.shape[1] * sum(block.barred.numel() for block in tree.blocks)
        arguments: tuple[Any, ...] = (query, key, value, scaling, tree)
        if pairs > MAX_KEPT and torch.is_grad_enabled():
            return checkpoint(tree_attention, *arguments, use_reentrant=False), None
        return tree_attention(*arguments), None
    pairs = query.shape[:-1].numel() * key.shape[2]
    attend = _attend if query.is_cuda else _in_blocks
    if pairs > MAX_KEPT and torch.is_grad_enabled():
        mixed = checkpoint(attend, query, key, value, scaling, use_reentrant=False)
    else:
        mixed = attend(query, key, value, scaling)
    return mixed, None


def _in_blocks(query: Any, key: Any, value: Any, scaling: float) -> torch.Tensor:
    """Block after block of the queries, each against the keys that it sees."""
    length, before = query.shape[2], key.shape[2] - query.shape[2]
    blocks = []
    for begin in range(0, length, BLOCK):
        end = min(begin + BLOCK, length)
        seen = slice(before + end)
        one = _attend(query[:, :, begin:end], key[:, :, seen], value[:, :, seen], scaling)
        blocks.append(one)
    return torch.cat(blocks, dim=1)


def _attend(query: Any, key: Any, value: Any, scaling: float) -> torch.Tensor:
    """Heads that share keys are folded into the length."""
    batch, heads, length, size = query.shape
    groups, seen = key.shape[1], key.shape[2]
    folded = query.reshape(batch * groups, heads // groups * length, size)
    scores = torch.bmm(folded * scaling, key.reshape(batch * groups, seen, size).transpose(1, 2))
    future = query.new_full((length, seen), -torch.inf).triu(seen - length + 1)
    scores = scores.view(-1, heads // groups, length, seen) + future
    weights = scores.softmax(dim=-1).view(batch * groups, -1, seen)
    mixed = torch.bmm(weights, value.reshape(batch * groups, seen, size))
    return mixed.view(batch, heads, length, size).transpose(1, 2).contiguous()


def attends_plainly(model: Any) -> bool:
    """Whether every layer attends to all that came before, in the plain way."""
    config = model.config.get_text_config()
    slides = getattr(config, "sliding_window", None) and "layer_types" not in config
    windows = "sliding_attention" in (getattr(config, "layer_types", None) or ())
    return Decoder.fits(model) and not (slides or windows)
