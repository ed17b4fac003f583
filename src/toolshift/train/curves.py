"""The curves of a run, read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from toolshift.core.files import read_bytes, stored

CURVES = "curves.jsonl"
"""One line for each step, and one for each evaluation."""


def read_curves(file: Path) -> list[dict[str, Any]]:
    """The lines of a run's curves, which may be compressed; a torn last one is left out."""
    lines = read_bytes(stored(file)).decode("utf-8").split("\n")[:-1]
    return [json.loads(line) for line in lines]
