"""Stages that were made earlier are found by the table, whatever the code has become."""

from __future__ import annotations

import hashlib
import io
import lzma
import re
import shutil
import subprocess
import tarfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from toolshift_lab import experiments, planned
from toolshift_lab import stage as stage_module
from toolshift_lab.experiments import STUDIES, find_study
from toolshift_lab.frozen import archive_of, frozen_stages, table_of, unpack
from toolshift_lab.planned import read_plan, take_up
from toolshift_lab.stage import stages

from toolshift.core.errors import UsageError
from toolshift.core.files import pack

STAGES = unpack(Path(__file__).parents[2] / "studies" / "stages")


def test_all_stages_that_are_kept_are_in_the_table_and_the_other_way_round() -> None:
    listed = frozen_stages(STAGES)
    kept = [each for each in listed if not each.last_in]
    with tarfile.open(archive_of(STAGES)) as archive:
        packed = {name.partition("/")[0] for name in archive.getnames()}
    assert {each.folder for each in kept} == packed
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
    episodes = (run / "episodes.jsonl").read_bytes()
    edited = episodes.replace(b'"passed":false', b'"passed":true', 1)
    assert edited != episodes
    (run / "episodes.jsonl.xz").write_bytes(pack(edited, ".xz"))
    (run / "episodes.jsonl").unlink()
    with pytest.raises(UsageError, match=r"episodes\.jsonl\.xz is not what was measured"):
        replace(stage, run=run).report()


def test_the_archive_has_the_episodes_of_the_table_byte_for_byte() -> None:
    held = {
        f"{each.folder}/{run}/episodes.jsonl": sha256
        for each in frozen_stages(STAGES)
        for run, sha256 in each.episodes_sha256.items()
        if not each.last_in
    }
    with tarfile.open(archive_of(STAGES)) as archive:
        found = {
            entry.name: hashlib.sha256(file.read()).hexdigest()
            for entry in archive
            if entry.name.endswith("/episodes.jsonl") and (file := archive.extractfile(entry))
        }
    assert found == held


def small_archive(work: Path) -> dict[str, bytes]:
    """Makes an archive of two stages and their table; returns what is in it."""
    folders = ("static-small-seed0-11111111", "paft-small-seed0-22222222")
    files = {
        f"{folder}/{name}": f"{folder} {name}".encode()
        for folder in folders
        for name in ("model/training.json", "run-1/episodes.jsonl", "run-1/plan.jsonl")
    }
    table = ""
    for folder in folders:
        table += '[[stage]]\narm = "a"\nscale = "small"\nseed = 0\nrecipe = "r"\ncommit = ""\n'
        table += f'folder = "{folder}"\nepisodes_sha256 = {{ "run-1" = "0" }}\n'
    table_of(work).write_text(table, "utf-8")
    with tarfile.open(archive_of(work), "w:xz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return files


def held_in(work: Path) -> dict[str, bytes]:
    return {
        path.relative_to(work).as_posix(): path.read_bytes()
        for path in work.rglob("*")
        if path.is_file()
    }


def test_what_is_there_is_not_unpacked_over(tmp_path: Path) -> None:
    """Weights that were brought back, files of one's own, episodes that someone compressed."""
    work = tmp_path / "stages"
    files = small_archive(work)
    mine = {
        "static-small-seed0-11111111/model/adapter_model.safetensors": b"weights",
        "paft-small-seed0-22222222/model/training.json": b"mine",
        "own-small-seed0-33333333/run-1/episodes.jsonl": b"mine too",
    }
    for name, content in mine.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(content)
    assert unpack(work) == work
    assert held_in(work) == files | mine
    archive_of(work).write_bytes(b"it is not read again")
    unpack(work)


def test_processes_that_unpack_at_once_leave_all_files_whole(tmp_path: Path) -> None:
    work = tmp_path / "stages"
    files = small_archive(work)
    threads = [threading.Thread(target=unpack, args=(work,)) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert held_in(work) == files
    assert {each.name for each in tmp_path.iterdir()} == {
        "stages",
        "stages.toml",
        "stages.tar.xz",
    }


def test_a_folder_of_ones_own_has_no_archive(tmp_path: Path) -> None:
    assert not unpack(tmp_path / "work").exists()


@pytest.mark.parametrize("kept", [0, 40, 150])
def test_a_damaged_archive_is_named(tmp_path: Path, kept: int) -> None:
    work = tmp_path / "stages"
    small_archive(work)
    archive_of(work).write_bytes(archive_of(work).read_bytes()[:kept])
    with pytest.raises(UsageError, match=r"stages\.tar\.xz is damaged"):
        unpack(work)
    assert not held_in(work)


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
