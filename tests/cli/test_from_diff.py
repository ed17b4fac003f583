"""`toolshift shift from-diff` to a report, a resumed run and training data, by the command line."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from running import Run
from shifts.test_release import edited, poi, rename

from toolshift.report.html.method import run_command
from toolshift.runs.run_folder import RunFolder
from toolshift.shifts.files import FILES
from toolshift.shifts.registry import find_shift


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FILES, "")

    def other(tools: dict[str, dict[str, Any]]) -> None:
        tools["get_hours"].update(name="show_schedule", description="Opening times.")

    (tmp_path / "old.json").write_text(json.dumps(poi()))
    new = edited(other, rename("find_place", "v2_find_place"))
    (tmp_path / "new.json").write_text(json.dumps({"tools": new}))
    return tmp_path


def test_open_questions_stop_it_and_the_filled_mapping_goes_on(toolshift: Run, sides: Path) -> None:
    make = ("shift", "from-diff", "old.json", "new.json", "--out", "monday.json")
    code, _, said = toolshift(*make)
    assert code == 2
    assert "monday.mapping.toml" in said
    assert "perhaps show_schedule" in said
    assert not (sides / "monday.json").exists()
    mapping = sides / "monday.mapping.toml"
    mapping.write_text(mapping.read_text().replace('"?"', '"show_schedule"'))
    code, told, _ = toolshift(*make)
    assert code == 0
    assert "2 renamed" in told
    code, told, _ = toolshift("show", "monday.json", "--json")
    found = json.loads(told)
    assert toolshift("show", find_shift("monday.json").name, "--json")[1] == told
    assert found["counts"] == {"same": 10, "renamed": 2}
    assert [row["new"] for row in found["tools"] if row["what"] == "renamed"] == [
        "v2_find_place",
        "show_schedule",
    ]


def test_a_dry_run_writes_nothing(toolshift: Run, sides: Path) -> None:
    before = set(sides.iterdir())
    code, told, _ = toolshift("shift", "from-diff", "old.json", "new.json", "--dry-run")
    assert code == 0
    assert "Open: renamed.get_hours" in told
    assert set(sides.iterdir()) == before


def test_a_run_takes_it_like_any_other_and_is_read_without_it(toolshift: Run, sides: Path) -> None:
    toolshift("shift", "from-diff", "old.json", "new.json", "--out", "monday.json", "--yes")
    asked = ("run", "--agent", "memorises_names", "--agent", "oracle", "--kind", "visit")
    shifts = ("--shift", "monday.json", "--tasks", "2", "--no-placebo", "--out", "r")
    code, told, fault = toolshift(*asked, *shifts, "--workers", "2", "--json")
    assert code == 0, fault
    found = {agent["name"]: agent for agent in json.loads(told)["agents"]}
    assert found["oracle"]["everything"]["accuracy"]["estimate"] == 1
    assert found["memorises_names"]["everything"]["accuracy"]["estimate"] < 1
    (copied,) = (sides / "r").glob("monday@*.json")
    assert copied.read_bytes() == (sides / "monday.json").read_bytes()
    (sides / "monday.json").unlink()
    code, again, fault = toolshift("report", "r", "--json")
    assert (code, again) == (0, told), fault


def test_the_command_on_the_page_makes_the_run_again(toolshift: Run, sides: Path) -> None:
    toolshift("shift", "from-diff", "old.json", "new.json", "--out", "monday.json", "--yes")
    asked = ("run", "--agent", "oracle", "--kind", "visit", "--shift", "monday.json")
    assert toolshift(*asked, "--tasks", "2", "--without", "reasoning", "--out", "RUN")[0] == 0
    said = run_command(RunFolder.read(Path("RUN")).manifest)
    (sides / "monday.json").unlink()
    words = [sys.executable, "-m", *shlex.split(said), "--out", "again"]
    known = {name: value for name, value in os.environ.items() if name != FILES}
    subprocess.run(words, env=known, check=True, capture_output=True)
    assert Path("again/plan.jsonl").read_bytes() == Path("RUN/plan.jsonl").read_bytes()


def test_it_makes_training_data(toolshift: Run, sides: Path) -> None:
    toolshift("shift", "from-diff", "old.json", "new.json", "--out", "monday.json", "--yes")
    code, told, fault = toolshift(
        "data", "--out", "d.jsonl", "--count", "8", "--alpha", "1", "--shift", "monday.json",
        "--json",
    )  # fmt: skip
    assert code == 0, fault
    assert "monday@" in told
    assert "v2_find_place" in (sides / "d.jsonl").read_text()
