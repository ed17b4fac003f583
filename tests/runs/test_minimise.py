"""What may go wrong while a scene is made smaller."""

from __future__ import annotations

import pytest

from toolshift.agents.catalog import contestants
from toolshift.core.errors import UsageError
from toolshift.core.message import Reply, Turn
from toolshift.core.scene import Scene
from toolshift.core.shift import NotApplicable
from toolshift.runs.cell import Cell
from toolshift.runs.minimise import find_smallest
from toolshift.runs.suite import read_task

CELL = read_task("poi/listing", "identity_erasure:2")


class Asks:
    """Asks what the simulated user cannot understand, in ever other words."""

    name = "asks"

    def reply(self, turn: Turn) -> str:
        return f"Zork{'k' * len(turn.messages)}?"


class Crashes:
    name = "crashes"

    def reply(self, turn: Turn) -> Reply:
        raise ValueError("broken")


def build_with(monkeypatch: pytest.MonkeyPatch, fault: Exception, smaller_only: bool) -> None:
    from toolshift.runs.cell import build

    def made(cell: Cell) -> Scene:
        if cell != CELL or not smaller_only:
            raise fault
        return build(cell)

    monkeypatch.setattr("toolshift.runs.minimise.build", made)


def test_a_void_episode_is_said_to_be_void() -> None:
    with pytest.raises(UsageError, match="is void now: simulator"):
        find_smallest(
            contestants([Asks()])[0], read_task("poi/booking", "query_underspecification:2")
        )


def test_a_scene_that_cannot_be_made_is_not_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    build_with(monkeypatch, NotApplicable("gone"), smaller_only=False)
    with pytest.raises(UsageError, match=r"not applicable .* gone"):
        find_smallest(contestants(["memorises_names"])[0], CELL)


@pytest.mark.parametrize("fault", [ZeroDivisionError("a bug"), UsageError("changed")])
def test_real_errors_in_smaller_scenes_are_raised(
    monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    build_with(monkeypatch, fault, smaller_only=True)
    with pytest.raises(type(fault)):
        find_smallest(contestants(["memorises_names"])[0], CELL)


def test_smaller_scenes_that_are_not_applicable_are_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build_with(monkeypatch, NotApplicable("no"), smaller_only=True)
    assert find_smallest(contestants(["memorises_names"])[0], CELL).cell == CELL


def test_an_agent_that_raises_can_be_minimised() -> None:
    assert find_smallest(contestants([Crashes()])[0], CELL).cause == "broke_down"
