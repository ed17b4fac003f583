"""A live torch model as what completes prompts: sampled, batched, its keys and values kept.

The model that is trained and the one that speaks are two: the speaking copy has the adapter merged
into weights of its own type (bf16 by default), decodes as `toolshift.lm.decode` does, and is
brought up to date after each step. `toolshift run` merges the saved adapter, which is rounded to
that type before, so there its weights differ by such roundings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from toolshift.core.errors import UsageError
from toolshift.lm.decode import Choose, Decoder
from toolshift.lm.dtype import computes_in
from toolshift.train.rollout import Said


class Sampler(Decoder):
    """A `Decoder` that samples, and says how likely each token was.

    The draws of a prompt are made beforehand from its own seed, so that no other one, nor how long
    another one goes on, has a part in what is sampled. Nor have guesses: at each place the token is
    drawn as it would be without them, and a guess is kept where it is what is drawn, which is as
    likely as the model finds it. Prompts that are alike are read once, and part where they draw
    different tokens.
    """

    def __init__(self, model: Any, stop: Sequence[int], memory_tokens: int | None = None) -> None:
        # A GPU takes as long for a step of few rows, and a branch would move what graphs write to.
        self.guesses = self.merges = model.device.type == "cpu"
        super().__init__(model, stop, memory_tokens)

    def say(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        limit: int,
        temperature: float,
    ) -> list[Said]:
        """Completes each prompt; see `toolshift.train.rollout.Backend`."""
        self._temperature = temperature
        self._draws = torch.stack([_draws(seed, limit) for seed in seeds])
        self._said: list[tuple[list[int], list[float]]] = [([], []) for _ in prompts]
        self.complete(prompts, limit)
        return [Said(tokens, logprobs, tokens[-1] in self.stop) for tokens, logprobs in self._said]

    def _chooser(self, rows: list[Any], found: torch.Tensor) -> Choose:
        at = [number for number, row in enumerate(rows) for _ in row.members]
        members = [member for row in rows for member in row.members]
        places = [len(rows[number].made) for number in at]
        first = dict(zip(members, self._drawn(found[:, 0], at, members, places), strict=True))

        def choose(number: int, place: int, some: list[int]) -> dict[int, list[int]]:
            if place:
                where = [len(rows[number].made) + place] * len(some)
                tokens = self._drawn(found[number, place, None], [0] * len(some), some, where)
            else:
                tokens = [first[member] for member in some]
            said: dict[int, list[int]] = {}
            for token, member in zip(tokens, some, strict=True):
                said.setdefault(token, []).append(member)
            return said

        return choose

    def _drawn(
        self, logits: torch.Tensor, at: list[int], members: list[int], places: list[int]
    ) -> list[int]:
        """The token that each member draws from the row of logits `at` its own, and notes it."""
        logprobs = (logits / (self._temperature or 1.0)).log_softmax(dim=-1)
        own = torch.tensor(at, device=logits.device)
        if self._temperature:
            drawn = self._draws[members, places].to(logits.device)
            # Doubles: a float's sum over 49,000 probabilities is off by more than the rarest.
            mass = logprobs.double().exp().cumsum(dim=-1)[own]
            found = torch.searchsorted(mass, drawn[:, None] * mass[:, -1:], right=True)
            tokens = found[:, 0].clamp(max=logprobs.shape[1] - 1)
        else:
            tokens = logits.argmax(dim=-1)[own]
        said = tokens.tolist()
        for member, token, logprob in zip(
            members, said, logprobs[own, tokens].tolist(), strict=True
        ):
            self._said[member][0].append(token)
            self._said[member][1].append(logprob)
        return said


def _draws(seed: int, limit: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed % 2**63)
    return torch.rand(limit, generator=generator, dtype=torch.float64, device="cpu")


def speaking_copy(model: Any, precision: str = "bfloat16") -> Any:
    """A model of the same shape for decoding, its weights yet to be copied (`copy_weights`)."""
    config = type(model.config).from_dict(model.config.to_dict())
    copy: Any = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
        config, dtype=computes_in(precision), attn_implementation="sdpa"
    )
    if not Decoder.fits(copy):
        raise UsageError(
            f"{type(copy).__name__} does not have full attention in every layer, which rollouts "
            "here need; choose a model with full attention, or use --vllm"
        )
    copy.generation_config = model.generation_config
    return copy.eval().requires_grad_(False).to(model.device)


def copy_weights(source: Any, target: Any, precision: str = "float32") -> None:
    """Writes a model's weights into another of its shape, LoRA adapters merged."""
    base = source.get_base_model() if hasattr(source, "get_base_model") else source
    modules = dict(base.named_modules())
    with torch.no_grad():
        for name, weight in target.named_parameters():
            owner, _, leaf = name.rpartition(".")
            module = modules[owner]
            inner = getattr(module, "base_layer", module)
            value = getattr(inner, leaf)
            if leaf == "weight" and inner is not module:
                value = value.float() + sum(
                    module.get_delta_weight(each).float() for each in module.active_adapters
                )
            weight.copy_(value.to(getattr(torch, precision)))


class PolicySampler(Sampler):
    """The speaking copy of a model in training.

    Args:
        model: the model that is trained, with or without LoRA.
        precision: of the copy's weights.
        stop: the tokens that end a reply.
        memory_tokens: positions kept between turns.
    """

    def __init__(
        self, model: Any, precision: str, stop: Sequence[int], memory_tokens: int | None = None
    ) -> None:
        super().__init__(speaking_copy(model, precision), stop, memory_tokens)
        self.precision = precision
        self.refresh(model)

    def refresh(self, model: Any) -> None:
        """Takes over the model's weights as they are now, and drops the keys of the old ones."""
        copy_weights(model, self.model, self.precision)
        self.forget(keep_room=True)


class VllmVoice:
    """vLLM as what speaks, on the same devices as the training; TRL brings its weights up to date.

    It has never been run by us. Prompts are extended token by token, so vLLM's own
    prefix cache does what `Decoder` does here. Sampling follows vLLM's random numbers instead of
    our seeds, so a resumed run is not the same run.

    Args:
        generation: the trainer's `vllm_generation`, in colocated mode.
        stop: the tokens that end a reply.
    """

    def __init__(self, generation: Any, stop: Sequence[int]) -> None:
        self.generation, self.stop = generation, frozenset(stop)

    def say(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        limit: int,
        temperature: float,
    ) -> list[Said]:
        """Completes each prompt; see `toolshift.train.rollout.Backend`."""
        self.generation.temperature, self.generation.max_completion_length = temperature, limit
        _, made, likely, _ = self.generation.generate(
            [list(prompt) for prompt in prompts], None, num_generations=1
        )
        return [
            Said(list(tokens), [each[0] for each in logprobs], tokens[-1] in self.stop)
            for tokens, logprobs in zip(made, likely, strict=True)
        ]
