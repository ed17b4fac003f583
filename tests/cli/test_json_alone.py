"""With `--json` stdout holds JSON alone, whatever agents, tools and what they start print."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = '''
import os


def find(name: str) -> dict[str, str]:
    """Find a person.

    Args:
        name: The name.
    """
    print("a tool prints")
    os.system("echo a program prints")
    return {"room": "R-12"}
'''
TASKS = """
world: office
tools: {python: office_tools}
tasks:
  - id: room
    ask: Which room has Mara?
    calls: [{name: find, arguments: {name: Mara}}]
    check: {answer: R-12}
"""
AGENT = """
print("a module prints")


def agent(messages, tools):
    print("an agent prints")
    if messages[-1].get("tool_call_id"):
        return {"content": "R-12"}
    function = {"name": "find", "arguments": '{"name": "Mara"}'}
    return {"tool_calls": [{"id": "1", "function": function}]}
"""


@pytest.mark.parametrize(
    "words",
    [
        "run --world tasks.yaml --agent chatty:agent --shift clean --json",
        "run --world tasks.yaml --agent chatty:agent --shift clean --agent-timeout 30 --json",
        "check tasks.yaml --json",
    ],
)
def test_stdout_holds_json_alone(tmp_path: Path, words: str) -> None:
    for name, text in (
        ("office_tools.py", TOOLS), ("tasks.yaml", TASKS), ("chatty.py", AGENT)
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
    ended = subprocess.run(
        [sys.executable, "-m", "toolshift", *words.split()],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)
    assert "a program prints" in ended.stderr


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "2>&- >&-"])
def test_a_closed_stream_changes_no_exit_code(tmp_path: Path, closed: str) -> None:
    ended = subprocess.run(
        f"{sys.executable} -m toolshift list shifts --json {closed}",
        shell=True,
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    assert not ended.stderr
    assert ">&-" in closed.replace("2>&-", "") or json.loads(ended.stdout)
