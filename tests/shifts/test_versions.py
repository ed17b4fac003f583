"""Versions of shifts and suites: what an earlier one measured can be measured again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest

from tests.running import Run
from toolshift.core.errors import UsageError
from toolshift.core.layer import Layer
from toolshift.core.scene import Applied, Scene
from toolshift.core.shift import Change, Severity, declared, shift
from toolshift.core.tool import Tool
from toolshift.episode.draw import make_scene
from toolshift.runs import cell as cells
from toolshift.runs.cell import Cell, build
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import Selection, select
from toolshift.shifts.registry import apply, find_shift, shifts
from toolshift.shifts.stacks import read_arms, read_stack
from toolshift.worlds.registry import find_world


class Worded(Layer):
    """Ends every description with a word."""

    def __init__(self, word: str) -> None:
        self.word = word

    def tools(self, tools: tuple[Tool, ...], memory: object) -> tuple[Tool, ...]:
        return tuple(t.with_(description=f"{t.description} {self.word}") for t in tools)


def _register(version: int, name: str = "", one_level: bool = False) -> None:
    """A shift whose text says its version and a number of its draw."""

    def worded(scene: Scene, rng: Random, severity: Severity) -> Change:
        return Change(Worded(f"v{version} {rng.randrange(10**9)}"))

    shift(
        tier="perception",
        dimension="action",
        level=1,
        imitates="x",
        version=version,
        name=name,
        one_level=one_level,
    )(worded)


@pytest.fixture
def worded() -> Iterator[None]:
    """A shift of which version 1 alone is there."""
    _register(1)
    yield
    for name in [each for each in declared if each.startswith("worded")]:
        del declared[name]


@pytest.fixture
def reworded(worded: None) -> None:
    """The same with version 2, and version 1 kept."""
    del declared["worded"]
    cells._shifted.cache_clear()  # scenes of what the name meant before
    _register(1, "worded@1")
    _register(2)


def _scene() -> Scene:
    return make_scene(find_world("poi"), "listing", 0)


def _last_words(scene: Scene) -> list[str]:
    return scene.tools[0].description.split()[-2:]


@pytest.mark.usefixtures("worded")
def test_the_only_version_goes_by_its_name_alone() -> None:
    assert find_shift("worded@1") is find_shift("worded")
    assert read_stack("worded@1:3") == (Applied("worded", 3),)
    assert apply(_scene(), "worded@1", 2).shifts == (Applied("worded", 2),)
    with pytest.raises(UsageError, match=r"'worded@7': versions of worded: 1$"):
        find_shift("worded@7")


@pytest.mark.usefixtures("reworded")
def test_a_name_alone_is_the_version_of_today() -> None:
    assert find_shift("worded").version == find_shift("worded@2").version == 2
    assert find_shift("worded@1").version == 1
    assert "worded" in shifts()
    assert "worded@1" not in shifts()
    assert _last_words(apply(_scene(), "worded", 2))[0] == "v2"
    with pytest.raises(UsageError, match=r"versions of worded: 1, 2$"):
        find_shift("worded@3")
    assert not select(
        Selection("standard@2", without=("worded",), shifts=("worded", "worded@1"))
    ).arms


def test_a_former_version_makes_the_scenes_it_made(
    worded: None, request: pytest.FixtureRequest
) -> None:
    before = apply(_scene(), "worded", 3)
    cell = Cell("poi", "listing", 0, 0, "dev", 200, (Applied("worded", 3),))
    once = cell.id
    request.getfixturevalue("reworded")
    after = apply(_scene(), "worded@1", 3)
    assert _last_words(after) == _last_words(before)
    former = msgspec.structs.replace(cell, shifts=(Applied("worded@1", 3),))
    assert former.id == once
    assert cell.id != once


def test_a_run_of_before_is_read_as_what_it_was(
    worded: None, request: pytest.FixtureRequest, toolshift: Run, tmp_path: Path
) -> None:
    run = ("run", "--agent", "oracle", "--tasks", "2", "--workers", "1", "--shift", "worded")
    assert toolshift(*run, "--out", tmp_path / "old")[0] == 0
    request.getfixturevalue("reworded")
    assert toolshift(*run, "--out", tmp_path / "new")[0] == 0
    old, new = (RunFolder.read(tmp_path / name) for name in ("old", "new"))
    assert old.manifest.shifts == {"placebo": 1, "worded@1": 1}
    assert new.manifest.shifts == {"placebo": 1, "worded": 2}
    for folder, said in ((old, "v1"), (new, "v2")):
        met = [folder.cell(record) for record in folder.records()]
        shifted = [build(cell) for cell in met if cell.stack.startswith("worded")]
        assert len(shifted) == 2
        assert all(_last_words(scene)[0] == said for scene in shifted)
    code, said, _ = toolshift("regrade", tmp_path / "old")
    assert code == 0
    assert "0 verdicts changed" in said
    assert toolshift(*run[:-1], "worded@1", "--out", tmp_path / "again")[0] == 0
    code, said, fault = toolshift("compare", tmp_path / "old", tmp_path / "again")
    assert code == 0, fault
    code, said, notes = toolshift("compare", tmp_path / "old", tmp_path / "new")
    assert "2 scenes" in said
    assert "worded: the runs have different versions of it, which are not compared" in notes


def test_a_shift_of_one_level_is_not_repeated(worded: None) -> None:
    _register(1, one_level=True)
    assert [arm.shifts for arm in read_arms("worded", (1, 2, 3))] == [(Applied("worded", 2),)]
    assert read_arms("worded:2") == read_arms("worded", (3,))
    with pytest.raises(UsageError, match="severity 3 of worded: it has one level"):
        read_arms("worded:3")
    with pytest.raises(UsageError, match="severity 1 of worded: it has one level"):
        apply(_scene(), "worded", 1)
