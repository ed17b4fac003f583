"""Locks of other tools, as those tools wrote them for one small server."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from running import Run

from toolshift.core.errors import UsageError
from toolshift.drift.events import drift_report, hash_report
from toolshift.drift.lock import Lock, read_any_lock, read_lock
from toolshift.drift.other_locks import HashLock

LOCKS = Path(__file__).parent / "locks"
WHOLE = ["mcp-schema.lock", "mcpdrift.lock.json", "mcplock.json", "pin-check.lock.json"]
NOTES: list[dict[str, Any]] = [
    {
        "name": "get_note",
        "description": "Return one note by its identifier.",
        "inputSchema": {
            "type": "object",
            "properties": {"id": {"type": "string", "description": "The note."}},
            "required": ["id"],
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "save_note",
        "description": "Save a note.",
        "inputSchema": {
            "type": "object",
            "properties": {"id": {"type": "string"}, "text": {"type": "string"}},
            "required": ["id", "text"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {"saved": {"type": "boolean"}},
            "required": ["saved"],
        },
    },
]
"""What the server lists."""


def moved(**parts: Any) -> list[dict[str, Any]]:
    tools = copy.deepcopy(NOTES)
    tools[0].update(parts)
    return tools


@pytest.mark.parametrize("name", WHOLE)
def test_a_server_that_has_not_moved_has_not_drifted(name: str) -> None:
    lock = read_lock(LOCKS / name)
    assert [tool["name"] for tool in lock.documents] == ["get_note", "save_note"]
    assert drift_report(lock, NOTES).events == ()


@pytest.mark.parametrize("name", WHOLE)
def test_what_changed_is_said(name: str) -> None:
    schema = {**NOTES[0]["inputSchema"], "required": []}
    report = drift_report(read_lock(LOCKS / name), moved(description="Other.", inputSchema=schema))
    kinds = {event.kind for event in report.events}
    assert kinds == {"description_rewritten", "parameter_optional"}


def test_a_part_that_is_not_recorded_is_no_drift() -> None:
    hints = moved(annotations={"readOnlyHint": False})
    assert drift_report(read_lock(LOCKS / "mcp-schema.lock"), hints).events == ()
    (event,) = drift_report(read_lock(LOCKS / "mcplock.json"), hints).events
    assert event.kind == "annotations_changed"


def test_hashes_say_which_part_moved_and_no_more() -> None:
    lock = read_any_lock(LOCKS / "warden.lock")
    assert isinstance(lock, HashLock)
    assert hash_report(lock, NOTES).events == ()
    (event,) = hash_report(lock, moved(description="Other.")).events
    assert (event.kind, event.tool, event.severity) == ("hash_changed", "get_note", "maybe")
    assert "something changed in description" in event.sentence
    report = hash_report(lock, [{**NOTES[0], "name": "fetch_note"}, NOTES[1]])
    assert {(e.kind, e.tool) for e in report.events} == {
        ("tool_removed", "get_note"),
        ("tool_added", "fetch_note"),
    }
    with pytest.raises(UsageError, match="contains only hashes"):
        read_lock(LOCKS / "warden.lock")


def test_a_lock_that_holds_too_little_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="by mcp-contract, which stores a summary"):
        read_lock(LOCKS / "mcp-contract.json")
    document = json.loads((LOCKS / "mcplock.json").read_text())
    del document["tools"]["get_note"]["raw_schema"]
    (tmp_path / "damaged.json").write_text(json.dumps(document))
    with pytest.raises(UsageError, match="cannot be read"):
        read_lock(tmp_path / "damaged.json")


def test_verify_takes_them(toolshift: Run, tmp_path: Path) -> None:
    (tmp_path / "same.json").write_text(json.dumps(NOTES))
    (tmp_path / "moved.json").write_text(json.dumps(moved(description="Other.")))
    for name in (*WHOLE, "warden.lock"):
        assert toolshift("verify", str(LOCKS / name), "same.json")[0] == 0
        code, said, _ = toolshift("verify", str(LOCKS / name), "moved.json", "--sarif", "s.json")
        assert (code, "get_note" in said) == (1, True)
        assert json.loads((tmp_path / "s.json").read_text())["runs"][0]["results"]
    code, _, said = toolshift(
        "verify", str(LOCKS / "warden.lock"), "same.json", "--agent", "oracle"
    )
    assert (code, "contains only hashes" in said) == (2, True)


def test_a_lock_of_ours_says_nothing_of_what_it_records() -> None:
    assert isinstance(read_any_lock(LOCKS / "mcpdrift.lock.json"), Lock)
    assert read_lock(LOCKS / "mcpdrift.lock.json").recorded == ()
