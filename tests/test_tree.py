"""What is kept in the repository stays small: people clone it, and it travels to other machines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolshift.lm.bases import BASES, SMOL, is_there

ROOT = Path(__file__).parents[1]
LIMIT = 25 * 2**20
SHIPPED = 2
"""The adapters that come with the package; all other weights are in the history only."""


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """The files that are kept; a test is skipped in an archive, which knows none."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone of the repository")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]


def test_the_tree_is_slim(tracked: list[Path]) -> None:
    size = sum(path.stat().st_size for path in tracked)
    assert size <= LIMIT, f"{size / 2**20:.1f} MiB are tracked; compress results, leave weights out"


def test_no_weights_but_those_that_ship(tracked: list[Path]) -> None:
    weights = [path for path in tracked if ".safetensors" in path.name]
    assert len(weights) == SHIPPED
    assert all("src/toolshift/agents/adapters" in path.as_posix() for path in weights)


def test_the_shipped_adapters_are_those_of_the_study() -> None:
    """By their hashes and records, so that a record may be written in another form."""
    pytest.importorskip("trl")
    if not is_there(BASES[SMOL]):
        pytest.skip("the bundled model is not installed")
    script = ROOT / "studies" / "adapters.py"
    ran = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count(" is that of arm ") == SHIPPED
