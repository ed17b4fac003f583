"""Runs of one plan can be compared; of others it is said what differs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from surfing import run_into

from toolshift.measure.comparable import comparability
from toolshift.runs.run_folder import RunFolder

SMALL: dict[str, Any] = {"tasks": 2, "shifts": ("redirect", "format_drift"), "placebo": False}


def folder(path: Path, agent: str = "oracle", **changes: Any) -> RunFolder:
    return RunFolder.read(run_into(path, agent, **{**SMALL, **changes}))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return folder(tmp_path_factory.mktemp("first") / "run")


def test_runs_of_one_plan_are_one_group(tmp_path: Path) -> None:
    runs = [folder(tmp_path / "a"), folder(tmp_path / "b", "gives_up")]
    found = comparability(runs)
    assert [group.runs for group in found.groups] == [[0, 1]]
    assert found.groups[0].notes == []
    assert found.apart == []


@pytest.mark.parametrize(
    ("changes", "reason", "shared"),
    [
        ({"seed": 7}, "seeds: 0, and 7", 0),
        ({"trials": 2}, "trials of each scene: 1, and 2", 6),
        ({"pool": "train"}, "pool: dev, and train", 0),
        ({"kinds": ("booking",)}, "task kinds: all, and booking", 0),
        ({"placebo": True}, "placebo arm: no, and yes", 6),
        ({"shifts": ("redirect",)}, "other shifts, severities or numbers of tasks of a shift", 4),
    ],
)
def test_what_differs_is_said(
    first: RunFolder, changes: dict[str, Any], reason: str, shared: int, tmp_path: Path
) -> None:
    (apart,) = comparability([first, folder(tmp_path / "other", **changes)]).apart
    assert apart.reasons == [reason]
    assert apart.shared == shared


def test_versions_of_shifts_are_told_apart(tmp_path: Path) -> None:
    now, then = (
        folder(tmp_path / name, shifts=(name, "redirect"))
        for name in ("merged_tools", "merged_tools@1")
    )
    (apart,) = comparability([now, then]).apart
    assert apart.reasons == ["merged_tools: version 2, and 1"]
    assert apart.shared > 0  # clean scenes, and those of the other shift


def test_another_toolshift_and_another_reader_are_notes(tmp_path: Path) -> None:
    one = folder(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    two = RunFolder.read(tmp_path / "two")
    judged = [{**two.manifest.agents[0], "judge": {"judge": "chat:m"}}]
    two.manifest = msgspec.structs.replace(two.manifest, graded="9.9", agents=judged)
    (group,) = comparability([one, two]).groups
    assert len(group.notes) == 2
    assert "graded by ToolShift" in group.notes[0]
    assert "9.9" in group.notes[0]
    assert group.notes[1] == "prose was read differently: by rule, by chat:m"
