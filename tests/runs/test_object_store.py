"""A run in an object store: streamed in parts, taken up from them, complete at the end."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from running import Run

from toolshift.core.errors import UsageError
from toolshift.runs.location import is_address, placed

fsspec = pytest.importorskip("fsspec")
store = pytest.importorskip("toolshift.runs.object_store")

WORDS = ("run", "--agent", "oracle", "--tasks", "3", "--shift", "redirect:2")
KEPT = ("episodes.jsonl", "plan.jsonl", "report.txt")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the folders of runs are made, so that what a test keeps goes with the test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def memory() -> Any:
    """An object store in memory, empty before and after."""
    files = fsspec.filesystem("memory")
    files.rm("/", recursive=True) if files.ls("/") else None
    yield files
    files.rm("/", recursive=True) if files.ls("/") else None


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_run_lies_in_the_store_as_it_would_in_a_folder(
    kind: str, toolshift: Run, memory: Any, tmp_path: Path
) -> None:
    url = "memory://bucket/run" if kind == "memory" else f"file://{tmp_path}/far/run"
    assert toolshift(*WORDS, "--out", "here")[0] == 0
    code, out, _ = toolshift(*WORDS, "--out", url)
    assert code == 0
    assert f"Run folder: {url}" in out
    files, root = fsspec.core.url_to_fs(url)
    assert not files.exists(f"{root}/parts")
    for name in KEPT:
        assert files.cat_file(f"{root}/{name}") == Path("here", name).read_bytes()
    assert {Path(each).name for each in files.ls(root, detail=False)} == {
        path.name for path in Path("here").iterdir() if path.name != ".lock"
    }
    assert toolshift(*WORDS, "--out", url)[0] == 0  # nothing more is run
    code, _, err = toolshift(*WORDS, "--seed", "3", "--out", url)
    assert (code, "contains a run of another plan" in err) == (2, True)


def test_a_run_that_was_stopped_goes_on_from_the_parts(
    toolshift: Run, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "SECONDS", 0.0)
    words = ("run", "--agent", "mine:refuses", "--tasks", "3", "--shift", "redirect:2")
    assert toolshift(*words, "--out", "here")[0] == 0

    class Stops(store.Store):  # type: ignore[misc, name-defined]
        def stream(self, folder: Path, now: bool = False) -> None:
            super().stream(folder, now)
            if len(memory.find("/b/run/parts/episodes.jsonl")) == 4 and not now:
                raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(store, "Store", Stops)
        code, _, err = toolshift(*words, "--out", "memory://b/run")
    assert code == 130
    assert "--out memory://b/run" in err
    parts = memory.ls("/b/run/parts/episodes.jsonl", detail=False)
    before = b"".join(memory.cat_file(each) for each in sorted(parts))
    assert len(parts) >= 4
    assert 4 <= len(before.splitlines()) < 9
    code, _, _ = toolshift(*words, "--out", "memory://b/run")
    assert code == 0
    assert memory.cat_file("/b/run/episodes.jsonl") == Path("here/episodes.jsonl").read_bytes()
    times = memory.cat_file("/b/run/timings.jsonl").splitlines()
    assert len({json.loads(line)["episode"] for line in times}) == len(times) == 9
    assert not memory.exists("/b/run/parts")


def test_what_was_played_while_planning_is_streamed_too(
    toolshift: Run, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "SECONDS", 0.0)
    seen: list[int] = []

    class Stops(store.Store):  # type: ignore[misc, name-defined]
        def stream(self, folder: Path, now: bool = False) -> None:
            super().stream(folder, now)
            seen.append(len(memory.find("/b/run")))
            if len(seen) == 6 and not now:
                raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(store, "Store", Stops)
        code, _, err = toolshift(*WORDS, "--out", "memory://b/run")
    assert (code, "Stopped while planning" in err) == (130, True)
    assert memory.ls("/b/run/parts/.ahead.jsonl")
    assert toolshift(*WORDS, "--out", "memory://b/run")[0] == 0
    assert toolshift(*WORDS, "--out", "here")[0] == 0
    assert memory.cat_file("/b/run/episodes.jsonl") == Path("here/episodes.jsonl").read_bytes()
    assert not memory.exists("/b/run/parts")


def test_a_store_that_fails_for_a_while_costs_nothing_and_one_that_is_gone_is_said(
    memory: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(store, "SECONDS", 0.0)
    monkeypatch.setattr(store.time, "sleep", lambda seconds: None)
    put, fails = memory.pipe_file, [0]
    whole = memory.put_file

    def weak(*given: Any, **named: Any) -> Any:
        if fails[0]:
            fails[0] -= 1
            raise ConnectionError("reset by peer")
        return put(*given, **named)

    def weak_whole(*given: Any, **named: Any) -> Any:
        if fails[0]:
            raise ConnectionError("reset by peer")
        return whole(*given, **named)

    monkeypatch.setattr(type(memory), "pipe_file", lambda self, *a, **n: weak(*a, **n))
    monkeypatch.setattr(type(memory), "put_file", lambda self, *a, **n: weak_whole(*a, **n))
    with placed("memory://b/run") as place:
        fails[0] = 2
        for number in range(4):
            with (place.path / "episodes.jsonl").open("a") as file:
                file.write(f'{{"episode": "{number}"}}\ntorn')
            place.stream()
    assert memory.cat_file("/b/run/episodes.jsonl").count(b"torn") == 4
    err = capsys.readouterr().err
    assert err.count("memory://b/run cannot be written now (ConnectionError: reset by peer)") == 1
    kept: list[Path] = []

    def stopped() -> None:
        with placed("memory://c/run") as place:
            kept.append(place.path)
            fails[0] = 10**6
            (place.path / "episodes.jsonl").write_text("{}\n")
            raise KeyboardInterrupt

    with pytest.raises(UsageError, match="what is finished is in") as wrong:
        stopped()
    assert str(kept[0]) in str(wrong.value)
    assert (kept[0] / "episodes.jsonl").exists()


@pytest.mark.parametrize(
    ("url", "said"),
    [("nosuch://b/run", "nosuch"), ("memory://taken/run", "contains no run")],
    ids=["scheme", "taken"],
)
def test_what_cannot_be_a_place_is_said(url: str, said: str, toolshift: Run, memory: Any) -> None:
    memory.pipe_file("/taken/run/other.txt", b"x")
    code, _, err = toolshift(*WORDS, "--out", url)
    assert code == 2
    assert said in err
    assert not is_address("C:/runs")
    assert not is_address("://b/run")


def test_a_file_that_is_begun_again_replaces_its_parts(memory: Any, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    kept = store.Store("memory://b/run")
    for content in ("a\nb\n", "a\nb\nc\ntorn", "x\ny\nz\nlonger than before\n"):
        (here / "episodes.jsonl").write_text(content)
        kept.stream(here, now=True)
    store.Store("memory://b/run").bring(there)
    assert (there / "episodes.jsonl").read_text() == "x\ny\nz\nlonger than before\n"
    (here / "episodes.jsonl").unlink()
    kept.stream(here, now=True)
    assert not memory.find("/b/run/parts")


def test_half_of_what_is_brought_is_not_sent_back(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        memory.pipe_file(f"/b/run/parts/episodes.jsonl/{number:09}", b"%d\n" % number)
    read = type(memory).cat_file

    def stops(files: Any, path: str, *rest: Any, **more: Any) -> Any:
        if path.endswith("2"):
            raise KeyboardInterrupt
        return read(files, path, *rest, **more)

    monkeypatch.setattr(type(memory), "cat_file", stops)
    with pytest.raises(KeyboardInterrupt), placed("memory://b/run"):
        pass
    monkeypatch.undo()
    with placed("memory://b/run") as place:
        assert (place.path / "episodes.jsonl").read_bytes() == b"1\n2\n"


def test_a_store_that_cannot_be_written_is_said_before_anything_is_played(
    toolshift: Run, memory: Any, monkeypatch: pytest.MonkeyPatch, temporary: Path
) -> None:
    def refused(*given: Any, **named: Any) -> None:
        raise PermissionError("Access Denied")

    monkeypatch.setattr(store.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(type(memory), "pipe_file", refused)
    monkeypatch.setattr("toolshift.cli.running.planning", refused)
    code, _, err = toolshift(*WORDS, "--out", "memory://b/run")
    assert (code, "memory://b/run cannot be written (PermissionError: Access Denied)" in err) == (
        2,
        True,
    ), err
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_run_in_the_memory_of_a_process_is_said_to_be_gone_with_it(
    kind: str, memory: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with placed("memory://b/run" if kind == "memory" else f"file://{tmp_path}/far"):
        pass
    assert ("gone when it ends" in capsys.readouterr().err) == (kind == "memory")


def test_messages_name_the_address_and_no_folder_that_is_deleted(
    toolshift: Run, memory: Any, temporary: Path
) -> None:
    assert toolshift(*WORDS, "--out", "memory://b/run")[0] == 0
    before = memory.find("/b/run")
    code, _, err = toolshift(*WORDS, "--seed", "3", "--out", "memory://b/run")
    assert memory.find("/b/run") == before  # what was brought is not sent back
    assert (code, "Error: memory://b/run contains a run of another plan" in err) == (2, True), err
    assert str(temporary) not in err


def test_a_bucket_that_is_not_there_is_said_and_not_made(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_bucket(*given: Any, **named: Any) -> None:
        raise FileNotFoundError("The specified bucket does not exist")

    made: list[str] = []
    monkeypatch.setattr(store.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(type(memory), "pipe_file", no_bucket)
    monkeypatch.setattr(type(memory), "makedirs", lambda self, path, **named: made.append(path))
    kept = store.Store("memory://slip/run")
    kept._root = "slip/run"  # as S3 has it, without a slash before the bucket
    with pytest.raises(UsageError, match="The specified bucket does not exist"):
        kept.check()
    assert not made


def test_a_file_that_has_lost_lines_is_sent_anew(tmp_path: Path) -> None:
    here, far = tmp_path / "here", store.Store(f"file://{tmp_path}/far")
    here.mkdir()
    rows = [f'{{"episode": {number}}}\n' for number in range(9)]
    (here / "episodes.jsonl").write_text("".join(rows))
    far.stream(here, now=True)
    again = [*rows[:3], *rows[4:], *(f'{{"episode": {number}, "more": 1}}\n' for number in (3, 9))]
    (here / "episodes.jsonl").write_text("".join(again))  # larger than what was sent
    far.stream(here, now=True)
    there = tmp_path / "there"
    there.mkdir()
    store.Store(f"file://{tmp_path}/far").bring(there)
    assert (there / "episodes.jsonl").read_text() == "".join(again)
