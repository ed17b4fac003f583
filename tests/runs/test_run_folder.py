"""Run folders: whose they are, what may be taken away, and what damage is said of them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from running import Run

import toolshift
from toolshift.core.errors import UsageError
from toolshift.core.files import PACKED, pack
from toolshift.report.html.episode_index import Book
from toolshift.runs.run_folder import RunFolder

RUN = ("run", "--tasks", "2", "--shift", "fatal_error", "--no-placebo", "--agent")
ORACLE = (*RUN, "oracle", "--out", "out")


@pytest.fixture
def out(toolshift: Run) -> Path:
    assert toolshift(*ORACLE)[0] == 0
    return Path("out")


def test_a_run_that_is_going_on_is_left_alone(toolshift: Run, out: Path) -> None:
    (out / "episodes.jsonl").write_bytes(b"")  # it has just begun
    names = {file.name for file in out.iterdir()}
    going_on = RunFolder.read(out)
    going_on._open()
    code, _, err = toolshift(*ORACLE)
    going_on.close()
    assert code == 2
    assert "in use" in err
    assert {file.name for file in out.iterdir()} == names


def test_a_folder_of_somebody_else_is_left_alone(toolshift: Run) -> None:
    Path("out").mkdir()
    for name in ("episodes.jsonl", "thesis.tex"):
        (Path("out") / name).write_text("")
    assert toolshift(*ORACLE)[0] == 2
    assert sorted(file.name for file in Path("out").iterdir()) == ["episodes.jsonl", "thesis.tex"]


def test_only_what_this_run_made_is_taken_away(toolshift: Run) -> None:
    Path("out").mkdir()
    assert toolshift(*RUN, "mine:raises", "--out", "out")[0] == 2
    assert list(Path("out").iterdir()) == []
    assert toolshift(*ORACLE)[0] == 0


def test_a_run_killed_before_its_manifest_can_be_begun_again(toolshift: Run, out: Path) -> None:
    for name in ("manifest.json", "episodes.jsonl", "timings.jsonl", "report.json", "report.txt"):
        (out / name).unlink()
    (out / ".manifest.json.new").write_text('{"form')
    code, _, err = toolshift(*ORACLE)
    assert code == 0, err


def test_episodes_without_a_manifest_are_kept(toolshift: Run, out: Path) -> None:
    (out / "manifest.json").unlink()
    code, _, err = toolshift(*ORACLE)
    assert code == 2
    assert "contains no run" in err
    assert (out / "episodes.jsonl").stat().st_size


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cell": "0123456789"}, "is of a scene that is not in plan.jsonl"),
        ({"agent": "stranger"}, "is of agent stranger, which manifest.json does not have"),
        ({}, "is there twice"),
    ],
    ids=["scene", "agent", "twice"],
)
def test_an_episode_that_is_not_of_the_run_is_named(
    toolshift: Run, out: Path, change: dict[str, str], said: str
) -> None:
    log = out / "episodes.jsonl"
    first = json.loads(log.read_text().splitlines()[0]) | {"episode": "ffff000000"} | change
    log.write_text(f"{log.read_text()}{json.dumps(first)}\n")
    for words in (("report", out), ORACLE):
        code, _, err = toolshift(*words)
        assert code == 2
        assert re.search(rf"episode \w{{10}} {said}", err)


def test_a_kill_between_the_files_loses_no_time_and_adds_none(toolshift: Run, out: Path) -> None:
    """Times are written first, so one without its episode can be there, and never the reverse."""
    log, times = out / "episodes.jsonl", out / "timings.jsonl"
    whole = log.read_text().splitlines(keepends=True)
    log.write_text("".join(whole[:-1]))
    assert toolshift(*ORACLE)[0] == 0
    timed = [json.loads(line)["episode"] for line in times.read_text().splitlines()]
    assert sorted(timed) == sorted(json.loads(line)["episode"] for line in whole)


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (("data", "--count", "2"), ".full.jsonl.new"),
        (("augment", "rows.jsonl"), "..full.jsonl.note.new"),
    ],
    ids=["data", "augment"],
)
def test_a_full_disk_is_said_with_the_file_and_how_to_go_on(
    toolshift: Run, words: tuple[str, ...], written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert toolshift("data", "--count", "2", "--out", "rows.jsonl")[0] == 0
    # The disk fills up after the check that comes first.
    monkeypatch.setattr("toolshift.train.rows.check_writable", lambda *given: None)
    Path(written).symlink_to("/dev/full")
    code, _, err = toolshift(*words, "--out", "full.jsonl")
    assert code == 2
    assert "full.jsonl" in err
    assert ": No space left on device. What was written is kept. Free some space, and run" in err


def test_an_episode_of_an_unknown_scene_is_explained(toolshift: Run, out: Path) -> None:
    log = out / "episodes.jsonl"
    first = json.loads(log.read_text().splitlines()[0])
    log.write_text(log.read_text().replace(first["cell"], "0123456789"))
    for words in (("regrade", out), ("trace", out, first["episode"])):
        code, _, err = toolshift(*words)
        assert code == 2
        assert "not in plan.jsonl" in err


@pytest.mark.parametrize("harm", ["vanished", "full"])
def test_settling_says_what_is_wrong(out: Path, monkeypatch: pytest.MonkeyPatch, harm: str) -> None:
    log = out / "episodes.jsonl"
    folder = RunFolder.read(out)
    order = [record.episode for record in folder.records()][::-1]
    if harm == "vanished":
        log.unlink()
    else:
        monkeypatch.setattr("os.fsync", lambda file: Path("/proc/nothing").read_bytes())
    with pytest.raises(UsageError, match="cannot put the episodes in order"):
        folder.settle(order)
    assert not (out / ".episodes.jsonl.new").exists()


def test_other_settings_are_named(toolshift: Run, out: Path) -> None:
    manifest = out / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"class"', '"settings": {"x": 1}, "class"'))
    code, _, err = toolshift(*ORACLE)
    assert code == 2
    assert "changed: oracle: x" in err


def with_other_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets every folder that is read next look as if it held another version of a shift."""
    read = RunFolder.read.__func__  # type: ignore[attr-defined]

    def altered(cls: type[RunFolder], path: Path) -> RunFolder:
        folder: RunFolder = read(cls, path)
        if Path(path).name == "out":
            folder.manifest.shifts["fatal_error"] = 99
        return folder

    monkeypatch.setattr(RunFolder, "read", classmethod(altered))


def test_other_versions_of_a_shift_are_neither_compared_nor_graded(
    toolshift: Run, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert toolshift(*RUN, "oracle", "--out", "later")[0] == 0
    with_other_versions(monkeypatch)
    code, _, err = toolshift("compare", out, "later")
    assert code == 2
    assert "fatal_error is version 99 in out and 1 in later" in err
    code, _, err = toolshift("regrade", out)
    assert code == 2
    assert "version 99 of fatal_error, and the current version is 1" in err


def test_another_toolshift_is_noted(toolshift: Run, out: Path) -> None:
    assert toolshift(*RUN, "oracle", "--out", "later")[0] == 0
    manifest = out / "manifest.json"
    found = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**found, "toolshift": "0.0.1"}))
    code, _, err = toolshift("compare", out, "later")
    assert code == 0
    assert "out was run with ToolShift 0.0.1" in err


def test_verdicts_are_not_written_into_a_folder_in_use(toolshift: Run, out: Path) -> None:
    with RunFolder.read(out).held():
        code, _, err = toolshift("regrade", out, "--write")
        assert toolshift("regrade", out)[0] == 0
    assert code == 2
    assert "in use" in err


def test_a_fault_of_the_system_is_one_line(toolshift: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "somewhere")

    monkeypatch.setattr("toolshift.cli.listing.world_names", fails)
    code, _, err = toolshift("list")
    assert code == 2
    assert err.startswith("Error: somewhere: Permission denied")
    assert err.count("\n") == 1


AGENT = """
class Own:
    name = "own"
    settings = {"style": (1, 2)}

    def reply(self, turn):
        return "I cannot do this."
"""


def test_a_changed_agent_of_ones_own_is_noticed(toolshift: Run, tmp_path: Path) -> None:
    file = tmp_path / "agents_of_mine.py"
    words = (*RUN, "agents_of_mine:Own", "--out", "own")
    file.write_text(AGENT)
    assert toolshift(*words)[0] == 0
    assert toolshift(*words)[0] == 0
    file.write_text(AGENT + "# better now\n")
    sys.modules.pop("agents_of_mine")
    code, _, err = toolshift(*words)
    assert code == 2
    assert "changed: own: source_sha256" in err


# -- compressed ----------------------------------------------------------------------------------


@pytest.fixture(params=PACKED)
def packed(request: pytest.FixtureRequest, out: Path) -> tuple[Path, str]:
    """A finished run whose files of lines are compressed, and the name of its first episode."""
    first = json.loads((out / "episodes.jsonl").read_bytes().splitlines()[0])["episode"]
    for name in ("episodes.jsonl", "timings.jsonl", "plan.jsonl"):
        content = (out / name).read_bytes()
        assert pack(content, request.param) == pack(content, request.param)
        (out / f"{name}{request.param}").write_bytes(pack(content, request.param))
        (out / name).unlink()
    return out, first


def test_compressed_episodes_are_read(toolshift: Run, packed: tuple[Path, str]) -> None:
    out, episode = packed
    for words in (("report", out), ("compare", out, out), ("regrade", out), ("trace", out)):
        code, found, err = toolshift(*words)
        assert code == 0, err
    code, found, err = toolshift("regrade", out)
    assert "4 episodes graded again: 0 verdicts changed" in found
    assert episode in toolshift("trace", out, "--json")[1]
    assert toolshift("trace", out, episode)[0] == 0


def test_compressed_episodes_are_served(packed: tuple[Path, str]) -> None:
    out, _ = packed
    book = Book([RunFolder.read(out)])
    rows = book.rows(0, "")
    assert len(rows["rows"]) == rows["planned"] == 4
    assert book.rows(4, rows["version"]) == {**rows, "rows": []}, "nothing is new"


def test_verdicts_are_written_where_they_were(toolshift: Run, packed: tuple[Path, str]) -> None:
    out, _ = packed
    folder = RunFolder.read(out)
    records = list(folder.records())
    folder.rewrite(records[:1])
    assert list(folder.records()) == records[:1]
    assert not (out / "episodes.jsonl").exists()


def test_a_compressed_run_can_go_on(toolshift: Run, packed: tuple[Path, str]) -> None:
    out, _ = packed
    folder = RunFolder.read(out)
    records = list(folder.records())
    folder.rewrite(records[:1])
    assert toolshift(*ORACLE)[0] == 0
    assert list(RunFolder.read(out).records()) == records
    assert folder.episodes.name == "episodes.jsonl"
    assert not list(out.glob("timings.jsonl.*")), "a second file beside it would hide these times"


def test_a_damaged_compressed_run_is_named(toolshift: Run, packed: tuple[Path, str]) -> None:
    (log,) = packed[0].glob("episodes.jsonl.*")
    content = log.read_bytes()
    half = len(content) // 2
    for damaged in (content[:-20], content[:half] + b"\0" * 20 + content[half + 20 :]):
        log.write_bytes(damaged)
        code, _, err = toolshift("trace", packed[0])
        assert code == 2
        assert f"{log.name} is damaged" in err


def test_a_manifest_whose_agents_have_no_name_is_damaged(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    toolshift.evaluate("oracle", worlds=["poi"], kinds=["listing"], tasks=1, shifts=(), out=folder)
    file = folder / "manifest.json"
    said = json.loads(file.read_text())
    del said["agents"][0]["name"]
    file.write_text(json.dumps(said))
    with pytest.raises(UsageError, match=r"is damaged.*an agent has no name"):
        RunFolder.read(folder)
