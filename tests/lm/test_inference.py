"""What surrounds a model that replies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from toolshift.lm.inference import give_back_memory


def resident() -> int:
    """Bytes of memory that this process holds."""
    said = next(e for e in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in e)
    return int(said.split()[1]) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc can be asked for it")
def test_memory_that_is_freed_between_what_is_kept_goes_back() -> None:
    # Of the heap: glibc maps larger ones.
    blocks = [bytearray(b"x" * 100_000) for _ in range(3_000)]
    kept = blocks[::10]
    del blocks
    before = resident()
    give_back_memory()
    assert before - resident() > 100_000_000
    assert len(kept) == 300
