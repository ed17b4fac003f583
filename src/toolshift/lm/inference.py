"""A model ready to reply: loaded with its adapter, what ends its replies, and its decoder."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from toolshift.lm.checkpoint import check_base
from toolshift.lm.decode import Decoder, Generator
from toolshift.lm.device import device
from toolshift.lm.dtype import computes_in
from toolshift.lm.weights import load_weights, quiet


def load_model(directory: Path, dtype: str = "bfloat16", adapter: str | Path | None = None) -> Any:
    """Loads a transformers model for inference, on the device of `toolshift.lm.device`.

    An adapter is merged into the weights in float32, before they are rounded to `dtype`. On a
    machine that only emulates this type the rounded weights are float32 again.
    """
    place = device()
    model = load_weights(directory, torch.float32 if adapter else getattr(torch, dtype))
    if adapter:
        from peft import PeftModel  # noqa: PLC0415 - heavy, and an extra

        check_base(Path(adapter), directory)
        with quiet():
            model = PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
    return model.to(place, getattr(torch, dtype)).to(computes_in(dtype)).eval()


def stop_tokens(tokenizer: Any, model: Any) -> list[int]:
    """The tokens that end a reply: the model's and the tokenizer's."""
    configured = model.generation_config.eos_token_id
    stop = configured if isinstance(configured, list) else [configured]
    return sorted({token for token in (*stop, tokenizer.eos_token_id) if token is not None})


def decoder_of(model: Any, stop: Sequence[int], memory_tokens: int | None) -> Decoder | Generator:
    """What completes prompts: with shared prefixes where the model allows it."""
    if Decoder.fits(model):
        return Decoder(model, stop, memory_tokens)
    return Generator(model, stop)


def use_threads(number: int) -> None:
    """Sets how many threads torch computes with; 0 leaves its own choice."""
    if number:
        torch.set_num_threads(number)


def give_back_memory() -> None:
    """Returns to the system what is freed and still held: by cycles, and by the heap of glibc.

    After many tensors of different sizes glibc keeps gigabytes that nothing uses; see
    `man malloc_trim`. On other systems only cycles are collected.
    """
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)
