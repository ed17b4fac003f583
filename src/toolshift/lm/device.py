"""What models compute on: the GPU where there is one, or what is asked for."""

from __future__ import annotations

import os

from toolshift.core.errors import UsageError
from toolshift.core.names import unknown

DEVICES = ("cpu", "cuda")
DEVICE = "TOOLSHIFT_DEVICE"
"""The variable of the environment that says which (`--device`); processes that are started have it
too."""


def device() -> str:
    """The device that models are loaded on and trained on.

    Returns:
        "cuda" or "cpu": what is asked for, or else "cuda" where torch sees a GPU.

    Raises:
        UsageError: where an unknown device is asked for, or a GPU that torch does not see.
    """
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
