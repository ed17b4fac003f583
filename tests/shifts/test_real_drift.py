"""How shifts stand beside releases of real servers: data that are complete and that are shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from running import Run

from toolshift.runs.suite import SUITES
from toolshift.shifts.real_drift import real_drift
from toolshift.shifts.registry import find_shift, shifts
from toolshift.shifts.stacks import read_arms

STUDY = Path(__file__).parents[2] / "studies" / "real_drift"
KNOWN = [name for name in shifts() if real_drift(name)]


def test_the_commonest_real_changes_have_shifts_with_figures() -> None:
    named = {"semantic_rename", "parameter_rename", "required_parameter", "tools_by_action"}
    assert named <= set(KNOWN)
    assert real_drift("query_typos") is None
    assert real_drift("semantic_rename@1") is None, "measured on the version of today"


@pytest.mark.parametrize("name", KNOWN)
def test_figures_rise_with_severity_and_are_of_its_severities(name: str) -> None:
    found = real_drift(name)
    assert found is not None
    assert tuple(found.share) == tuple(found.quantile) == find_shift(name).severities
    for values in (list(found.share.values()), list(found.quantile.values())):
        assert values == sorted(values)
        assert all(0 <= value <= 1 for value in values)
    assert len(found.sentences) == len(found.share)


def test_the_figures_are_those_of_the_study() -> None:
    rows = json.loads((STUDY / "calibration.json").read_text())
    assert set(rows) == set(KNOWN)
    for name, row in rows.items():
        found = real_drift(name)
        assert found is not None
        assert found.quantile == {int(s): v["quantile"] for s, v in row["severities"].items()}
        assert (found.like, found.releases) == (row["like"], row["releases"])


def test_the_suite_has_the_stacks_of_the_releases() -> None:
    stacks = [stack for stack in json.loads((STUDY / "stacks.json").read_text()).values() if stack]
    arms = [arm for text in SUITES.find("realistic@1").shifts for arm in read_arms(text)]
    assert sum(arm.tasks for arm in arms) == len(stacks)
    assert {arm.shifts for arm in arms} == {read_arms(s)[0].shifts for s in stacks}


def test_renames_come_with_other_wordings() -> None:
    """What was read by eye, and what drawing each shift by itself would miss."""
    arms = [arm for text in SUITES.find("realistic@1").shifts for arm in read_arms(text)]
    renames = {"semantic_rename", "tool_name_noise"}
    with_rename = [{a.shift for a in arm.shifts} for arm in arms]
    with_rename = [names for names in with_rename if names & renames]
    assert len(with_rename) >= 8
    assert all("description_paraphrase" in names for names in with_rename)


def test_the_command_line_shows_them(toolshift: Run) -> None:
    _, told, _ = toolshift("show", "semantic_rename")
    assert "of the shown tools" in " ".join(told.split())
    _, told, _ = toolshift("show", "semantic_rename", "--json")
    assert set(json.loads(told)["real drift"]) == {"like", "releases", "share", "quantile"}
    _, told, _ = toolshift("list", "shifts", "--json")
    rows = {row["shift"]: row["real_drift"] for row in json.loads(told)}
    assert rows["semantic_rename"]["releases"] > 5
    assert rows["query_typos"] is None
