"""From rows to batches: tokens, how much each weighs in the loss, and which rows go together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Sampler

from toolshift.core import seed as seeds
from toolshift.core.errors import UsageError
from toolshift.core.message import Turn
from toolshift.lm.prompt import Layout, to_plain_messages

POOL_OF_BATCHES = 16
"""Number of batches in a random pool, inside which rows are sorted by length."""

Weigh = Callable[[Mapping[str, Any], NDArray[np.int32], NDArray[np.float32]], Any]
"""Changes the weights of a row's tokens: gets the row, its tokens and their weights so far, and
returns new weights of the same shape (length,)."""


@dataclass(frozen=True)
class Example:
    """One row as a model reads it.

    Attributes:
        tokens: token ids, shape (length,).
        weights: how much each token weighs in the loss, shape (length,); 0 for context.
        opening: a hash of the system message; rows that share it begin alike.
    """

    tokens: NDArray[np.int32]
    weights: NDArray[np.float32]
    opening: int


class Encoder:
    """Writes rows out as the agent will see them, and marks what the assistant says.

    Args:
        tokenizer: a fast tokenizer.
        template: a chat template with generation markers; renders as the tokenizer's own does.
        layout: how tools are listed.
        tool_role: the role that results are given; see `to_plain_messages`.
        weigh: changes the weights of tokens; see `Weigh`.
    """

    def __init__(
        self,
        tokenizer: Any,
        template: str,
        layout: Layout,
        tool_role: Literal["tool", "user"],
        weigh: Weigh | None = None,
    ) -> None:
        self.tokenizer, self.template, self.layout = tokenizer, template, layout
        self.tool_role, self.weigh = tool_role, weigh
        probe = [{"role": "user", "content": "a"}]
        without = self._render(probe)
        self._cue = self._render(probe, add_generation_prompt=True)[len(without) :]

    def encode(self, row: Mapping[str, Any]) -> Example:
        """Tokenizes one row.

        Args:
            row: with `messages` and `tools`.

        Returns:
            Token ids and weights, both of shape (length,).

        Raises:
            UsageError: where the template does not mark each message of the assistant.
        """
        turn = Turn(row["messages"], row.get("tools") or ())
        plain = to_plain_messages(turn, self.layout, self.tool_role)
        # Without weights: a template may leave out of the mask what weighs 0, as ours does.
        messages = [{"role": each["role"], "content": each["content"]} for each in plain]
        encoded = self.tokenizer.apply_chat_template(
            messages,
            chat_template=self.template,
            tokenize=True,
            return_dict=True,
            return_assistant_tokens_mask=True,
        )
        tokens = np.asarray(encoded["input_ids"], np.int32)
        said = [m.get("weight", 1) for m in row["messages"] if m["role"] == "assistant"]
        mask = self._without_cue(tokens, np.asarray(encoded["assistant_masks"], np.float32))
        weights = _spread(mask, said)
        if self.weigh is not None:
            weights = np.asarray(self.weigh(row, tokens, weights), np.float32)
            if weights.shape != tokens.shape:
                raise UsageError(
                    f"weigh returned {weights.shape} weights for {tokens.shape} tokens"
                )
        weights[0] = 0  # nothing comes before the first token, so nothing predicts it
        return Example(tokens, weights, crc32(messages[0]["content"].encode()))

    def _render(self, messages: list[dict[str, str]], **how: bool) -> list[int]:
        text = self.tokenizer.apply_chat_template(
            messages, chat_template=self.template, tokenize=False, **how
        )
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _without_cue(
        self, tokens: NDArray[np.int32], mask: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """The mask without what asks the model to speak, which some templates mark, or its end."""
        cue = len(self._cue)
        for begin in np.flatnonzero(np.diff(mask, prepend=0) > 0):
            for marked in range(1, cue + 1):
                spoken = tokens[begin + marked - cue : begin + marked]
                if spoken.tolist() == self._cue:
                    mask[begin : begin + marked] = 0
        return mask


def _spread(mask: NDArray[np.float32], said: Sequence[float]) -> NDArray[np.float32]:
    """Gives each run of marked tokens the weight of its message."""
    edges = np.flatnonzero(np.diff(mask, prepend=0, append=0))
    if len(edges) != 2 * len(said):
        raise UsageError(
            f"the chat template marks {len(edges) // 2} spans for {len(said)} messages of the "
            "assistant: put {% generation %} around each of them, its end token included"
        )
    weights = np.zeros_like(mask)
    for begin, end, weight in zip(edges[::2], edges[1::2], said, strict=True):
        weights[begin:end] = weight
    return weights


def encode_rows(
    rows: Sequence[Mapping[str, Any]],
    encoder: Encoder,
    most: int = 0,
    watch: Callable[[int, int], None] | None = None,
) -> list[Example]:
    """Tokenizes rows; leaves out those that teach nothing or are longer than `most` tokens.

    Args:
        rows: with `messages` and `tools`.
        encoder: of the model.
        most: tokens of the longest row that is kept; 0 sets no limit.
        watch: told how many rows are done, and of how many.

    Returns:
        The kept rows, in their order.

    Raises:
        UsageError: where none is left.
    """
    examples = []
    for number, row in enumerate(rows, 1):
        example = encoder.encode(row)
        if example.weights.any() and not 0 < most < len(example.tokens):
            examples.append(example)
        if watch is not None:
            watch(number, len(rows))
    if not examples:
        raise UsageError(
            f"none of the {len(rows)} rows can be used for training: each is longer than {most} "
            "tokens or gives every message of the assistant the weight 0"
        )
    return examples


class Batches(Sampler[int]):
    """The order of the examples: alike in opening and length inside a batch, shuffled outside.

    Rows of one opening fill batches of their own as far as they go; what is left over is mixed.
    The order is the same for the same seed and epoch. Only an epoch's last batch may be smaller.
    """

    def __init__(self, examples: Sequence[Example], batch: int, seed: int) -> None:
        self.examples, self.batch, self.seed, self.epoch = examples, batch, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order; called by the trainer before each pass."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[int]:
        return iter(index for batch in self.batches() for index in batch)

    def batches(self) -> list[list[int]]:
        """The batches of the epoch, as indices of examples."""
        rng, alike = seeds.rng(self.seed, "batches", self.epoch), defaultdict(list)
        for index in rng.sample(range(len(self.examples)), len(self.examples)):
            alike[self.examples[index].opening].append(index)
        whole, rest, paired = [], [], set()
        for opening, group in alike.items():
            end = len(group) - len(group) % self.batch
            whole += self._cut(group[:end], self._length)
            rest += group[end:]
            if len(group) - end > 1:
                paired.add(opening)

        def alone_or_not(index: int) -> tuple[int, int]:
            opening = self.examples[index].opening
            return (opening if opening in paired else -1), self._length(index)

        whole += self._cut(rest, alone_or_not)
        last = [whole.pop()] if len(self.examples) % self.batch else []
        return [*rng.sample(whole, len(whole)), *last]

    def _cut(self, indices: list[int], key: Callable[[int], Any]) -> list[list[int]]:
        """Batches of what stands near to each other in pools that are sorted by a key."""
        pool, cut = self.batch * POOL_OF_BATCHES, []
        for begin in range(0, len(indices), pool):
            near = sorted(indices[begin : begin + pool], key=key)
            cut += [near[i : i + self.batch] for i in range(0, len(near), self.batch)]
        return cut

    def _length(self, index: int) -> int:
        return len(self.examples[index].tokens)


def collate(batch: Sequence[Any]) -> dict[str, Any]:
    """Pads examples on the right.

    Args:
        batch: examples, or mappings that hold one under "example".

    Returns:
        `input_ids` (rows, width), `weights` (rows, width), and `shared`, the number of first
        tokens that all rows have in common and that carry no weight.
    """
    examples = [each if isinstance(each, Example) else each["example"] for each in batch]
    width = max(len(example.tokens) for example in examples)
    ids = np.zeros((len(examples), width), np.int64)
    weights = np.zeros((len(examples), width), np.float32)
    for place, example in enumerate(examples):
        ids[place, : len(example.tokens)] = example.tokens
        weights[place, : len(example.tokens)] = example.weights
    return {
        "input_ids": torch.from_numpy(ids),
        "weights": torch.from_numpy(weights),
        "shared": common_opening(examples),
        "tokens": sum(len(example.tokens) for example in examples),
    }


def common_opening(examples: Sequence[Example]) -> int:
    """How many first tokens the examples share, short of the first that carries weight.

    0 for one example, for which there is nothing to share.
    """
    if len(examples) == 1:
        return 0
    first = examples[0].tokens
    # The token before the first weighted one predicts it, so it belongs to the rest.
    limit = min(int((example.weights != 0).argmax()) for example in examples) - 1
    for example in examples[1:]:
        differs = example.tokens[:limit] != first[:limit]
        limit = int(differs.argmax()) if differs.any() else limit
    return max(limit, 0)


def show_mask(example: Example, tokenizer: Any, marks: tuple[str, str] = ("[[", "]]")) -> str:
    """A row as text, with what carries weight between marks; other weights than 1 are written.

    Args:
        example: the row.
        tokenizer: that made it.
        marks: what stands before and after.

    Returns:
        Text for a terminal.
    """
    edges = np.flatnonzero(np.diff(example.weights, prepend=0, append=0))
    cuts = [
        0,
        *(int(edge) for edge in edges if 0 < edge < len(example.tokens)),
        len(example.tokens),
    ]
    shown = []
    for begin, end in pairwise(cuts):
        text, weight = tokenizer.decode(example.tokens[begin:end]), float(example.weights[begin])
        note = "" if weight in {0, 1} else f"{weight:g}:"
        shown.append(f"{marks[0]}{note}{text}{marks[1]}" if weight else text)
    return "".join(shown)
