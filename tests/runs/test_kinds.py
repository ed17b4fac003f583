"""A task kind is named as in `show`: with its world, where that is to be said."""

from __future__ import annotations

import pytest

from toolshift.core.errors import UsageError
from toolshift.runs.plan import make_plan
from toolshift.runs.suite import Selection, select


def drawn(**asked: object) -> set[tuple[str, str]]:
    chosen = Selection.of(tasks=4, shifts="clean", placebo=False, **asked)
    return {(cell.world, cell.kind) for cell in make_plan(select(chosen)).cells}


@pytest.mark.parametrize("kind", ["poi/booking", "retail/refund"])
def test_a_kind_with_its_world_is_that_of_world_and_kind(kind: str) -> None:
    world, _, name = kind.partition("/")
    assert drawn(kinds=kind) == drawn(worlds=world, kinds=name) == {(world, name)}
    assert drawn(kinds=kind, worlds=[world]) == {(world, name)}


def test_kinds_of_several_worlds_are_drawn_of_each() -> None:
    assert drawn(kinds=["poi/booking", "retail/refund"]) == {
        ("poi", "booking"),
        ("retail", "refund"),
    }


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"kinds": "poi/bookin"}, "unknown task kind of poi 'bookin': did you mean booking"),
        ({"kinds": "pio/booking"}, "unknown world 'pio'"),
        ({"kinds": "poi/booking/3"}, "leave the index out: booking"),
        ({"kinds": "poi/booking", "worlds": "retail"}, "other worlds are selected"),
        ({"kinds": ["poi/booking", "refunds"]}, "unknown task kind 'refunds'"),
    ],
)
def test_a_kind_that_is_none_is_refused(asked: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        drawn(**asked)
