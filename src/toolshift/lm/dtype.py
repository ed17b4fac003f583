"""The type that a model computes with on this machine, which need not be that of its weights."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from toolshift.lm.device import device

if TYPE_CHECKING:
    import torch


def computes_in(precision: str) -> torch.dtype:
    """The torch type to compute with, for weights that are rounded to `precision`.

    A processor without instructions for bfloat16 emulates them, one number at a time, and reads a
    prompt ten times slower than in float32 (`benchmarks/prefill_speed.py`). There the same rounded
    weights are held and multiplied as float32. Replies differ by no more than the rounding of what
    lies between the layers, which can turn a choice between two tokens that are nearly as likely.
    """
    import torch  # noqa: PLC0415 - heavy, and an extra

    emulated = precision == "bfloat16" and not _has_bfloat16()
    return torch.float32 if emulated else getattr(torch, precision)


@lru_cache(maxsize=1)
def _has_bfloat16() -> bool:
    """Whether torch multiplies matrices of bfloat16 here by instructions made for it."""
    import torch  # noqa: PLC0415 - heavy, and an extra

    if device() == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    try:  # what torch itself asks before it hands a product to oneDNN
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):  # torch was built without oneDNN
        return False
