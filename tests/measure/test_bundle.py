"""Replay bundles: on another machine, with worlds and shifts of files, and hostile archives."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from msgspec.structs import replace
from running import Run

from toolshift.core.command_line import PLUGINS
from toolshift.core.errors import UsageError
from toolshift.core.files import PACKED
from toolshift.core.tool import JSON
from toolshift.measure import bundle
from toolshift.measure.bundle import INDEX, PAGE, make_bundle, opened_bundle
from toolshift.measure.recheck import LIVE
from toolshift.runs.run_folder import RunFolder
from toolshift.worlds.names import OWN

ROOT = Path(__file__).parents[2]
WORDS = ("--shift", "redirect:2", "--shift", "identity_erasure:2", "--tasks", "6", "--trials", "2")
GATE = ("gate", "--agent", "memorises_names", "--baseline", "old", "--margin", "5")


@pytest.fixture
def failed(toolshift: Run) -> Run:
    """A bundle `failed.zip` of memorises_names, and nothing else."""
    assert toolshift("run", "--agent", "oracle", *WORDS, "--out", "old")[0] == 0
    assert toolshift(*GATE, "--out", "new", "--bundle", "failed.zip")[0] == 1
    return toolshift


def elsewhere(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line in a process and a folder of its own, with nothing known."""
    plain = {name: text for name, text in os.environ.items() if not name.startswith("TOOLSHIFT")}
    return subprocess.run(
        [sys.executable, "-m", "toolshift", *words],
        cwd=folder,
        env=plain,
        capture_output=True,
        text=True,
        check=False,
    )


def test_failures_are_reproduced_without_the_run(failed: Run, tmp_path: Path) -> None:
    lost = [r for r in RunFolder.read(Path("new")).records() if not r.grade.passed]
    shutil.rmtree("old")
    shutil.rmtree("new")
    code, out, _ = failed("replay", "failed.zip", "--json")
    found = json.loads(out)
    assert code == 0
    assert {each["episode"] for each in found} == {record.episode for record in lost}
    assert {each["outcome"] for each in found} == {"reproduced"}
    assert {each["trial"] for each in found} == {0, 1}
    code, out, _ = failed("replay", "failed.zip", lost[0].episode[:8])
    assert (code, "Here it goes wrong" in out) == (0, True)
    code, out, _ = failed("replay", "failed.zip", "--agent", "oracle", "--json")
    assert (code, {each["outcome"] for each in json.loads(out)}) == (0, {"passed"})
    assert failed("replay", "failed.zip", "--agent", "memorises_names")[0] == 1


def test_the_page_has_a_command_for_each_failure_that_works(failed: Run, tmp_path: Path) -> None:
    with zipfile.ZipFile("failed.zip") as archive:
        index = json.loads(archive.read(INDEX))
        page = archive.read(PAGE).decode()
    assert all(each["lost"] for each in index["failures"])
    assert all(f"`{each['command']}`" in page for each in index["failures"])
    away = tmp_path / "away"
    away.mkdir()
    shutil.copy("failed.zip", away)
    done = elsewhere(away, *index["failures"][0]["command"].split()[1:])
    assert done.returncode == 0, done.stderr
    assert "1 reproduced" in done.stdout


def test_the_same_failures_give_the_same_bytes(failed: Run) -> None:
    first = Path("failed.zip").read_bytes()
    words = ("gate", "new", "--baseline", "old", "--margin", "5", "--bundle", "failed.zip")
    assert failed(*words)[0] == 1
    assert Path("failed.zip").read_bytes() == first
    code, _, err = failed(*words[:-1], "failed.tar")
    assert (code, "name it failed.zip" in err) == (2, True)


def test_a_trace_that_was_altered_is_not_reproduced(failed: Run) -> None:
    with zipfile.ZipFile("failed.zip") as archive:
        archive.extractall("open")
    assert failed("replay", "open")[0] == 0
    episodes = Path("open/episodes.jsonl")
    episodes.write_text(episodes.read_text().replace("Unknown tool", "Known tool"))
    code, out, _ = failed("replay", "open", "--json")
    assert code == 1
    assert any(each["outcome"] == "differs" and "step" in each["said"] for each in json.loads(out))


def test_nothing_that_failed_is_said(failed: Run) -> None:
    assert make_bundle(RunFolder.read(Path("old")), "oracle", Path("none.zip")) == 0
    code, _, err = failed("replay", "none.zip")
    assert (code, "nothing in it failed" in err) == (2, True)


def test_a_world_of_ones_own_travels_and_is_run_only_when_trusted(
    toolshift: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OWN, "")
    shop = ROOT / "examples" / "own_tools"
    for file in shop.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    world = next(path.name for path in shop.glob("*.yaml"))
    words = ("--world", world, "--shift", "identity_erasure:2", "--no-placebo")
    assert toolshift("run", "--agent", "oracle", *words, "--out", "old")[0] == 0
    code, out, err = toolshift(*GATE, "--out", "new", "--bundle", "failed.zip")
    assert code == 1, out + err
    code, _, err = toolshift("replay", "failed.zip")
    assert (code, "--trust" in err) == (2, True)
    code, out, _ = toolshift("replay", "failed.zip", "--trust", "--json")
    assert code == 2
    assert {each["said"] for each in json.loads(out)} == {LIVE}
    away = tmp_path / "away"
    away.mkdir()
    shutil.copy(tmp_path / "failed.zip", away)
    again = elsewhere(away, "replay", "failed.zip", "--trust", "--agent", "oracle")
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.parametrize("kind", ["missing", "text", "no index", "too large", "outside", "later"])
def test_what_is_no_bundle_is_said(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "failed.zip"
    index = {"format": 1, "toolshift": "1", "failures": []}
    said = {
        "missing": "no such bundle",
        "text": "not a replay bundle",
        "no index": "not a replay bundle",
        "too large": "unpack to more than",
        "outside": "not in the bundle",
        "later": "has format 2",
    }[kind]
    if kind == "text":
        path.write_text("PK")
    elif kind != "missing":
        index |= {"outside": {"plugins": ["../evil.py"]}, "later": {"format": 2}}.get(kind, {})
        name = "other.json" if kind == "no index" else INDEX
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, json.dumps(index))
            archive.writestr("../evil.py", "raise SystemExit(9)")
        monkeypatch.setattr(bundle, "MAX_BYTES", 10 if kind == "too large" else 2**20)
    with pytest.raises(UsageError, match=said), opened_bundle(path, trust=True):
        pass
    assert not (tmp_path.parent / "evil.py").exists()


def test_a_bundle_runs_no_code_that_its_list_leaves_out(failed: Run, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit(9)")
    with zipfile.ZipFile("failed.zip") as archive:
        archive.extractall("open")
    plan = RunFolder.read(Path("open")).plan
    rows = tuple(replace(row, cell=replace(row.cell, world="evil:W")) for row in plan.rows)
    forged = replace(plan, rows=rows)
    Path("open/plan.jsonl").write_bytes(b"".join(JSON.encode(row) + b"\n" for row in rows))
    manifest = Path("open/manifest.json")
    manifest.write_text(manifest.read_text().replace(plan.hash, forged.hash))
    shutil.make_archive("other", "zip", "open")
    code, _, err = failed("replay", "other.zip")
    assert (code, "add --trust" in err) == (2, True), err


def test_a_bundle_that_hides_its_size_or_is_damaged_within_is_refused(failed: Run) -> None:
    raw = bytearray(Path("failed.zip").read_bytes())
    with zipfile.ZipFile("failed.zip") as archive:
        place = archive.getinfo("episodes.jsonl").header_offset + 60
        names = {name: archive.read(name) for name in archive.namelist()}
    raw[place] ^= 0xFF
    Path("damaged.zip").write_bytes(raw)
    code, _, err = failed("replay", "damaged.zip")
    assert (code, "is damaged" in err) == (2, True), err
    for suffix in PACKED:
        with zipfile.ZipFile("bomb.zip", "w") as archive:
            for name, content in names.items():
                end = suffix if name == "episodes.jsonl" else ""
                archive.writestr(f"{name}{end}", content)
        code, _, err = failed("replay", "bomb.zip")
        assert (code, "hide their size" in err) == (2, True), err


SHIFT_OF = """from toolshift import Change, shift
@shift(tier="interaction", dimension="observation", name="nothing_{name}")
def nothing(scene, rng, severity):
    '''Reads beside.json.'''
    return Change()
"""


def test_two_plugins_of_one_name_both_travel(
    failed: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "plug.py").write_text(SHIFT_OF.format(name=name))
        (tmp_path / name / "beside.json").write_text("{}")
    named = (str(tmp_path / name / "plug.py") for name in ("a", "b"))
    monkeypatch.setenv(PLUGINS, os.pathsep.join(named))
    make_bundle(RunFolder.read(Path("new")), "memorises_names", Path("more.zip"))
    with zipfile.ZipFile("more.zip") as archive:
        index = json.loads(archive.read(INDEX))
        texts = [archive.read(name) for name in index["plugins"]]
        beside = {f"{Path(name).parent}/beside.json" for name in index["plugins"]}
        assert beside <= set(archive.namelist())
    assert len(set(texts)) == 2


@pytest.mark.parametrize("where", ["archive", "folder"])
@pytest.mark.parametrize("lost", ["episodes", "list", "all episodes"])
def test_half_of_a_bundle_is_refused(lost: str, where: str, failed: Run) -> None:
    with zipfile.ZipFile("failed.zip") as archive:
        archive.extractall("open")
    total = len(json.loads(Path("open", INDEX).read_bytes())["failures"])
    half = total // 2
    if lost == "list":
        index = json.loads(Path("open", INDEX).read_bytes())
        index["failures"] = index["failures"][half:]
        Path("open", INDEX).write_text(json.dumps(index))
        said = f"{half} of the {total} episodes in episodes.jsonl are not listed"
    else:
        gone = half if lost == "episodes" else total
        lines = Path("open/episodes.jsonl").read_text().splitlines(keepends=True)
        Path("open/episodes.jsonl").write_text("".join(lines[gone:]))
        said = f"{gone} of the {total} episodes that {INDEX} lists are missing"
    if where == "archive":
        shutil.make_archive("half", "zip", "open")
    name = "half.zip" if where == "archive" else "open"
    code, _, err = failed("replay", name)
    assert (code, f"Error: {name}: {said}" in err) == (2, True), err


def test_messages_name_the_bundle_and_no_folder_that_is_deleted(failed: Run) -> None:
    code, _, err = failed("replay", "failed.zip", "ffffffffffff")
    assert (code, "in failed.zip: there is none" in err) == (2, True), err
    assert "`toolshift replay failed.zip` lists them" in err
    with zipfile.ZipFile("failed.zip") as archive:
        names = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile("cut.zip", "w") as archive:
        for name, content in names.items():
            archive.writestr(name, content[:40] if name == "manifest.json" else content)
    code, _, err = failed("replay", "cut.zip")
    assert (code, "Error: cut.zip/manifest.json is damaged" in err) == (2, True), err
