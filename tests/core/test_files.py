"""Files that users and documents name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import toolshift
from toolshift.core.files import read_given, write
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


def test_a_link_stays_and_leads_to_the_new_content(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_bytes(b"old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write(tmp_path / "link.txt", b"new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_bytes() == b"new"


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(pipe, b"told")
    assert os.read(reader, 9) == b"told"
    os.close(reader)
    assert pipe.is_fifo()


def test_a_link_to_a_pipe_without_a_name_is_written_to() -> None:
    reader, writer = os.pipe()
    write(Path(f"/dev/fd/{writer}"), b"told")
    assert os.read(reader, 9) == b"told"
    os.close(reader)
    os.close(writer)


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there is no /dev/shm")
def test_a_file_in_shared_memory_is_replaced() -> None:
    with TemporaryDirectory(dir="/dev/shm") as folder:
        for content in (b"first and longer", b"second"):
            write(Path(folder, "told.json"), content)
        assert Path(folder, "told.json").read_bytes() == b"second"
