"""Files that users and documents name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import toolshift
from toolshift.core.files import read_given
from toolshift.drift.lock import read_any_lock
from toolshift.worlds.own.file import read_file


@pytest.mark.parametrize("name", ["a\x00b.yaml", "a\ud800.yaml"])
def test_a_name_that_no_file_can_have_is_an_error_like_one_that_is_not_there(name: str) -> None:
    with pytest.raises(OSError, match="no file has such a name"):
        read_given(Path(name))
    readers: tuple[Callable[[Path], object], ...] = (read_any_lock, read_file)
    for read in readers:
        with pytest.raises(toolshift.UsageError):
            read(Path(name))
