"""What the training code does to fixed conversations, so that a change of it is noticed.

Two short conversations are written out and tokenized as in a run, and go through the loss of SFT or
the log-probabilities of GRPO, forward and back, on a tiny model with random weights. Moving or
rewording the code changes nothing here; another token, mask, loss or gradient does. Not covered:
the optimizer, the order of rows and GRPO's advantages, which are the settings' and the libraries'.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec
import torch

from toolshift.lm.dtype import computes_in
from toolshift.train.batches import Encoder, collate, encode_rows
from toolshift.train.grpo_settings import GrpoSettings
from toolshift.train.logprobs import add_scores
from toolshift.train.loss import add_loss
from toolshift.train.model import Base, find_base, load
from toolshift.train.settings import TrainSettings, scratch_of

LIBRARIES = ("torch", "transformers", "trl", "peft", "accelerate")
DIGITS = 3
"""Of figures that processors round otherwise in the seventh digit."""
_TOOL = {
    "name": "find_place",
    "description": "Find a place.",
    "parameters": {
        "properties": {
            "name": {"type": "string", "description": "Its name as people say it."},
            "city": {"type": "string", "enum": ["Lyon", "Rio"]},
            "n": {"type": "integer"},
        },
        "required": ["name"],
    },
}


def fingerprint(settings: TrainSettings, base: Base) -> dict[str, Any]:
    """What decides a training run beside its data, its settings and the weights it starts from."""
    encoder = Encoder(base.tokenizer, base.template, settings.layout, base.tool_role)
    examples = encode_rows([_row("Quiet Fox", 0), _row("Villa Umbra", 1)], encoder)
    value, gradient = _on_tiny_model(settings, collate(examples))
    return {
        "tokens": [each.tokens.tolist() for each in examples],
        "weights": [each.weights.tolist() for each in examples],
        "value": value,
        "gradient": gradient,
        "computes_in": str(computes_in(settings.precision)),
        "versions": {name: _version(name) for name in LIBRARIES},
    }


def _row(place: str, weight: int) -> dict[str, Any]:
    """A conversation in which the first call of the assistant may carry no weight."""
    call = {"name": "find_place", "arguments": f'{{"name":"{place}","n":2}}'}
    end = {"name": "finish", "arguments": '{"answer":"PL-1"}'}
    return {
        "messages": [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": f"Where is {place}?"},
            {"role": "assistant", "tool_calls": [{"function": call}], "weight": weight},
            {"role": "tool", "content": '{"id":"PL-1"}'},
            {"role": "assistant", "tool_calls": [{"function": end}], "weight": 1},
        ],
        "tools": [_TOOL],
    }


def _on_tiny_model(settings: TrainSettings, batch: dict[str, Any]) -> tuple[str, str]:
    """The loss, or the mean log-probability, and the norm of its gradient, as text."""
    tiny = msgspec.structs.replace(
        settings,
        model=scratch_of(settings.model),
        adapter="",
        precision="float32",
        checkpointing=False,
        seed=0,
    )
    with torch.random.fork_rng(devices=[]):
        model = load(tiny, find_base(tiny))
    inner = model if settings.full else model.get_base_model()
    if isinstance(settings, GrpoSettings):
        add_scores(inner, settings.temperature, settings.share)
        logps, _ = model(
            input_ids=batch["input_ids"], scored=batch["weights"] != 0, shared=batch["shared"]
        )
        value = -logps.mean()
    else:
        add_loss(inner, settings.share)
        ids, weights = batch["input_ids"], batch["weights"]
        value = model(input_ids=ids, weights=weights, shared=batch["shared"])
    value.backward()
    squares = [each.grad.square().sum() for each in model.parameters() if each.grad is not None]
    norm = float(torch.stack(squares).sum().sqrt())
    return f"{value.item():.{DIGITS}g}", f"{norm:.{DIGITS}g}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
