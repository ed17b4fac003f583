"""The docs do what they say: the page on adding a shift is run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "studies").glob("*.md")]
)


@pytest.fixture
def envelope(tmp_path: Path) -> Path:
    """The code of the page, saved as the page says."""
    page = (ROOT / "docs" / "add-a-shift.md").read_text()
    file = tmp_path / "envelope.py"
    file.write_text("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)))
    return file


def commands() -> list[str]:
    """The toolshift commands of the page."""
    page = (ROOT / "docs" / "add-a-shift.md").read_text()
    return re.findall(r"^\$ toolshift (.*)$", page, re.MULTILINE)


@pytest.mark.parametrize("command", commands())
def test_the_page_on_adding_a_shift_works_as_it_stands(envelope: Path, command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "toolshift", *command.split()],
        cwd=envelope.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (", 0 failed" if " check " in command else "envelope") in done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_agent_of_the_docs_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "agents.md").read_text()
    (tmp_path / "mine.py").write_text(
        "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    )
    command = (
        "run --agent mine:reply --shift transient_error --shift query_ambiguity --json --out out"
    )
    done = subprocess.run(
        [sys.executable, "-m", "toolshift", *command.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["agents"][0]["name"] == "mine:reply"
    records = (tmp_path / "out" / "episodes.jsonl").read_text().splitlines()
    assert {json.loads(line)["end"] for line in records} <= {"answered", "refused", "budget"}
