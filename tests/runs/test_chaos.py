"""A shortened `make chaos`: what a kill -9 leaves is what an undisturbed command leaves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHAOS = Path(__file__).parents[2] / "benchmarks" / "chaos.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["1 worker", "8 workers", "a function", "a program", "augment", "train", "watch"]
)
def test_a_killed_command_ends_as_one_that_was_not(name: str) -> None:
    words = [sys.executable, str(CHAOS), "--kills", "3", "--only", name]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "the totals are equal" in ran.stdout
