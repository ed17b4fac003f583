"""A language model on this machine as an agent: batched, cached, optionally constrained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from toolshift.core.errors import UsageError
from toolshift.core.message import Reply, Turn, Usage
from toolshift.lm.bases import BASES, SMOL, base_directory, require_local, weights_hash
from toolshift.lm.checkpoint import load_tokenizer, tool_role, trained_layout
from toolshift.lm.device import SIZES, device
from toolshift.lm.grammar import CallConstraint, Vocabulary
from toolshift.lm.inference import decoder_of, load_model, stop_tokens
from toolshift.lm.parse_reply import has_marked_call, parse_reply
from toolshift.lm.prompt import LAYOUTS, Layout, to_plain_messages

Decoding = Literal["free", "constrained"]


class LocalAgent:
    """A transformers causal language model, decoded greedily.

    Tools and calls are plain text (`toolshift.lm.prompt`). The keys and values of prompts are
    kept between turns, so an episode is never read twice; see `toolshift.lm.decode`.

    Args:
        model: a transformers model directory with a chat template, or the name of a
            base model (`toolshift.lm.bases`), such as "smol" for the bundled one.
        adapter: a LoRA adapter directory, merged into the weights at load.
        layout: how tools are listed; by default as the adapter or the model was trained, where it
            says so, or else "description-first".
        decoding: "constrained" admits only valid calls of the tools on offer.
        max_new_tokens: the most tokens in one reply.
        batch: how many turns are decoded together; a study steps as many episodes at once. 0 for
            what suits the device: 32 on a CPU, 128 on a GPU.
        name: the agent's name in results; made from model and adapter where not given.
        dtype: the type that the weights are rounded to, "bfloat16" or "float32"; computed with
            where the machine can (`toolshift.lm.dtype`).
        memory_tokens: positions kept between turns (for "smol" 46 KB each on a CPU); 0 keeps
            none, None what suits the device.

    Attributes:
        name: the agent's name in results.
        adapter: its adapter's directory; None without one.
        decoding: the label of results made under a constraint.
        batch: how many turns are decoded together.

    Raises:
        UsageError: where a package, the model or its chat template is missing, the adapter was
            trained on another base, or an argument is not one of its choices.
    """

    def __init__(
        self,
        model: str | Path = SMOL,
        adapter: str | Path | None = None,
        layout: Layout | None = None,
        decoding: Decoding = "free",
        max_new_tokens: int = 96,
        batch: int = 0,
        name: str = "",
        *,
        dtype: Literal["bfloat16", "float32"] = "bfloat16",
        memory_tokens: int | None = None,
    ) -> None:
        if layout not in (None, *LAYOUTS):
            raise UsageError(f"unknown layout {layout!r}; choose one of {', '.join(LAYOUTS)}")
        if decoding not in ("free", "constrained"):
            raise UsageError(f"unknown decoding {decoding!r}; choose 'free' or 'constrained'")
        if batch < 0:
            raise UsageError(f"batch must be 0 (chosen for the device) or more, not {batch}")
        require_local()
        self.decoding, self.batch = decoding, batch or SIZES[device()].batch
        self.max_new_tokens = max_new_tokens
        base = str(model) if str(model) in BASES else ""
        parts = [base or Path(model).name, Path(adapter).name if adapter else ""]
        self.name = name or "+".join(filter(None, parts))
        directory = base_directory(base) if base else _existing(Path(model))
        self.adapter = Path(adapter) if adapter else None
        self.layout: Layout = layout or trained_layout(self.adapter or directory) or LAYOUTS[0]
        self._directory, self._dtype = directory, dtype
        self._tokenizer = load_tokenizer(directory, base)
        self._model = load_model(directory, dtype, adapter)
        self._tool_role = tool_role(self._tokenizer)
        stop = stop_tokens(self._tokenizer, self._model)
        self.decoder = decoder_of(self._model, stop, memory_tokens)
        self._vocabulary = self._constrainer() if decoding == "constrained" else None

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the replies, by hashes instead of private paths: for a manifest."""
        return {
            "model": self._directory.resolve().name,
            "weights_sha256": _weights_hash(self._directory),
            "dtype": self._dtype,
            **self._computed,
            "layout": self.layout,
            "decoding": self.decoding,
            "max_new_tokens": self.max_new_tokens,
        }

    @property
    def _computed(self) -> dict[str, str]:
        """The type that is computed with, where it is not that of the weights."""
        used = str(self._model.dtype).removeprefix("torch.")
        return {} if used == self._dtype else {"computed_in": used}

    def reply(self, turn: Turn) -> Reply:
        """Answers one turn."""
        return self.reply_batch([turn])[0]

    def reply_batch(self, turns: Sequence[Turn]) -> list[Reply]:
        """Answers many turns, in their order; `batch` of them are decoded together."""
        prompts = [self._encode(turn) for turn in turns]
        order = sorted(range(len(turns)), key=lambda index: len(prompts[index]))
        replies: dict[int, Reply] = {}
        for begin in range(0, len(order), self.batch):
            chunk = order[begin : begin + self.batch]
            constraints: list[CallConstraint] | None = None
            if self._vocabulary is not None:
                constraints = [self._vocabulary.constrain(turns[index].tools) for index in chunk]
            asked = [prompts[index] for index in chunk]
            made = self.decoder.complete(asked, self.max_new_tokens, constraints)
            for place, index in enumerate(chunk):
                text = self._tokenizer.decode(made[place], skip_special_tokens=True)
                if constraints is not None and len(made[place]) == self.max_new_tokens:
                    text += constraints[place].ending()
                usage = Usage(len(prompts[index]), len(made[place]))
                read = self._read(text, made[place], turns[index])
                replies[index] = Reply(text=read.text, calls=read.calls, usage=usage)
        return [replies[index] for index in range(len(turns))]

    def _read(self, text: str, tokens: Sequence[int], turn: Turn) -> Reply:
        """The reply that a text is; marks of templates are special tokens, which it leaves out."""
        read = parse_reply(text, self.layout, turn.tools)
        if read.calls:
            return read
        whole = self._tokenizer.decode(tokens, skip_special_tokens=False)
        marked = has_marked_call(whole)
        return parse_reply(whole, self.layout, turn.tools) if marked else read

    def release(self) -> None:
        """Frees what was kept between turns: other models may follow in the same process."""
        self.decoder.forget()

    def _encode(self, turn: Turn) -> list[int]:
        messages = to_plain_messages(turn, self.layout, self._tool_role)
        text = self._tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False
        )
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _constrainer(self) -> Vocabulary:
        size = self._model.get_output_embeddings().weight.shape[0]
        return Vocabulary(self._tokenizer, size, self.layout)


def _existing(directory: Path) -> Path:
    if not (directory / "config.json").exists():
        raise UsageError(
            f"no model in {directory}: config.json is missing; give a model directory, or one of: "
            f"{', '.join(BASES)}"
        )
    return directory


def _weights_hash(directory: Path) -> str:
    try:
        return weights_hash(directory)
    except UsageError:  # older formats of weights can be run, but are not hashed
        return ""
