"""The script that takes weights to a machine without network: parts are joined, and checked."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "studies" / "on_accelerator.sh"


@pytest.fixture
def staged(tmp_path: Path) -> Path:
    """Some weights in three parts, as `stage` leaves them."""
    whole = bytes(range(256)) * 9
    parts = {f"some.gguf.part{n:03d}": whole[n * 1000 :][:1000] for n in range(3)}
    for name, content in parts.items():
        (tmp_path / name).write_bytes(content)
    sums = [f"{hashlib.sha256(c).hexdigest()}  {name}\n" for name, c in parts.items()]
    (tmp_path / "parts.sha256").write_text("".join(sums))
    (tmp_path / "some.gguf.sha256").write_text(f"{hashlib.sha256(whole).hexdigest()}  some.gguf\n")
    return tmp_path


def run(*words: object) -> tuple[int, str]:
    command = ["bash", SCRIPT, *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_parts_become_the_file_again_and_stay_so(staged: Path) -> None:
    assert run("join", staged) == (0, "")
    assert (staged / "some.gguf").read_bytes() == bytes(range(256)) * 9
    (staged / "some.gguf.part001").unlink()
    assert run("join", staged) == (0, "")
    (staged / "some.gguf").write_bytes(b"other")
    code, said = run("join", staged)
    assert code == 2
    assert "some.gguf is not what was staged" in said


def test_a_part_that_was_damaged_on_the_way_is_said(staged: Path) -> None:
    (staged / "some.gguf.part001").write_bytes(b"lost")
    code, said = run("join", staged)
    assert code == 2
    assert "a part in" in said
    assert not (staged / "some.gguf").exists()


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    assert "run stage first" in run("join", tmp_path)[1]
    code, said = run("fly", tmp_path)
    assert code == 2
    assert "unknown command fly: stage, join, time, slice or dry" in said
    code, said = run()
    assert code == 2
    assert "slice  FOLDER WORK MIN" in said
