"""What each shift of a stack changes is noted, and a shift that changes nothing is known."""

from __future__ import annotations

from typing import Any

import pytest

from toolshift.core.scene import Applied
from toolshift.core.tool import Result
from toolshift.interop.tools import from_mcp
from toolshift.shifts.live import Live, live_scene, shifted
from toolshift.shifts.watching import unchanged

LISTED = [
    {
        "name": "read_note",
        "description": "Read a note.",
        "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
    }
]


def opened(data: Any, *stack: tuple[str, int]) -> Live:
    toolbox = from_mcp(LISTED)
    scene = shifted(live_scene(toolbox), tuple(Applied(*one) for one in stack))
    return Live(scene, toolbox, lambda name, arguments: Result(True, data))


def called(live: Live) -> Any:
    (tool,) = live.tools()
    return live.call(tool.name, {param.name: "x" for param in tool.params})


def test_a_format_cannot_drift_in_a_sentence_and_that_is_known() -> None:
    live = opened("The kettle is red.", ("format_drift", 2), ("tool_name_noise", 1))
    spoken = called(live)
    assert spoken.result.data == "The kettle is red."
    assert spoken.by == ("tool_name_noise:1",)
    assert unchanged(live.changes) == ["format_drift:2"]
    noise = live.changes["tool_name_noise:1"]
    assert (noise.tools, noise.calls, noise.results) == (True, 1, 0)


@pytest.mark.parametrize("severity", [1, 2, 3])
@pytest.mark.parametrize(
    "data",
    [
        {"note_name": "x", "owner": {"full_name": "Mara"}},
        {"notes": [{"note_name": "x"}]},
        "note_name,owner_name\nx,Mara",
        "| note name | owner |\n|---|---|\n| x | Mara |",
        "Note name: x\nOwner name: Mara",
        'Found: {"note_name": "x"}',
        {"result": "Note name: x\nOwner name: Mara"},
    ],
)
def test_a_format_drifts_wherever_there_are_records(data: Any, severity: int) -> None:
    live = opened(data, ("format_drift", severity))
    spoken = called(live)
    assert spoken.by == (f"format_drift:{severity}",)
    assert "x" in str(spoken.result.data)
    assert unchanged(live.changes) == []


def test_a_shift_of_calls_that_answers_by_itself_is_noted() -> None:
    live = opened("fine", ("transient_error", 1))
    assert called(live).by == ("transient_error:1",)
    assert live.changes["transient_error:1"].calls == 1
    assert called(live).by == ()
    assert unchanged(live.changes) == []


def test_before_any_call_only_what_is_listed_has_changed() -> None:
    live = opened("fine", ("transient_error", 1), ("description_removal", 1))
    live.tools()
    assert unchanged(live.changes) == ["transient_error:1"]
