"""Decoding in batches that never computes the same prefix twice.

The turns of an episode extend one another, and scenes share their system message with its tools.
So the keys and values of sequences stay in slots (`toolshift.lm.slots`), looked up by tokens: a
conversation that goes on is extended in place, one that begins like another copies what both have.
Nothing needs to say which turn belongs to which episode. Where few rows are left in a batch, tokens
are guessed from what was read (`toolshift.lm.guesses`), and those are kept that the model chooses.
Prompts that are alike are one row until something else is said after them, where tokens are sampled
(`toolshift.train.generation`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AttentionInterface
from transformers.cache_utils import Cache, DynamicLayer

from toolshift.lm.attention import Pages, Step, grouped_attention
from toolshift.lm.device import SIZES, Sizes, fills_a_gpu
from toolshift.lm.graphs import Graphs
from toolshift.lm.guesses import CONTEXTS, Guesser
from toolshift.lm.slots import Slots, Tokens, common_prefix

SHARE_FROM = 64
"""Common prefixes of at least this many tokens are computed on their own, once for all."""
MAX_GUESSES = 8
"""Tokens that are guessed for one row, at most."""
MAX_SAID = 50_000
"""Tokens of earlier replies that guesses are looked up in."""
SLIDING = ("gemma3_text", "mistral")
"""Architectures of sliding windows whose layers tell the attention how wide theirs is."""


class Constraint(Protocol):
    """What may follow in one reply; see `toolshift.lm.grammar`."""

    def allowed(self) -> NDArray[np.bool_]:
        """One boolean a token of the vocabulary."""
        ...

    def accept(self, token: int) -> None:
        """Moves on by the token that was chosen."""
        ...


class _Layer(DynamicLayer):  # type: ignore[no-untyped-call]
    """One layer of the store: new keys and values are written in place, and nothing is copied."""

    def __init__(self, pages: Pages) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pages = pages
        self.is_initialized = True

    def update(  # type: ignore[override]
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Pages, Pages]:
        self.pages.write(key_states, value_states)
        return self.pages, self.pages

    def get_seq_length(self) -> int:
        return self.pages.step.end


@dataclass
class _Row:
    """One sequence on its way through a batch; of the first `length` positions keys are known.

    Its members are the prompts of the batch that it completes: those that are alike, as long as the
    same was said after them.
    """

    members: list[int]
    tokens: Tokens
    slot: int
    length: int
    constraint: Constraint | None
    made: list[int]
    guesser: Guesser | None = None

    @property
    def missing(self) -> int:
        return len(self.tokens) - self.length


class _Branch(NamedTuple):
    """How a row goes on for some of its members: what they said, from keys of so many positions."""

    known: int
    said: list[int]
    members: list[int]


Choose = Callable[[int, int, list[int]], dict[int, list[int]]]
"""Which token each member of a row says, by the row's number and the place in its step."""


class Decoder:
    """Completes token sequences greedily with one model.

    Args:
        model: a transformers causal language model.
        stop: the tokens that end a reply.
        memory_tokens: how many positions to remember between calls; 0 computes everything anew,
            None for what suits the device.
    """

    guesses = True
    """Whether a step may compute more than one token of a row."""
    merges = True
    """Whether prompts that are alike are one row."""

    def __init__(self, model: Any, stop: Sequence[int], memory_tokens: int | None = None) -> None:
        config = model.config.get_text_config()
        AttentionInterface.register("grouped", grouped_attention)
        model.set_attn_implementation("grouped")
        head = model.get_output_embeddings()
        if _packed not in head._forward_pre_hooks.values():  # of an earlier decoder
            head.register_forward_pre_hook(_packed)
        self.model = model
        self.stop = frozenset(stop)
        self.sizes: Sizes = SIZES.get(model.device.type, SIZES["cpu"])
        if memory_tokens is None:
            memory_tokens = self.sizes.memory
        self._remember = memory_tokens > 0
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        like = torch.empty(0, dtype=_kept_in(model), device=model.device)
        self.graphs: Graphs | None = None
        if model.device.type == "cuda" and not fills_a_gpu(model):
            most = self.sizes.batch + (self.sizes.step if self.guesses else 0)
            self.graphs = Graphs(model.device, head.weight.shape[0], most)
        shape, slots = (config.num_hidden_layers, heads, size), self.sizes.slots
        self.memory = Slots(*shape, like, memory_tokens, slots if self.graphs else 1)
        self._said_before = Guesser([])
        self.prefilled = 0
        """Prompt tokens that were computed, not reused."""
        self.steps = 0
        """Forward passes that were made to decode."""

    @staticmethod
    def fits(model: Any) -> bool:
        """Whether its layers attend to all that came before, or to a window of it, and plainly."""
        config = model.config.get_text_config()
        kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
        slides = getattr(config, "sliding_window", None) and "layer_types" not in config
        slides = slides or "sliding_attention" in kinds or getattr(config, "use_sliding_window", 0)
        odd = ("attn_logit_softcapping", "use_bidirectional_attention")
        plain = not any(getattr(config, name, None) for name in odd)
        plain = plain and (not slides or config.model_type in SLIDING)
        positions = "position_ids" in signature(model.forward).parameters
        known = kinds <= {"full_attention", "sliding_attention"}
        return plain and known and positions and config._attn_implementation == "sdpa"

    def complete(
        self,
        prompts: Sequence[Sequence[int]],
        limit: int,
        constraints: Sequence[Constraint] | None = None,
    ) -> list[list[int]]:
        """Completes each prompt, of which none is empty, without its stop token.

        There is one constraint a prompt; they are used up.
        """
        sequences = [np.asarray(prompt, dtype=np.int32) for prompt in prompts]
        self._made: list[list[int]] = [[] for _ in sequences]
        alike: dict[object, list[int]] = {}
        for index, tokens in enumerate(sequences):
            merged = self.merges and not constraints
            alike.setdefault(tokens.tobytes() if merged else index, []).append(index)
        with torch.inference_mode():
            if self._remember:
                for tokens in sequences:  # what these stand on outlives what they share
                    self.memory.longest(tokens)
                self._learn_shared(sequences)
            rows = self._rows(sequences, limit, list(alike.values()))
            for row in rows:
                row.constraint = constraints[row.members[0]] if constraints else None
            self._run(rows, limit)
        self.memory.shrink()
        return self._made

    def forget(self, keep_room: bool = False) -> None:
        """Drops all keys and values that are kept between calls, and gives the memory back.

        `keep_room` keeps the memory where graphs read and write it, for those that come next.
        """
        self._said_before = Guesser([])  # or what is computed would depend on what was before
        keep_room = keep_room and self.graphs is not None and self.graphs.works
        self.memory.forget(keep_room)
        if self.graphs is not None and not keep_room:
            self.graphs.drop()

    def _rows(self, sequences: list[Tokens], limit: int, alike: list[list[int]]) -> list[_Row]:
        """The rows of a batch, those first of which least is missing."""
        some = [sequences[members[0]] for members in alike]
        places = self.memory.place(some, limit + MAX_GUESSES, len(sequences) - len(some))
        rows = [
            _Row(members, tokens, place.slot, place.known, None, [])
            for members, tokens, place in zip(alike, some, places, strict=True)
        ]
        return sorted(rows, key=lambda row: row.missing)

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
        if missing:
            self._run(self._rows(missing, 0, [[n] for n in range(len(missing))]), 0)

    def _missing(self, tokens: Tokens) -> int:
        return len(tokens) - self.memory.longest(tokens)

    def _run(self, rows: list[_Row], limit: int) -> None:
        """Prefills the rows and makes up to `limit` tokens for each."""
        logits = self._prefill(rows)
        for row in rows:
            self._note(row)
        if limit:
            self._decode(rows, logits, limit)

    def _prefill(self, rows: list[_Row]) -> torch.Tensor:
        """Computes what is not known of each prompt; returns the logits after each."""
        found = []
        begin = 0
        while begin < len(rows):
            end = _similar(rows, begin, self.sizes)
            group = rows[begin:end]
            # All take the group's longest step: the shorter ones compute a few known tokens again,
            # which costs no more than padding and keeps every row without a gap.
            step = max(row.missing for row in group)
            ids = np.stack([row.tokens[len(row.tokens) - step :] for row in group])
            self.prefilled += sum(row.missing for row in group)
            for row in group:
                row.length = len(row.tokens) - step
            found.append(self._forward(group, ids, keep=1)[:, -1])
            for row in group:
                row.length = len(row.tokens)
            begin = end
        return torch.cat(found)

    def _decode(self, rows: list[_Row], logits: torch.Tensor, limit: int) -> None:
        guessing = self.guesses and not any(row.constraint for row in rows)
        drafts: list[list[int]] = [[] for _ in rows]
        found = logits[:, None]
        for row in rows:
            row.length -= 1  # as after a step, of its last token
            row.guesser = Guesser(row.tokens.tolist(), self._said_before) if guessing else None
        while rows := self._follow(rows, drafts, found, limit):
            most = min(MAX_GUESSES, self.sizes.step // len(rows) - 1)
            drafts = [self._draft(row, min(most, limit - len(row.made) - 1)) for row in rows]
            ids = np.zeros((len(rows), 1 + max(map(len, drafts))), dtype=np.int32)
            for place, (row, draft) in enumerate(zip(rows, drafts, strict=True)):
                ids[place, : 1 + len(draft)] = [row.made[-1], *draft]
            found = self._step(rows, ids)
            self.steps += 1

    def _draft(self, row: _Row, most: int) -> list[int]:
        """What a row may say next, before it would stop."""
        draft = row.guesser.guess(most) if row.guesser and most > 0 else []
        ends = [place for place, token in enumerate(draft) if token in self.stop]
        return draft[: ends[0]] if ends else draft

    def _follow(
        self, rows: list[_Row], drafts: list[list[int]], found: torch.Tensor, limit: int
    ) -> list[_Row]:
        """The rows that go on after a step, as far as it was guessed what the model would choose.

        There is one for each thing that members of a row have said.
        """
        choose = self._chooser(rows, found)
        kept = {row.slot for row in rows}
        going = []
        for number, (row, draft) in enumerate(zip(rows, drafts, strict=True)):
            branches: list[_Branch] = []
            here = row.members
            for place in range(len(draft) + 1):
                said = choose(number, place, here)
                here = said.pop(draft[place], []) if place < len(draft) else []
                branches += [
                    _Branch(row.length + 1 + place, [*draft[:place], token], some)
                    for token, some in said.items()
                ]
                if not here:
                    break
            going += self._part(row, branches, limit, kept)
        return going

    def _part(self, row: _Row, branches: list[_Branch], limit: int, kept: set[int]) -> list[_Row]:
        """The branches of a row that go on; the first in its slot, others in copies of it."""
        going: list[_Row] = []
        before, slot, constraint = row.made, row.slot, row.constraint
        for branch in branches:
            stopped = branch.said[-1] in self.stop
            row.made = before + (branch.said[:-1] if stopped else branch.said)
            row.length = branch.known
            if stopped or len(row.made) >= limit:
                for member in branch.members:
                    self._made[member] = row.made
                if not going:
                    self._note(row)
                self._remember_said(row)
                continue
            own = slot if not going else self.memory.fork(slot, branch.known, kept)
            kept.add(own)
            one = _Row(branch.members, row.tokens, own, branch.known, constraint, row.made)
            if row.guesser is not None:
                whole = [*row.tokens.tolist(), *row.made]
                one.guesser = Guesser(whole, self._said_before) if going else row.guesser
            going.append(one)
        if going and going[0].guesser is not None:
            for token in going[0].made[len(before) :]:
                going[0].guesser.add(token)
        return going

    def _remember_said(self, row: _Row) -> None:
        """Remembers a reply, with what it stands after, for the guesses of others."""
        if row.guesser is None or len(self._said_before.tokens) > MAX_SAID:
            return
        for token in (*row.tokens[-max(CONTEXTS) :].tolist(), *row.made):
            self._said_before.add(token)

    def _note(self, row: _Row) -> None:
        """Notes in a row's slot of which tokens it has the keys; the last one was never fed."""
        made = np.asarray(row.made, dtype=np.int32)
        self.memory.slots[row.slot].tokens = np.concatenate([row.tokens, made])[: row.length]

    def _chooser(self, rows: list[_Row], found: torch.Tensor) -> Choose:
        """What says which token comes after each position of a step; logits [rows, width, all]."""
        for place, row in enumerate(rows):
            if row.constraint is not None:
                barred = torch.as_tensor(~row.constraint.allowed(), device=found.device)
                found[place, 0, barred] = -torch.inf
        tokens = found.argmax(dim=-1).tolist()
        for row, chosen in zip(rows, tokens, strict=True):
            if row.constraint is not None:
                row.constraint.accept(chosen[0])
        return lambda number, place, members: {tokens[number][place]: members}

    def _forward(self, rows: list[_Row], ids: NDArray[np.int32], keep: int) -> torch.Tensor:
        """Runs the model over `ids`, which come after what is known of each row."""
        device = self.model.device
        step = Step([r.slot for r in rows], [r.length for r in rows], ids.shape[1], device)
        return self._logits(torch.as_tensor(ids, device=device).long(), step, keep)

    def _step(self, rows: list[_Row], ids: NDArray[np.int32]) -> torch.Tensor:
        """As `_forward`, of all logits; as a graph where there is one."""
        if self.graphs is not None:
            slots, lengths = [row.slot for row in rows], [row.length for row in rows]
            store = self.memory.cells[0]
            found = self.graphs.logits(self._logits, slots, lengths, ids, store)
            if found is not None:
                return found
        return self._forward(rows, ids, keep=ids.shape[1])

    def _logits(self, ids: torch.Tensor, step: Step, keep: int = 0) -> torch.Tensor:
        layers: list[Any] = [_Layer(Pages(each[0], each[1], step)) for each in self.memory.cells]
        logits: torch.Tensor = self.model(
            input_ids=ids,
            # Of the shape that transformers takes as it is; who sees what, the positions say.
            attention_mask=torch.zeros((1, 1, 1, 1), dtype=self.model.dtype, device=ids.device),
            position_ids=step.columns,
            past_key_values=Cache(layers=layers),
            use_cache=True,
            logits_to_keep=keep,
        ).logits
        return logits.float()


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


def _kept_in(model: Any) -> torch.dtype:
    """The type of the keys and values that are kept, which attention is computed in.

    On a CPU float32: products in bfloat16 are compiled anew for every number of keys, and one
    more key comes with every token.
    """
    dtype: torch.dtype = torch.float32 if model.device.type == "cpu" else model.dtype
    return dtype


def _packed(head: object, inputs: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
    """The states that logits are wanted of, as a tensor of their own.

    As a part of a longer one, torch multiplies them row by row, with a copy of the head for each,
    which in bfloat16 takes longer than all layers together.
    """
    return (inputs[0].clone(memory_format=torch.contiguous_format),)


def _similar(rows: list[_Row], begin: int, sizes: Sizes) -> int:
    """The end of the group of rows (sorted by missing tokens) that is prefilled together."""
    shortest = rows[begin].missing
    least = len(rows[begin].tokens)
    end = begin + 1
    while end < len(rows):
        step = rows[end].missing
        least = min(least, len(rows[end].tokens))
        too_long = step > sizes.uneven * shortest + 8 or step > least
        if too_long or step * (end + 1 - begin) > sizes.prefill:
            break
        end += 1
    return end
