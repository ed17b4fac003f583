"""What models compute on: the GPU where there is one, or what is asked for."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from toolshift.core.errors import UsageError
from toolshift.core.names import unknown

DEVICES = ("cpu", "cuda")
DEVICE = "TOOLSHIFT_DEVICE"
"""The variable of the environment that says which (`--device`); processes that are started have it
too."""


class Sizes(NamedTuple):
    """How much is computed at once.

    A step of a CPU takes as long as what it computes. One of a GPU takes as long as its kernels
    take to be launched, so it should hold as much as there is.

    Attributes:
        batch: turns that are decoded together.
        memory: positions that are kept between turns; for SmolLM2-135M 46 KB each on a CPU, in
            float32, and 23 KB on a GPU, in bfloat16.
        step: tokens of one step of a batch, guesses included; as many cost a CPU little more than
            the reading of all weights, which every step takes.
        prefill: tokens of one forward pass of a prefill, which bounds its memory.
        uneven: how many times as long as the shortest row of such a pass the longest may be.
        slots: how many slots of the store are made at a time; on a GPU steps are captured, and that
            anew where the store has moved.
        ahead: how many scenes are played beside each one of a GRPO step, should it have to be drawn
            again. A batch takes a GPU hardly longer than half of it, and to play them later takes
            as long again.
    """

    batch: int
    memory: int
    step: int
    prefill: int
    uneven: float
    slots: int
    ahead: int


FILLS_A_GPU = 1_000_000_000
"""Parameters from which a GPU is taken to compute for longer than its kernels take to be launched.
Measured with 135 million (docs/train.md); where the turn comes was not."""

SIZES = {
    "cpu": Sizes(32, 80_000, 64, 6144, 1.3, 1, 0),
    "cuda": Sizes(128, 200_000, 1024, 16_384, 4.0, 32, 1),
}
"""By device."""


def fills_a_gpu(model: Any) -> bool:
    """Whether a GPU computes a step of a model for longer than its kernels take to be launched."""
    return bool(model.num_parameters() >= FILLS_A_GPU)


def device() -> str:
    """The device that models are loaded on and trained on."""
    import torch  # noqa: PLC0415 - heavy, and an extra

    asked = os.environ.get(DEVICE, "")
    if asked not in ("", *DEVICES):
        raise UsageError(f"{DEVICE} (--device): {unknown('device', asked, DEVICES)}")
    there = torch.cuda.is_available()
    if asked == "cuda" and not there:
        raise UsageError(
            "--device cuda: torch sees no GPU here; install a torch with CUDA, or use --device cpu"
        )
    return asked or ("cuda" if there else "cpu")
