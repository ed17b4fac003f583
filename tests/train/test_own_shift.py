"""A shift of the reader's own, in one file, reaches data, PAFT, GRPO and the table as it is."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import Run

from toolshift.core.command_line import PLUGINS
from toolshift.core.shift import declared

SHIFT = '''
from dataclasses import replace

from toolshift.core.shift import Change, shift


@shift(tier="perception", dimension="query", level=1, imitates="A client that writes in capitals.")
def in_capitals(scene, rng, severity):
    """Write the first words of a request in capitals."""

    def loud(text):
        first, _, rest = text.partition(" ")
        return f"{'PLEASE ' * severity}{first} {rest}"

    return Change(asks=tuple(replace(ask, text=loud(ask.text)) for ask in scene.asks))
'''


@pytest.fixture
def shouting(tmp_path: Path):
    (tmp_path / "mine.py").write_text(SHIFT)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "toolshift", "--plugin", "mine.py", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def test_data_and_the_table(shouting, tmp_path):
    words = ("--count", "6", "--alpha", "1", "--shift", "in_capitals", "--size", "200")
    done = shouting("data", "--out", "rows.jsonl", *words)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert all("PLEASE" in row["messages"][1]["content"] for row in rows)
    done = shouting("run", "--agent", "oracle", "--shift", "in_capitals", "--tasks", "4", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [row["label"] for row in report["agents"][0]["shifts"]] == ["in_capitals"]


@pytest.fixture
def loud_here(toolshift: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Run]:
    """The same in this process, which has the packages of training already."""
    monkeypatch.setenv(PLUGINS, "")
    (tmp_path / "loud.py").write_text(SHIFT)
    yield lambda *words: toolshift("--plugin", "loud.py", *words)
    declared.pop("in_capitals", None)
    sys.modules.pop("loud", None)


@pytest.mark.model
@pytest.mark.parametrize("method", ["paft", pytest.param("grpo", marks=pytest.mark.slow)])
def test_training(loud_here: Run, tmp_path: Path, method: str) -> None:
    less = ("--count", "4") if method == "paft" else ()
    words = ("--preset", "smoke", "--alpha", "1", "--shift", "in_capitals:3", "--kind", "listing")
    code, _, err = loud_here("train", method, *words, *less, "--steps", "1", "--out", "out")
    assert code == 0, err
    record = "".join(path.read_text() for path in (tmp_path / "out").glob("*.json"))
    assert "in_capitals:3" in record
    assert ("In every step all episodes of a group had the same reward" in err) == (
        method == "grpo"
    )
