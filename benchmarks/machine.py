"""What a benchmark with models ran on, for the file of its figures."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import Any

import torch


def machine() -> dict[str, Any]:
    """The machine, as far as it decides speed, and the versions of what computes."""
    return {
        "machine": platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("torch", "transformers", "trl", "peft")},
    }
