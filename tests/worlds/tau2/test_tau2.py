"""Domains of tau2-bench as worlds; most of it needs the package, which is not on PyPI."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from running import Run

from toolshift.core.errors import UsageError
from toolshift.core.message import Reply, ToolCall
from toolshift.core.scene import Scene
from toolshift.core.shift import NotApplicable
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import Grade, grade
from toolshift.episode.oracle import OracleAgent
from toolshift.shifts.registry import apply, shifts
from toolshift.worlds.tau2 import find_tau2, package

installed = pytest.mark.skipif(
    find_spec("tau2") is None or find_spec("tau2.domains") is None,
    reason="tau2-bench is not installed (it is not on PyPI; docs/tau2.md)",
)


def test_a_missing_package_is_said_with_where_it_is(
    toolshift: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package, "find_spec", lambda name: None)
    code, _, said = toolshift("run", "--world", "tau2:retail", "--agent", "oracle")
    assert code == 2
    assert "tau2-bench, which is not installed: clone github.com/sierra-research" in said
    code, _, said = toolshift("run", "--world", "tau2:retial", "--agent", "oracle")
    assert (code, "did you mean retail?" in said) == (2, True)


@pytest.mark.skipif(find_spec("tau2") is not None, reason="tau2-bench is installed")
def test_the_package_of_the_same_name_is_told_from_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tau2").mkdir()
    (tmp_path / "tau2" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UsageError, match="the package tau2 of PyPI is another one"):
        package.domain("retail")


def scene_of(index: int) -> Scene:
    return make_scene(find_tau2("tau2:mock"), "mock", index)


def made(scene: Scene, *calls: tuple[str, dict[str, Any]], refuse: bool = False) -> Grade:
    episode = Episode(scene)
    for name, arguments in calls:
        episode.take(Reply(calls=(ToolCall(name, arguments),)))
    if refuse:
        episode.refuse("tool_unavailable")
    else:
        episode.answer("Done.")
    return grade(episode)


@installed
def test_the_state_of_the_database_decides() -> None:
    for index in range(find_tau2("tau2:mock").counts["mock"]):
        scene = scene_of(index)
        right = [(each.name, dict(each.arguments)) for each in scene.expected]  # type: ignore[attr-defined]
        assert made(scene, *right).passed
        assert made(scene, *right, refuse=True).passed
        assert not made(scene).passed
        assert not made(scene, *right[:-1], ("no_such_tool", {})).passed


@installed
def test_the_oracle_proves_a_task_under_every_shift_that_applies() -> None:
    applied = 0
    for name in shifts():
        try:
            scene = apply(scene_of(0), name, 2)
        except NotApplicable:
            continue
        episode = Episode(scene, live=False)
        OracleAgent().play(episode)
        found = grade(episode)
        assert found.passed, name
        assert found.solvable or found.right_reason, name
        applied += 1
    assert applied > 15


@installed
def test_tasks_that_need_a_model_or_nothing_are_left_out_with_the_reason() -> None:
    assert set(find_tau2("tau2:mock").left_out.values()) >= {
        "doing nothing would pass",
        "it begins in the middle of a conversation",
    }
