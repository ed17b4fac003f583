"""What coding agents and CI are given: a skill, an index of the docs, an action, a container."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from toolshift.cli.group import SECTIONS
from toolshift.core.importing import load

ROOT = Path(__file__).parents[1]
SKILL = ROOT / "skills" / "toolshift" / "SKILL.md"
_, FRONT, BODY = SKILL.read_text(encoding="utf-8").split("---\n", 2)
COMMANDS = re.findall(r"^\$ toolshift (.+)$", BODY, re.MULTILINE)


def test_the_skill_has_the_form_of_the_agent_skills_specification() -> None:
    told = yaml.safe_load(FRONT)
    assert told["name"] == SKILL.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", told["name"])
    assert 0 < len(told["description"]) <= 1024
    assert len(told["compatibility"]) <= 500
    assert set(told) <= {"name", "description", "license", "compatibility", "metadata"}
    assert len(BODY.splitlines()) < 500


def found(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command of a line, and the rest of it."""
    commands = {name: entry for part in SECTIONS.values() for name, entry in part.items()}
    command: Any = load(commands[words[0]].place)
    rest = words[1:]
    while isinstance(command, click.Group):
        command, rest = command.get_command(click.Context(command), rest[0]), rest[1:]
    return command, rest


@pytest.mark.parametrize("line", COMMANDS)
def test_each_command_of_the_skill_can_be_given_so(line: str) -> None:
    command, rest = found(shlex.split(line))
    known = {name for param in command.params for name in param.opts}
    assert {word for word in rest if word.startswith("--")} <= known
    command.make_context(command.name, rest, resilient_parsing=False)


def test_the_index_for_language_models_is_that_of_the_docs() -> None:
    written = subprocess.run(
        [sys.executable, "-c", "import llms; print(llms.written(), end='')"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "docs" / "site"), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=True,
    ).stdout.decode()
    kept = (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")
    assert kept == written, "run: python docs/site/llms.py"
    links = re.findall(r"\]\(([^)]+)\)", kept)
    assert len(links) == len(set(links)) > 30
    for link in links:
        assert (ROOT / "docs" / link).is_file(), link
    listed = {(ROOT / "docs" / link).resolve() for link in links}
    assert {page.resolve() for page in (ROOT / "docs").glob("*.md")} <= listed


ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def test_the_action_pins_what_it_uses_and_puts_no_input_into_a_script() -> None:
    assert ACTION["runs"]["using"] == "composite"
    for step in ACTION["runs"]["steps"]:
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"])
        assert "${{" not in step.get("run", "")
        assert "run" not in step or step["shell"] == "bash"


@pytest.mark.parametrize(
    ("words", "code"), [("list suites", 0), ("list 'no such list'", 2), ("--help; exit 7", 2)]
)
def test_the_action_runs_one_command_and_hands_on_its_exit_code(
    words: str, code: int, tmp_path: Path
) -> None:
    script = next(step["run"] for step in ACTION["runs"]["steps"] if step.get("id") == "run")
    (tmp_path / "toolshift").write_text(f'#!/bin/sh\nexec {sys.executable} -m toolshift "$@"\n')
    (tmp_path / "toolshift").chmod(0o755)
    output = tmp_path / "output"
    path = f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "WORDS": words, "GITHUB_OUTPUT": str(output), "PATH": path}
    done = subprocess.run(["bash", "-e", "-c", script], env=env, capture_output=True, check=False)
    assert done.returncode == code, done.stderr
    assert output.read_text() == f"exit-code={code}\n"


def test_the_container_copies_what_is_there() -> None:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    for line in re.findall(r"^COPY (.+)$", text, re.MULTILINE):
        for name in line.split()[:-1]:
            assert (ROOT / name).exists(), name
