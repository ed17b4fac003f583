"""What a release is made of says the same everywhere: versions, pins, workflows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINNED = dict(
    line.split("==")
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if "==" in line and not line.startswith("#")
)
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_lab_and_the_citation_have_the_version_of_the_package() -> None:
    lab = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert lab["version"] == cited["version"] == PROJECT["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert f"## [{PROJECT['version']}] - {cited['date-released']}\n" in changelog


def test_hooks_are_those_of_the_constraints() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    pins = {pin for hook in hooks for pin in hook.get("additional_dependencies", ())}
    names = {pin.split("==")[0]: pin.split("==")[1] for pin in pins}
    assert names.keys() == {"ruff", "pydoclint", "zizmor"}
    assert {name: PINNED[name] for name in names if name in PINNED} == {
        name: version for name, version in names.items() if name != "zizmor"
    }


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    """All steps of a workflow."""
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit_and_get_no_rights_that_they_do_not_need(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {}
    for step in steps(workflow):
        action, _, commit = step.get("uses", "").partition("@")
        assert not action or re.fullmatch(r"[0-9a-f]{40}", commit)
        assert action != "actions/checkout" or step["with"]["persist-credentials"] is False


def test_the_hosted_ci_runs_the_commands_of_ours() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert [step["run"] for step in steps(workflow) if "run" in step] == [".ci/run"]
    [python] = [
        s["with"]["python-version"] for s in steps(workflow) if "python" in s.get("uses", "")
    ]
    tested = [each for each in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d", each)]
    assert tested == [f"Programming Language :: Python :: {python}"]
