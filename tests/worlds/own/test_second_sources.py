"""Shifts that make second sources and old copies out of the results of somebody else's tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolshift import NotApplicable, evaluate
from toolshift.core.scene import Scene
from toolshift.core.shift import Change, Unproved
from toolshift.episode.draw import make_scene
from toolshift.runs.own_checking import check_tasks
from toolshift.shifts import registry
from toolshift.shifts.registry import apply
from toolshift.shifts.rewiring import Part, Rewired
from toolshift.worlds.own import load

TOOLS = '''
"""A hire shop."""

from typing import TypedDict


class Money(TypedDict):
    amount: float
    currency: str


class Booking(TypedDict):
    number: str
    assignee: str | None
    lines: list[str]
    paid: bool
    due: str
    seen: str
    gross: Money
    seats: int
    deposit: float | None


BOOKINGS: dict[str, Booking] = {
    "B-71": {
        "number": "B-71", "assignee": "Lena", "lines": ["AC-301", "PW-9"], "paid": False,
        "due": "2026-03-26", "seen": "2026-03-01T09:30:00Z", "seats": 4, "deposit": None,
        "gross": {"amount": 1250.0, "currency": "EUR"},
    },
}
BOOKINGS["B-72"] = {**BOOKINGS["B-71"], "number": "B-72", "assignee": "Omar"}


def get_booking(number: str) -> Booking:
    """Get one booking."""
    return BOOKINGS[number]
'''

Made = Callable[..., Scene]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    (tmp_path / "hire_tools.py").write_text(TOOLS)

    def scene(*checks: str) -> Scene:
        tasks = [
            f"  - id: t{place}\n    ask: Tell me of booking B-7{place}.\n"
            f"    calls: [{{name: get_booking, arguments: {{number: B-7{place}}}}}]\n"
            f"    check: {{{check}}}\n"
            for place, check in enumerate(checks, 1)
        ]
        file = tmp_path / "tasks.yaml"
        head = "world: hire\ntools: {python: hire_tools}\nwrites: []\ntasks:\n"
        file.write_text(head + "".join(tasks))
        load.__globals__["_load"].cache_clear()
        return make_scene(load(file), "task", 0)

    return scene


def returned(scene: Scene) -> dict[str, Any]:
    """What each shown tool returns."""
    session = scene.open()
    results = {tool.name: session.call(tool.name, {"number": "B-71"}) for tool in session.tools()}
    return {name: result.data for name, result in results.items()}


TRUE: dict[str, Any] = {
    "number": "B-71", "assignee": "Lena", "lines": ["AC-301", "PW-9"], "paid": False,
    "due": "2026-03-26", "seen": "2026-03-01T09:30:00Z", "seats": 4, "deposit": None,
    "gross": {"amount": 1250.0, "currency": "EUR"},
}  # fmt: skip


@pytest.mark.parametrize("severity", [2, 3])
def test_the_authoritative_source_returns_the_whole_record(made: Made, severity: int) -> None:
    found = returned(apply(made("answer: 2026-03-26"), "conflicting_sources", severity))
    assert found.pop("get_booking_live") == TRUE
    for old in found.values():
        assert list(old) == list(TRUE)
        assert old != TRUE


def test_parts_of_a_split_tool_return_all_of_it_between_them(made: Made) -> None:
    found = returned(apply(made("answer: Lena"), "split_tools", 1))
    assert len(found) == 2
    assert {key: value for part in found.values() for key, value in part.items()} == TRUE


def test_an_old_copy_has_other_values_of_the_same_types_and_the_same_ids(made: Made) -> None:
    found = returned(apply(made("answer: AC-301"), "conflicting_sources", 1))
    assert found["get_booking"] == TRUE
    assert found["get_booking_cached"] == {
        "number": "B-71", "assignee": "Lena", "lines": ["AC-300", "PW-9"], "paid": True,
        "due": "2026-03-17", "seen": "2026-02-20T09:30:00Z", "seats": 7, "deposit": None,
        "gross": {"amount": 1563.5, "currency": "EUR"},
    }  # fmt: skip


@pytest.mark.parametrize("example", ["", ", example: '{}'"])
@pytest.mark.parametrize(
    ("answer", "keys"),
    [
        ("1250", ["gross"]),
        ("2026-03-26", ["due"]),
        ("no", ["paid"]),
        ("AC-301", ["lines"]),
        ("[AC-301, 2026-03-26]", ["lines", "due"]),
        ("4", ["seats"]),
        ("Lena", ["assignee"]),
    ],
)
def test_what_an_answer_needs_is_another_in_an_old_copy(
    made: Made, answer: str, keys: list[str], example: str
) -> None:
    example = example.format(answer.strip("[]"))
    scene = made(f"answer: {answer}{example}", "answer: Omar")
    for severity in (1, 2, 3):
        found = returned(apply(scene, "conflicting_sources", severity))
        right = found.pop("get_booking" if severity == 1 else "get_booking_live")
        assert right == TRUE
        assert all(old[key] != right[key] for old in found.values() for key in keys)


@pytest.mark.parametrize("check", ["answer: Lena", "answer: Lena, example: It is Lena."])
def test_sources_that_would_not_disagree_are_not_applicable(made: Made, check: str) -> None:
    with pytest.raises(NotApplicable, match="would give the same answer"):
        apply(made(check), "conflicting_sources", 2)


def loses_assignees(scene: Scene, *_: Any) -> Change:
    """Takes away what the task asks for, as a shift with a fault would."""
    tool = scene.tools[0]
    part = Part(tool, tuple(f for f in tool.returns if f.path != ("assignee",)))
    return Change(layer=Rewired(frozenset((tool.name,)), ((tool, part),)))


@pytest.mark.parametrize("check", ["answer: Lena", "answer: Lena, example: It is Lena."])
def test_a_scene_that_is_not_proved_is_left_out_and_its_shift_is_named(
    made: Made, monkeypatch: pytest.MonkeyPatch, check: str
) -> None:
    real = registry._change

    def change(shift: Any, scene: Scene, rng: Any, severity: Any) -> Change:
        known = shift.base == "format_drift" and severity == 2
        return loses_assignees(scene) if known else real(shift, scene, rng, severity)

    monkeypatch.setattr(registry, "_change", change)
    scene = made(check)
    with pytest.raises(Unproved, match="does not pass the task's own check"):
        apply(scene, "format_drift", 2)
    (tried,) = check_tasks(scene.world)  # type: ignore[arg-type]
    assert (tried.state, tried.unproved) == ("ok", ("format_drift:2",))
    assert "format_drift:2" in tried.said
    path = scene.world.file.path  # type: ignore[attr-defined]
    report = evaluate(
        ["oracle"], worlds=[str(path)], shifts=["format_drift:2", "format_drift:3"], placebo=False
    )
    (agent,) = report.agents
    assert [row.episodes for row in agent.shifts] == [1]
    (skipped,) = report.skipped
    assert (skipped.shift, [*skipped.reasons]) == ("format_drift", [registry.UNPROVED])
