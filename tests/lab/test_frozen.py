"""Stages that were made earlier are found by the table, whatever the code has become."""

from __future__ import annotations

import hashlib
import lzma
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from toolshift_lab import experiments, planned
from toolshift_lab import stage as stage_module
from toolshift_lab.experiments import STUDIES, find_study
from toolshift_lab.frozen import frozen_stages, table_of
from toolshift_lab.planned import read_plan, take_up
from toolshift_lab.stage import stages

from toolshift.core.errors import UsageError
from toolshift.core.files import pack, read_bytes

STAGES = Path(__file__).parents[2] / "studies" / "stages"


def test_all_stages_that_are_kept_are_in_the_table_and_the_other_way_round() -> None:
    listed = frozen_stages(STAGES)
    kept = [each for each in listed if not each.last_in]
    assert {each.folder for each in kept} == {each.name for each in STAGES.iterdir()}
    assert {each.scale for each in listed if each.last_in} == {"small"}, "all of them superseded"
    for each in kept:
        runs = {run.name for run in (STAGES / each.folder).glob("run-*")}
        assert set(each.runs.values()) == runs


def test_they_are_found_without_a_key_and_without_a_scene(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*given: object) -> str:
        raise AssertionError("a key was made")

    monkeypatch.setattr(stage_module, "_scenes", never)
    monkeypatch.setattr(stage_module, "_plan", never)
    monkeypatch.setattr(stage_module, "_key", never)
    wanted = {("contrast", "dev"): 3, ("contrast", "test"): 3, ("copying", "test"): 3}
    for (study, pool), seeds in wanted.items():
        found = stages(find_study(study), "small", seeds, STAGES, ("static", "paft"), pool)
        assert all(stage.sha256 and stage.last_in for stage in found), "measured once"


@pytest.fixture
def table_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not in the table has a name that nothing has: real keys cost a fit's first steps."""
    monkeypatch.setattr(stage_module, "_key", lambda *given: "not-made")
    monkeypatch.setattr(stage_module, "_scenes", lambda *given: "not-made")


def test_the_table_has_the_hash_of_all_episodes_and_others_are_not_read(tmp_path: Path) -> None:
    listed = frozen_stages(STAGES)
    assert all(set(each.episodes_sha256) == set(each.runs.values()) for each in listed)
    row = next(each for each in listed if each.folder.startswith("base-decisive-seed0"))
    of_study = stages(find_study("contrast"), "small", 1, STAGES, ("static",))[0]
    name, sha256 = next(iter(row.episodes_sha256.items()))
    folder = STAGES / row.folder
    stage = replace(of_study, folder=folder, run=folder / name, sha256=sha256)
    assert stage.report().complete
    run = Path(shutil.copytree(stage.run, tmp_path / stage.run.name))
    episodes = read_bytes(run / "episodes.jsonl.xz")
    edited = episodes.replace(b'"passed":false', b'"passed":true', 1)
    assert edited != episodes
    (run / "episodes.jsonl.xz").write_bytes(pack(edited, ".xz"))
    with pytest.raises(UsageError, match=r"episodes\.jsonl\.xz is not what was measured"):
        replace(stage, run=run).report()


@pytest.mark.usefixtures("table_alone")
@pytest.mark.parametrize("pool", ["dev", "test"])
def test_every_run_is_that_of_a_study(pool: str) -> None:
    found = {
        (stage.folder.name, stage.run.name)
        for study in STUDIES.values()
        for stage in stages(study, "small", 3, STAGES, pool=pool)
        if stage.sha256
    }
    listed = {
        (each.folder, run)
        for each in frozen_stages(STAGES)
        for probed, run in each.runs.items()
        if probed.startswith(pool) and each.scale == "small"
    }
    assert found == listed


def test_a_stage_that_left_the_tree_is_neither_made_again_nor_left_out_of_a_page(
    toolshift: Any,
) -> None:
    for more in (("--only-page",), ()):
        code, _, err = toolshift("reproduce", "contrast", "--work", STAGES, *more)
        assert code == 2
        assert re.search(rf"git checkout [0-9a-f]{{12}} -- {STAGES} brings them back", err)
        assert "--work with another folder makes them again" in err


def test_what_left_the_tree_is_in_its_commit_as_it_was_measured() -> None:
    gone = [each for each in frozen_stages(STAGES) if each.last_in]
    assert gone
    root = STAGES.parents[1]
    for each in gone[::9]:
        for run, sha256 in each.episodes_sha256.items():
            path = f"{each.last_in}:studies/stages/{each.folder}/{run}/episodes.jsonl.xz"
            asked = ["git", "-C", str(root), "show", path]
            done = subprocess.run(asked, check=False, capture_output=True)
            if done.returncode:
                pytest.skip("no history here: a shallow clone, or no clone at all")
            assert hashlib.sha256(lzma.decompress(done.stdout)).hexdigest() == sha256


@pytest.mark.model
@pytest.mark.usefixtures("table_alone")
def test_every_run_of_the_plans_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what is declared: on the machine that they were made on, keys are others."""
    monkeypatch.setattr(planned, "STUDIES", dict(STUDIES))
    monkeypatch.setattr(planned, "SCALES", scales := dict(stage_module.SCALES))
    monkeypatch.setattr(stage_module, "SCALES", scales)
    monkeypatch.setattr(experiments, "SCALES", scales)
    found, read = set(), set()
    for file in (STAGES.parent / "decisive").glob("*.toml"):
        plan = read_plan(file)
        study, scale = take_up(plan)
        read.add(scales[scale].trained or scale)
        made = [s for s in stages(study, scale, study.seeds, STAGES, pool=plan.pool) if s.measured]
        assert {(stage.arm.name, stage.seed) for stage in made} <= set(plan.order)
        found |= {(stage.folder.name, stage.run.name) for stage in made}
    assert found == {
        (each.folder, run)
        for each in frozen_stages(STAGES)
        for run in each.runs.values()
        if each.scale in read
    }


def test_kept_stages_are_found_where_the_base_model_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So the page of a plan can be made without weights that may not stand in the repository."""
    monkeypatch.setattr(planned, "STUDIES", dict(STUDIES))
    monkeypatch.setattr(planned, "SCALES", scales := dict(stage_module.SCALES))
    monkeypatch.setattr(stage_module, "SCALES", scales)
    monkeypatch.setattr(experiments, "SCALES", scales)
    monkeypatch.setattr(stage_module, "is_there", lambda base: False)
    plan = read_plan(STAGES.parent / "decisive" / "gemma.toml")
    study, scale = take_up(plan)
    made = stages(study, scale, study.seeds + 1, STAGES, pool=plan.pool)  # one that nobody has run
    kept = {(each.arm.name, each.seed) for each in made if each.measured}
    assert {("static", 0), ("paft", 0)} <= kept
    left = next(each for each in made if not each.measured)
    assert left.key == stage_module.NO_BASE

    def missing(base: object) -> None:
        raise UsageError("needs the wheel")

    monkeypatch.setattr(stage_module, "check_there", missing)
    with pytest.raises(UsageError, match="needs the wheel"):
        stage_module.run(left, study, print)
    assert not left.folder.exists()


@pytest.mark.usefixtures("table_alone")
def test_another_recipe_is_another_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    def static() -> str:
        return stages(find_study("alpha"), "small", 1, STAGES, ("static",))[0].folder.name

    before = static()
    slower = stage_module.msgspec.structs.replace(stage_module.presets.PRESETS["small"], lr=1e-4)
    monkeypatch.setitem(stage_module.presets.PRESETS, "small", slower)
    assert static() != before


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    shutil.copy(table_of(STAGES), tmp_path / "work.toml")
    with (tmp_path / "work.toml").open("a") as file:
        file.write("[[stage]]\narm = 3\n")
    with pytest.raises(UsageError, match=r"work\.toml is damaged"):
        frozen_stages(tmp_path / "work")
