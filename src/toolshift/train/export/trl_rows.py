"""Scenes of a package for TRL: rows of a dataset, and a class for each list of tools."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from toolshift.core.errors import UsageError
from toolshift.train.environment import Environments, numbered
from toolshift.train.export.scenes import read_scenes


def rows_of(folder: Path, count: int, begin: int = 0) -> Environments:
    """The rows and classes of a run of scenes."""
    if count < 1 or begin < 0:
        raise UsageError(f"load(count={count}, begin={begin}): ask for at least one scene, from 0")
    found = read_scenes(folder)
    # TRL begins each scene many times, so they are kept; those of another load are drawn once.
    return numbered(cache(found.scene), range(begin, begin + count), found.encoded())
