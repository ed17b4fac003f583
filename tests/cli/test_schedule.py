"""The files of examples/schedule, and what `toolshift schedule` writes, are run for given days."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from running import Run

EXAMPLES = Path(__file__).parents[2] / "examples" / "schedule"
RUN = ("--agent", "oracle", "--world", "poi", "--tasks", "1", "--no-placebo", "--shift", "clean")


def shell(script: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs a step as GitHub does, with `toolshift` on the path."""
    programs = folder.parent / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "toolshift").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m toolshift "$@"\n')
    (programs / "toolshift").chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def copied(name: str, out: Path) -> None:
    """Copies an example, with the options of these tests as those of the run."""
    text = (EXAMPLES / name).read_text()
    mine = "set -- --agent mymodule:my_agent --tasks 24"
    assert mine in text
    out.write_text(text.replace(mine, f"set -- {shlex.join(RUN)}"))


def test_the_example_of_cron_runs_a_day(toolshift: Run, tmp_path: Path) -> None:
    copied("drift.sh", tmp_path / "drift.sh")
    script = (tmp_path / "drift.sh").read_text()
    done = shell(script.replace('cd "$(dirname "$0")"', "cd ."), tmp_path, DAY="2026-03-02")
    assert done.returncode == 0, done.stderr
    seeds = {
        arm: json.loads((tmp_path / "drift/2026-03-02" / arm / "manifest.json").read_text())
        for arm in ("anchor", "fresh")
    }
    assert [each["selection"]["seeds"] for each in seeds.values()] == [[0], [20260302]]
    assert (tmp_path / "drift/trend.html").is_file()


def test_the_script_runs_a_day_again_with_the_same_tasks(toolshift: Run, tmp_path: Path) -> None:
    code, said, _ = toolshift("schedule", "cron", "--anchor-seed", "7", "--", *RUN)
    assert code == 0
    line = said.splitlines()[-1]
    assert line.startswith("17 4 * * 1 sh ")
    assert line.endswith("toolshift-schedule.log 2>&1")
    script = (tmp_path / "toolshift-schedule.sh").read_text()
    done = shell(script.replace('cd "$(dirname "$0")"', "cd ."), tmp_path, DAY="2026-03-02")
    assert done.returncode == 0, done.stderr
    plans = {
        arm: json.loads((tmp_path / "drift/2026-03-02" / arm / "manifest.json").read_text())
        for arm in ("anchor", "fresh")
    }
    assert plans["anchor"]["selection"]["seeds"] == [7]
    assert plans["fresh"]["selection"]["seeds"] == [20260302]
    assert (tmp_path / "drift/trend.html").is_file()


def steps_of(path: Path) -> dict[str, dict[str, Any]]:
    document = yaml.load(path.read_text(), yaml.BaseLoader)
    assert document["permissions"] == {"contents": "write"}
    steps = document["jobs"]["drift"]["steps"]
    return {step.get("name", step.get("uses")): step for step in steps}


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
@pytest.mark.parametrize("source", ["written", "example"])
def test_the_steps_of_the_workflow_keep_every_day(
    toolshift: Run, tmp_path: Path, source: str
) -> None:
    words = ("github", "--at", "17 4 * * 1", "--secret", "OPENAI_API_KEY", "--out", "flow.yml")
    if source == "written":
        assert toolshift("schedule", *words, "--", *RUN)[0] == 0
    else:
        copied("drift.yml", tmp_path / "flow.yml")
    assert "cron: 17 4 * * 1" in (tmp_path / "flow.yml").read_text()
    steps = steps_of(tmp_path / "flow.yml")
    assert steps["measure"]["env"] == {
        "DAY": "${{ inputs.day }}",
        "OPENAI_API_KEY": "${{ secrets.OPENAI_API_KEY }}",
    }
    assert steps["install"]["run"] == "pip install ./toolshift -e ."
    git(tmp_path, "init", "-q", "--bare", "origin.git")
    for number, day in enumerate(("2026-03-01", "2026-04-01")):
        home = tmp_path / f"checkout{number}"
        git(tmp_path, "clone", "-q", "origin.git", home.name)
        if not number:
            (home / "mine.py").write_text("x = 1\n")
            git(home, "add", "-A")
            git(home, "commit", "-qm", "begin")
            git(home, "push", "-q", "origin", "HEAD:main")
        for name in ("bring back the earlier days", "measure", "keep"):
            done = shell(steps[name]["run"], home, DAY=day)
            assert done.returncode == 0, (name, done.stdout, done.stderr)
    said = shell(f"status=0; {steps['measure']['run'].splitlines()[-2]}", home).stdout
    assert "0 points" in said
    kept = git(tmp_path, "--git-dir=origin.git", "ls-tree", "-r", "--name-only", "toolshift-drift")
    assert {line.split("/")[0] for line in kept.splitlines()} == {
        "2026-03-01",
        "2026-04-01",
        "trend.html",
        "trend.json",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("cron", "--at", "daily", "--", *RUN), "five fields"),
        (("cron", "--", *RUN, "--seed", "3"), "--seed is set by the schedule"),
        (("cron", "--", "--tasks", "2"), "name an agent"),
        (("cron", "--", "--agent", "oracle", "--task", "2"), "No such option"),
        (("cron", "--", "--agent", "oracle", "--world", "pio"), "poi"),
        (("cron", "--", "--agent", "nosuch"), "unknown agent"),
        (("github", "--folder", "/tmp/x", "--", *RUN), "relative path"),
    ],
    ids=lambda words: words[-1] if isinstance(words, tuple) else words,
)
def test_what_cannot_be_scheduled_is_said(
    words: tuple[str, ...], said: str, toolshift: Run, tmp_path: Path
) -> None:
    code, _, told = toolshift("schedule", *words)
    assert code == 2
    assert said in told
    assert not list(tmp_path.glob("*.sh"))


def test_given_tasks_have_anchors_only(toolshift: Run, tmp_path: Path) -> None:
    world = Path(__file__).parents[2] / "examples" / "own_tools" / "tasks.yaml"
    words = ("schedule", "cron", "--", "--agent", "oracle", "--world", str(world))
    code, said, _ = toolshift(*words)
    assert (code, "anchors only" in said) == (0, True)
    script = (tmp_path / "toolshift-schedule.sh").read_text()
    assert '"$DAY"/fresh' not in script
