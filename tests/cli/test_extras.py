"""Without the extra of a command a sentence says what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("mcp", "mcp_types", "starlette", "uvicorn"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from toolshift.cli import main
main()
"""
WORLD = """
world: x
tools: {mcp: "true"}
tasks: [{id: a, ask: b, check: {answer: "1", example: "1"}}]
"""


@pytest.mark.parametrize(
    "words",
    [
        ("proxy", "--dry-run", "--", "true"),
        ("model-proxy", "--upstream", "http://localhost/v1"),
        ("serve",),
        ("world", "check", "x.yaml"),
        ("world", "init", "--mcp-url", "http://localhost:1/mcp", "--out", "y.yaml"),
        ("run", "--world", "x.yaml", "--agent", "oracle"),
        ("run", "--agent", "command:true", "--tasks", "1"),
    ],
    ids=" ".join,
)
def test_what_needs_the_extra_says_so(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(WORLD)
    command = [sys.executable, "-c", WITHOUT, *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "toolshift[connect]" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
