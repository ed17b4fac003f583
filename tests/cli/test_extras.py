"""Without the extra of a command a sentence says what to install."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from toolshift.core.installation import extra

WITHOUT = """
import importlib.abc, json, os, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("mcp", "mcp_types", "starlette", "uvicorn"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import toolshift.api  # which most of them import
from toolshift.cli import main

# Each command has a process of its own, which is made of this one: to start another takes a second.
for number, words in enumerate(json.loads(sys.argv[1])):
    child = os.fork()
    if not child:
        sys.argv = ["toolshift", *words]
        os.dup2(os.open(f"{number}.err", os.O_CREAT | os.O_WRONLY), 2)
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
WORLD = """
world: x
tools: {mcp: "true"}
tasks: [{id: a, ask: b, check: {answer: "1", example: "1"}}]
"""


COMMANDS = (
    ("proxy", "--dry-run", "--", "true"),
    ("model-proxy", "--upstream", "http://localhost/v1"),
    ("serve",),
    ("check", "x.yaml"),
    ("world", "init", "http://localhost:1/mcp", "--out", "y.yaml"),
    ("run", "--world", "x.yaml", "--agent", "oracle"),
    ("run", "--agent", "command:true", "--tasks", "1"),
)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, str]]:
    """The exit code of each command, and what it has said."""
    folder = tmp_path_factory.mktemp("without")
    (folder / "x.yaml").write_text(WORLD)
    command = [sys.executable, "-c", WITHOUT, json.dumps(COMMANDS)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    codes = [int(line) for line in done.stdout.splitlines()]
    assert len(codes) == len(COMMANDS)
    said = [(folder / f"{number}.err").read_text() for number in range(len(codes))]
    return list(zip(codes, said, strict=True))


@pytest.mark.parametrize("number", range(len(COMMANDS)), ids=map(" ".join, COMMANDS))
def test_what_needs_the_extra_says_so(number: int, answers: list[tuple[int, str]]) -> None:
    code, said = answers[number]
    assert code == 2, said
    assert extra("connect") in said
    assert "Traceback" not in said
    assert len(said.strip().splitlines()) == 1
