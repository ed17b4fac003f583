"""The docs do what they say: the pages on adding a shift, a world and an agent are run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pages import DOCS, code_of

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
    solved = json.loads(done.stdout)["agents"][0]["grid"]["solved"]
    assert solved > 0, "a first run in which nothing passes teaches nothing"


def run_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in a folder."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_page_on_adding_a_world_works_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "library.py").write_text(code_of("add-a-world.md"))
    page = (ROOT / "docs" / "add-a-world.md").read_text()
    check, spec, run = re.findall(r"^\$ toolshift (.*)$", page, re.MULTILINE)
    checked = run_in(tmp_path, "-m", "toolshift", *check.split())
    assert "small: it has 3 tools, 2 task kinds" in checked.stdout
    assert "6 passed, 0 failed, 1 not" in checked.stdout, checked.stdout + checked.stderr
    assert checked.returncode == 0
    done = run_in(tmp_path, "-m", "toolshift", *spec.split(), "--shift", "no_such_entity", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["agents"][0]["shifts"][0]["episodes"] == 6
    install(tmp_path, "library", page)
    done = run_in(tmp_path, "-m", "toolshift", *run.split(), "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["worlds"] == ["library"]


def install(folder: Path, name: str, page: str) -> None:
    """Writes the entry points of a page as an installer does; the folder is on the path."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = ""
    for table in re.findall(r"```toml\n(.*?)```", page, re.DOTALL):
        for group, names in tomllib.loads(table)["project"]["entry-points"].items():
            lines += f"[{group}]\n" + "".join(f"{n} = {value}\n" for n, value in names.items())
    (about / "entry_points.txt").write_text(lines)


def test_the_page_on_adding_an_agent_works_as_it_stands(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "add-an-agent.md").read_text()
    (tmp_path / "mine.py").write_text(code_of("add-an-agent.md"))
    for command in re.findall(r"^\$ toolshift (.*)$", page, re.MULTILINE):
        done = run_in(tmp_path, "-m", "toolshift", *command.split(), "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        found = json.loads(done.stdout)
        for each in found["agents"] if command.startswith("run") else ():
            assert each["crashed"] is None
    script = run_in(tmp_path, "mine.py")
    assert "oracle" in script.stdout, script.stderr
    install(tmp_path, "mine", page)
    named = ("run", "--agent", "curious", "--agent", "sized:large", "--tasks", "2", "--json")
    done = run_in(tmp_path, "-m", "toolshift", *named)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [each["name"] for each in json.loads(done.stdout)["agents"]] == ["curious", "large"]
    listed = run_in(tmp_path, "-m", "toolshift", "list", "agents")
    assert "sized:" in listed.stdout


def test_the_changes_of_the_page_on_real_drift_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    exec(code_of("real-drift.md"), {})
    assert capsys.readouterr().out.count("breaking find_page") == 2


def test_the_run_of_the_page_on_the_report_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    first, table = re.findall(r"```python\n(.*?)```", (DOCS / "report.md").read_text(), re.DOTALL)
    there: dict[str, object] = {}
    exec(first, there)
    failed = capsys.readouterr().out
    assert failed.count("gives_up poi/") == failed.count("'role': 'assistant'") > 0
    pytest.importorskip("pandas")
    exec(table, there)
    assert "oracle" in capsys.readouterr().out


def test_the_call_of_the_page_on_adapting_is_made_by_the_name_of_today() -> None:
    exec(code_of("adapt.md"), {})
