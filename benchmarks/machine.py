"""What a benchmark ran on, for the file of its figures."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import Any


def versions() -> dict[str, Any]:
    """The machine and the versions of what an episode takes; `load` is that of the machine then."""
    return {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        **{name: version(name) for name in ("toolshift", "msgspec", "jsonschema-rs")},
    }


def machine() -> dict[str, Any]:
    """The machine, as far as it decides speed, and the versions of what computes with a model."""
    import torch

    return {
        "machine": platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("torch", "transformers", "trl", "peft")},
    }
