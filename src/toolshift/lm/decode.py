"""Greedy decoding in batches that never computes the same prefix twice.

The turns of an episode extend one another, and scenes share their system message with its tools.
So the keys and values of every sequence seen are kept, each as the tail by which it extends a
known one, and looked up by tokens: the longest common prefix is reused. Nothing needs to say which
turn belongs to which episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AttentionInterface
from transformers.cache_utils import Cache, DynamicLayer

from toolshift.lm.attention import grouped_attention
from toolshift.lm.prefix_cache import Known, PrefixMemory, Tokens, common_prefix

SHARE_FROM = 64
"""Common prefixes of at least this many tokens are computed on their own, once for all."""
_PREFILL_TOKENS = 6144
"""Tokens in one forward pass of a prefill, which bounds its memory."""


class Constraint(Protocol):
    """What may follow in one reply; see `toolshift.lm.grammar`."""

    def allowed(self) -> NDArray[np.bool_]:
        """One boolean a token of the vocabulary."""
        ...

    def accept(self, token: int) -> None:
        """Moves on by the token that was chosen."""
        ...


class _Layer(DynamicLayer):  # type: ignore[no-untyped-call]
    """One layer of the arena: new keys and values are written in place, before `end`.

    All columns are handed to the attention, also the empty ones after `end`: a slice would not be
    contiguous, and copying it costs more than the masked columns do.
    """

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, end: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.all_keys, self.all_values, self.end = keys, values, end
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        begin = self.end - key_states.shape[-2]
        self.all_keys[:, :, begin : self.end] = key_states
        self.all_values[:, :, begin : self.end] = value_states
        return self.all_keys, self.all_values

    def get_seq_length(self) -> int:
        return self.end


@dataclass
class _Row:
    """One sequence on its way through a batch; it ends at the batch's last column."""

    index: int
    tokens: Tokens
    known: Known | None
    reused: int
    constraint: Constraint | None
    made: list[int]


class Decoder:
    """Completes token sequences greedily with one model.

    Args:
        model: a transformers causal language model.
        stop: the tokens that end a reply.
        memory_tokens: how many positions to remember between calls; 0 computes everything anew.
    """

    def __init__(self, model: Any, stop: Sequence[int], memory_tokens: int = 80_000) -> None:
        config = model.config.get_text_config()
        AttentionInterface.register("grouped", grouped_attention)
        model.set_attn_implementation("grouped")
        self.model = model
        self.stop = frozenset(stop)
        self.memory = PrefixMemory(memory_tokens)
        self._remember = memory_tokens > 0
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self._shape = (config.num_hidden_layers, 2, heads, size)
        self.prefilled = 0
        """Prompt tokens that were computed, not reused."""

    @staticmethod
    def fits(model: Any) -> bool:
        """Whether every layer of the model attends to all that came before, in the plain way."""
        config = model.config.get_text_config()
        kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
        plain = kinds == {"full_attention"} and not getattr(config, "use_sliding_window", False)
        sliding = getattr(config, "sliding_window", None) and "layer_types" not in config
        positions = "position_ids" in signature(model.forward).parameters
        return plain and not sliding and positions and config._attn_implementation == "sdpa"

    def complete(
        self,
        prompts: Sequence[Sequence[int]],
        limit: int,
        constraints: Sequence[Constraint] | None = None,
    ) -> list[list[int]]:
        """Completes each prompt, without its stop token.

        Args:
            prompts: token ids, none empty.
            limit: the most tokens to make for one prompt.
            constraints: what may follow, one a prompt; they are used up.

        Returns:
            Token ids, one list a prompt, in their order.
        """
        sequences = [np.asarray(prompt, dtype=np.int32) for prompt in prompts]
        with torch.inference_mode():
            if self._remember:
                self._learn_shared(sequences)
            rows = [
                self._row(index, tokens, constraints[index] if constraints else None)
                for index, tokens in enumerate(sequences)
            ]
            rows.sort(key=lambda row: len(row.tokens) - row.reused)
            self._run(rows, limit)
        rows.sort(key=lambda row: row.index)
        return [row.made for row in rows]

    def forget(self) -> None:
        """Drops all keys and values that are kept between calls."""
        self.memory = PrefixMemory(self.memory.max_tokens)

    def _row(self, index: int, tokens: Tokens, constraint: Constraint | None) -> _Row:
        known, length = self.memory.longest(tokens) if self._remember else (None, 0)
        # The last token is always computed: its logits are wanted.
        return _Row(index, tokens, known, min(length, len(tokens) - 1), constraint, [])

    def _learn_shared(self, sequences: list[Tokens]) -> None:
        """Computes the long prefixes that several sequences share and that are not yet known."""
        distinct = {tokens.tobytes(): tokens for tokens in sequences}
        ordered = sorted(distinct.values(), key=lambda tokens: tokens.tolist())
        shared = {}
        for one, other in pairwise(ordered):
            prefix = one[: common_prefix(one, other)]
            if self._missing(prefix) >= SHARE_FROM:
                shared[prefix.tobytes()] = prefix
        if not shared:
            return
        self._learn_shared(list(shared.values()))  # what these share among themselves comes first
        missing = [tokens for tokens in shared.values() if self._missing(tokens) >= SHARE_FROM]
        rows = [self._row(index, tokens, None) for index, tokens in enumerate(missing)]
        rows.sort(key=lambda row: len(row.tokens) - row.reused)
        if rows:
            self._run(rows, 0)

    def _missing(self, tokens: Tokens) -> int:
        return len(tokens) - self.memory.longest(tokens)[1]

    def _run(self, rows: list[_Row], limit: int) -> None:
        """Prefills the rows and makes up to `limit` tokens for each."""
        width = max(len(row.tokens) for row in rows)
        arena = self._arena(len(rows), width + limit)
        for place, row in enumerate(rows):
            if row.known is not None:
                begin = width - len(row.tokens)
                row.known.write(arena[:, :, place, :, begin:], row.reused)
        logits = self._prefill(rows, arena, width)
        if limit:
            self._decode(rows, arena, width, logits, limit)
        elif self._remember:
            for place, row in enumerate(rows):
                self._keep(row, arena[:, :, place], width, width)

    def _tensor(self, values: Any) -> torch.Tensor:
        return torch.as_tensor(values, device=self.model.device)

    def _mask(self, visible: torch.Tensor) -> torch.Tensor:
        """What is added to the scores: nothing where a query may look, else minus infinity."""
        mask = torch.zeros(visible.shape, dtype=self.model.dtype, device=visible.device)
        return mask.masked_fill_(~visible, -torch.inf)[:, None]

    def _arena(self, rows: int, columns: int) -> torch.Tensor:
        layers, two, heads, size = self._shape
        # Zeros, not empty: what is masked still takes part in a product, and NaN * 0 is NaN.
        shape = (layers, two, rows, heads, columns, size)
        return torch.zeros(shape, dtype=self.model.dtype, device=self.model.device)

    def _prefill(self, rows: list[_Row], arena: torch.Tensor, width: int) -> torch.Tensor:
        """Computes what is not known of each prompt; returns the logits after each."""
        found = []
        begin = 0
        while begin < len(rows):
            end = _similar(rows, begin)
            group = rows[begin:end]
            # All take the group's longest step: the shorter ones compute a few known tokens again,
            # which costs no more than padding and keeps every row without a gap.
            step = max(len(row.tokens) - row.reused for row in group)
            ids = np.zeros((len(group), step), dtype=np.int64)
            for place, row in enumerate(group):
                own = row.tokens[-step:]
                ids[place, step - len(own) :] = own
            starts = self._tensor([width - len(row.tokens) for row in group])
            found.append(self._forward(self._tensor(ids), arena[:, :, begin:end], starts, width))
            self.prefilled += sum(len(row.tokens) - row.reused for row in group)
            begin = end
        return torch.cat(found)

    def _decode(
        self, rows: list[_Row], arena: torch.Tensor, width: int, logits: torch.Tensor, limit: int
    ) -> None:
        alive = list(range(len(rows)))  # rows by their place in the arena
        starts = self._tensor([width - len(row.tokens) for row in rows])
        places = [*alive]
        end = width
        while True:
            tokens = self._choose([rows[i] for i in places], logits)
            done = set()
            for place, (i, token) in enumerate(zip(places, tokens.tolist(), strict=True)):
                row = rows[i]
                if i not in alive:
                    continue
                if token not in self.stop:
                    row.made.append(token)
                if token in self.stop or len(row.made) == limit:
                    done.add(i)
                    row.constraint = None
                    if self._remember:
                        self._keep(row, arena[:, :, place], width, end)
            alive = [i for i in alive if i not in done]
            if not alive:
                return
            if len(alive) <= len(places) // 2:
                kept = self._tensor([place for place, i in enumerate(places) if i in alive])
                arena, starts, tokens = arena[:, :, kept], starts[kept], tokens[kept]
                places = [*alive]
            end += 1
            logits = self._forward(tokens[:, None], arena, starts, end)

    def _choose(self, rows: list[_Row], logits: torch.Tensor) -> torch.Tensor:
        for place, row in enumerate(rows):
            if row.constraint is not None:
                logits[place, self._tensor(~row.constraint.allowed())] = -torch.inf
        tokens = logits.argmax(dim=-1)
        for row, token in zip(rows, tokens.tolist(), strict=True):
            if row.constraint is not None:
                row.constraint.accept(token)
        return tokens

    def _keep(self, row: _Row, cells: torch.Tensor, width: int, end: int) -> None:
        """Remembers a row up to column `end`; the last token made was never fed to the model."""
        begin = width - len(row.tokens)
        made = np.asarray(row.made[: end - width], dtype=np.int32)
        tail = cells[..., begin + row.reused : end, :].clone()
        self.memory.add(np.concatenate([row.tokens, made]), row.known, row.reused, tail)

    def _forward(
        self, ids: torch.Tensor, arena: torch.Tensor, starts: torch.Tensor, end: int
    ) -> torch.Tensor:
        """Runs the model over `ids`, which fill the columns before `end`; returns last logits."""
        columns = torch.arange(arena.shape[-2], device=arena.device)
        queries = columns[end - ids.shape[1] : end]
        seen = columns[None, None, :] <= queries[None, :, None]
        # A padded query may see itself, since a row of nothing but masks would give NaN.
        inside = columns[None, None, :] >= torch.minimum(starts[:, None], queries[None])[:, :, None]
        positions = (queries[None] - starts[:, None]).clamp(min=0)
        layers: list[Any] = [_Layer(layer[0], layer[1], end) for layer in arena]
        logits: torch.Tensor = self.model(
            input_ids=ids,
            attention_mask=self._mask(seen & inside),
            position_ids=positions,
            past_key_values=Cache(layers=layers),
            use_cache=True,
            logits_to_keep=1,
        ).logits
        return logits[:, -1].float()


class Generator:
    """Completes token sequences through transformers' own `generate`, and remembers nothing.

    For models whose layers keep more, or less, than all keys and values.
    """

    def __init__(self, model: Any, stop: Sequence[int]) -> None:
        self.model = model
        self.stop = list(stop)
        self.prefilled = 0

    def complete(
        self,
        prompts: Sequence[Sequence[int]],
        limit: int,
        constraints: Sequence[Constraint] | None = None,
    ) -> list[list[int]]:
        """Completes each prompt, as `Decoder.complete` does."""
        width = max(map(len, prompts))
        pad = self.stop[0] if self.stop else 0
        padded = [[pad] * (width - len(prompt)) + list(prompt) for prompt in prompts]
        mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        self.prefilled += sum(map(len, prompts))
        constrained = [_Constrained(constraints, width, self.stop)] if constraints else []
        with torch.inference_mode():
            output = self.model.generate(
                input_ids=torch.tensor(padded, device=self.model.device),
                attention_mask=torch.tensor(mask, device=self.model.device),
                max_new_tokens=limit,
                do_sample=False,
                eos_token_id=self.stop or None,
                pad_token_id=pad,
                logits_processor=constrained,
            )
        made = [self._cut(row) for row in output[:, width:].tolist()]
        for constraint, tokens in zip(constraints or (), made, strict=False):
            if len(tokens) == limit:  # the last token was made after the last question
                constraint.accept(tokens[-1])
        return made

    def forget(self) -> None:
        """Has nothing to drop."""

    def _cut(self, made: list[int]) -> list[int]:
        ends = [place for place, token in enumerate(made) if token in self.stop]
        return made[: ends[0]] if ends else made


class _Constrained:
    """The constraints as a logits processor; it learns of a token when asked for the next."""

    def __init__(self, constraints: Sequence[Constraint], width: int, stop: list[int]) -> None:
        self.constraints, self.width, self.stop = constraints, width, set(stop)

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        for place, constraint in enumerate(self.constraints):
            made = ids[place, self.width :].tolist()
            if self.stop.intersection(made):
                continue
            if made:
                constraint.accept(made[-1])
            barred = torch.from_numpy(~constraint.allowed()).to(scores.device)
            scores[place, barred] = -torch.inf
        return scores


def _similar(rows: list[_Row], begin: int) -> int:
    """The end of the group of rows (sorted by missing tokens) that is prefilled together."""
    shortest = len(rows[begin].tokens) - rows[begin].reused
    end = begin + 1
    while end < len(rows):
        step = len(rows[end].tokens) - rows[end].reused
        if step > 1.3 * shortest + 8 or step * (end + 1 - begin) > _PREFILL_TOKENS:
            break
        end += 1
    return end
