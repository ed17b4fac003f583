"""A stored run in Python: what it says is what was played, it starts nothing, and it stays lazy."""

from __future__ import annotations

import asyncio
import gzip
import lzma
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest

import toolshift
from toolshift.core.message import Turn
from toolshift.episode.grade import Grade
from toolshift.runs.run_folder import RunFolder
from toolshift.stored_run import COLUMNS, StoredEpisode

SHIFTS = ("identity_erasure:2", "query_typos:1+format_drift:3")


class Keeping:
    """Plays the first turns of each episode, and keeps what it was shown."""

    name = "keeping"

    def __init__(self) -> None:
        self.turns: list[Turn] = []

    def reply(self, turn: Turn) -> toolshift.Reply:
        self.turns.append(turn)
        if len(turn.messages) > 2:
            return toolshift.Reply("I cannot find it, sorry.")
        call = toolshift.ToolCall(turn.tools[0]["function"]["name"], {})
        return toolshift.Reply(calls=(call,), usage=toolshift.Usage(10, 2, 0.5))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Keeping, Any]:
    """A run of two agents, what one of them was shown, and the report."""
    folder, agent = tmp_path_factory.mktemp("runs") / "first", Keeping()
    report = toolshift.evaluate(
        [agent, "oracle"], shifts=SHIFTS, tasks=3, out=folder, concurrency=1
    )
    return folder, agent, report


def test_a_run_says_what_it_is(played: tuple[Path, Keeping, Any]) -> None:
    folder, _, report = played
    run = toolshift.read_run(str(folder))
    assert (run.agents, run.worlds, run.version) == (
        ("keeping", "oracle"),
        ("poi",),
        toolshift.__version__,
    )
    assert run.planned == len(run.episodes) == 2 * 3 * 4
    assert run.report.to_dict() == report.to_dict()
    assert run.report.summary() == report.summary()
    assert run.manifest["agents"][1]["name"] == "oracle"
    assert "episodes of" in repr(run.episodes)
    assert "steps" not in repr(run.episodes[0])


def test_episodes_are_those_of_the_folder(played: tuple[Path, Keeping, Any]) -> None:
    folder = RunFolder.read(played[0])
    run = toolshift.read_run(played[0])
    for record, episode in zip(folder.records(), run.episodes, strict=True):
        cell = folder.cell(record)
        assert isinstance(episode.grade, Grade)
        assert (episode.id, episode.agent, episode.end) == (
            record.episode,
            record.agent,
            record.end,
        )
        assert (episode.grade, episode.steps, episode.usage) == (
            record.grade,
            record.steps,
            record.usage,
        )
        assert (episode.scene, episode.shifts) == (cell.lineage, cell.stack)
        assert episode.seconds == folder.timings()[record.episode]


def test_messages_and_tools_are_those_that_the_agent_was_shown(
    played: tuple[Path, Keeping, Any],
) -> None:
    run = toolshift.read_run(played[0])
    mine = [episode for episode in run.episodes if episode.agent == "keeping"]
    shown = {len(each.messages) for each in mine}
    assert min(shown) > 3
    for episode in mine:
        begun = [t for t in played[1].turns if list(t.messages) == episode.messages[:2]]
        assert begun
        assert episode.tools in [list(turn.tools) for turn in begun]
        last = [t for t in played[1].turns if list(t.messages) == episode.messages[:-1]]
        assert last, "the whole conversation but the agent's last word"


def test_a_scene_can_be_played_again_from_what_an_episode_says(
    played: tuple[Path, Keeping, Any],
) -> None:
    for episode in toolshift.read_run(played[0]).episodes:
        if episode.agent == "oracle":
            again = toolshift.attempt(
                "oracle",
                episode.task,
                episode.shifts,
                seed=episode.seed,
                pool=episode.pool,
                size=episode.size,
                trial=episode.trial,
            )
            assert again == episode.grade


def test_episodes_are_a_sequence(played: tuple[Path, Keeping, Any]) -> None:
    episodes = toolshift.read_run(played[0]).episodes
    every = list(episodes)
    assert episodes[-1] == every[-1]
    assert episodes[2:5] == every[2:5]
    assert list(reversed(episodes)) == every[::-1]
    assert every[3] in episodes
    assert len({*every}) == len(every)
    picked = random.Random(1).sample(episodes, 5)
    assert all(isinstance(each, StoredEpisode) for each in picked)
    with pytest.raises(IndexError):
        episodes[len(every)]


@pytest.mark.parametrize(("suffix", "packed"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_a_compressed_run_is_read(
    played: tuple[Path, Keeping, Any], tmp_path: Path, suffix: str, packed: Any
) -> None:
    for file in played[0].iterdir():
        keep = file.name not in ("plan.jsonl", "episodes.jsonl", "timings.jsonl")
        name = file.name if keep else file.name + suffix
        content = file.read_bytes()
        (tmp_path / name).write_bytes(content if keep else packed(content))
    run, plain = toolshift.read_run(tmp_path), toolshift.read_run(played[0])
    assert list(reversed(run.episodes)) == list(reversed(plain.episodes))


def copied(folder: Path, to: Path) -> Path:
    """A copy of a run folder."""
    to.mkdir()
    for file in folder.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    return to


def test_a_run_that_was_killed_or_goes_on_is_read(
    played: tuple[Path, Keeping, Any], tmp_path: Path
) -> None:
    there = copied(played[0], tmp_path / "run")
    file = there / "episodes.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:5]) + lines[5][:40])
    run = toolshift.read_run(there)
    episodes = run.episodes
    assert (len(episodes), run.planned) == (5, 24)
    file.write_bytes(b"".join(lines))
    assert len(list(episodes)) == len(episodes) == 5
    assert len(toolshift.read_run(there).episodes) == 24
    file.unlink()
    empty = toolshift.read_run(there)
    assert list(empty.episodes) == list(empty.rows()) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: [*lines, lines[0]], "there twice"),
        (lambda lines: [lines[0], b"{}\n"], "line 2"),
        (lambda lines: [lines[0], b"\xff\n"], "line 2"),
        (lambda lines: [lines[0].replace(b'"keeping"', b'"other"')], "manifest.json does not"),
        (lambda lines: [lines[0].replace(b'"end":"', b'"end":"un')], "line 1"),
    ],
    ids=["twice", "no episode", "no text", "another agent", "no such end"],
)
def test_damage_is_said_with_its_place(
    played: tuple[Path, Keeping, Any], tmp_path: Path, change: Any, said: str
) -> None:
    there = copied(played[0], tmp_path / "run")
    file = there / "episodes.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(change(lines)))
    with pytest.raises(toolshift.UsageError, match=said):
        list(toolshift.read_run(there).episodes)


@pytest.mark.parametrize("path", ["nowhere", 3, None, "s3://bucket/run", ""])
def test_what_is_no_run_is_said(path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(toolshift.UsageError):
        toolshift.read_run(path)


def test_a_large_run_does_not_fill_memory(
    played: tuple[Path, Keeping, Any], tmp_path: Path
) -> None:
    there = copied(played[0], tmp_path / "run")
    file = there / "episodes.jsonl"
    wide = []
    for line in file.read_bytes().splitlines():
        record = msgspec.json.decode(line)
        record["steps"][-1]["said"] = "x" * 2_000_000
        wide.append(msgspec.json.encode(record) + b"\n")
    file.write_bytes(b"".join(wide))
    del wide
    episodes = toolshift.read_run(there).episodes
    list(episodes[:1])
    tracemalloc.start()
    count = sum(len(episode.steps) for episode in episodes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count
    assert peak < 16_000_000 < file.stat().st_size


PLUGIN = """
import os
from dataclasses import dataclass
from toolshift import Change, Layer, shift

open({mark!r}, "a").write("imported ")


@shift(tier="perception", dimension="action")
def louder(scene, rng, severity):
    from toolshift import Surface
    names = {{tool.name: tool.name.upper() for tool in scene.tools}}
    return Change(layer=Surface(names=names))
"""


def test_to_read_a_run_imports_nothing_of_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    (tmp_path / "louder.py").write_text(PLUGIN.format(mark=str(mark)))
    words = "--plugin louder.py run --agent oracle --shift louder --tasks 2 --out out"
    command = [sys.executable, "-m", "toolshift", *words.split()]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    mark.unlink()
    run = toolshift.read_run(tmp_path / "out")
    for episode in run.episodes:
        assert episode.messages
        shifted = bool(episode.shifts) and episode.shift == "louder"
        assert any(t["function"]["name"].isupper() for t in episode.tools) == shifted
    assert not mark.exists()
    (tmp_path / "out" / "own.json").unlink()
    old = [e for e in toolshift.read_run(tmp_path / "out").episodes if e.shift == "louder"]
    assert all(episode.grade.passed and episode.steps for episode in old)
    with pytest.raises(toolshift.UsageError, match="louder"):
        old[0].messages  # noqa: B018
    with pytest.raises(toolshift.UsageError, match="louder"):
        old[0].tools  # noqa: B018
    assert not mark.exists()


# -- tables ----------------------------------------------------------------------------------------


def test_rows_are_plain_and_have_every_column(played: tuple[Path, Keeping, Any]) -> None:
    for row in toolshift.read_run(played[0]).rows():
        assert list(row) == list(COLUMNS)
        for name, value in row.items():
            assert type(value) is COLUMNS[name] or (value is None and COLUMNS[name] is float)


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_table_has_a_row_for_each_episode(
    played: tuple[Path, Keeping, Any], package: str, tmp_path: Path
) -> None:
    pytest.importorskip(package)
    run = toolshift.read_run(played[0])
    table = getattr(run, f"to_{package}")()
    assert list(table.columns) == list(COLUMNS)
    assert len(table) == len(run.episodes)
    assert list(table["passed"]) == [episode.grade.passed for episode in run.episodes]
    assert list(table["id"]) == [episode.id for episode in run.episodes]
    there = copied(played[0], tmp_path / "run")
    (there / "episodes.jsonl").write_bytes(b"")
    empty = getattr(toolshift.read_run(there), f"to_{package}")()
    assert list(map(str, empty.dtypes)) == list(map(str, table.dtypes))


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_without_the_package_it_is_said_what_to_install(
    played: tuple[Path, Keeping, Any], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(toolshift.UsageError, match=f"pip install {package}"):
        getattr(toolshift.read_run(played[0]), f"to_{package}")()


def test_a_run_is_read_from_several_threads(played: tuple[Path, Keeping, Any]) -> None:
    episodes = toolshift.read_run(played[0]).episodes
    every = list(episodes)

    async def read() -> list[StoredEpisode]:
        jobs = [asyncio.to_thread(episodes.__getitem__, n) for n in range(len(every))]
        return list(await asyncio.gather(*jobs))

    assert asyncio.run(read()) == every
