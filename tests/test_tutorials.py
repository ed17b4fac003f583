"""The tutorials run as they stand: their cells, in order, in one process and in an empty folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples" / "tutorials"


def run(name: str, folder: Path) -> str:
    """What the cells of a notebook print."""
    cells = json.loads((FOLDER / name).read_text())["cells"]
    code = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    (folder / "cells.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "cells.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_output(path: Path) -> None:
    notebook = json.loads(path.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    for cell in notebook["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_my_agent_in_ten_minutes(tmp_path: Path) -> None:
    said = run("my_agent_in_ten_minutes.ipynb", tmp_path)
    by_heart, better = said.split("EPISODE is the beginning")
    rows = [line.split() for line in by_heart.splitlines()]
    assert ["tools", "get", "names", "without", "meaning", "A", "A", "A"] in rows
    assert "A  fails: it calls names that no longer exist" in by_heart
    assert "loses none under any change that was tried" in " ".join(better.split())


@pytest.mark.slow
@pytest.mark.model
def test_a_model_made_robust(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    said = run("a_model_made_robust.ipynb", tmp_path)
    assert "9 of 24 rows are shifted" in said
    assert "model in trained" in said
    assert "smol:paft" in said.partition("model in trained")[2]
    assert (tmp_path / "measured" / "episodes.jsonl").exists()
