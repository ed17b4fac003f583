"""The lock: written, read and verified."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from drift.test_changes import FIND, SAVE, TEXT, tool

from toolshift.core.errors import UsageError
from toolshift.drift.calls import RecordedCall
from toolshift.drift.lock import Lock, lock_side, lock_tools, read_lock, verify, write_lock
from toolshift.shifts.release.inputs import read_side


def written(folder: Path, *tools: dict[str, Any]) -> Path:
    write_lock(folder / "lock.json", lock_tools(tools, "here"))
    return folder / "lock.json"


def test_a_lock_is_read_as_it_was_written(tmp_path: Path) -> None:
    lock = lock_tools([FIND, SAVE], "here")
    assert read_lock(written(tmp_path, FIND, SAVE)) == lock
    assert lock.documents == [FIND, SAVE]
    assert verify(lock, [SAVE, FIND]).changes == ()


def test_hashes_do_not_depend_on_order() -> None:
    turned = dict(reversed(FIND.items()))
    one, other = lock_tools([FIND, SAVE]), lock_tools([SAVE, turned])
    assert one.hash == other.hash
    assert {tool.hash for tool in one.tools} == {tool.hash for tool in other.tools}
    assert lock_tools([FIND]).hash != one.hash


def test_true_is_not_one() -> None:
    was, now = (tool("t", "T.", _n={"default": value}) for value in (1, True))
    drift = verify(lock_tools([was]), [now])
    assert [(each.kind, each.severity) for each in drift.changes] == [("default_changed", "maybe")]


def test_the_file_is_readable_and_a_side_can_be_locked(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps({"tools": [FIND, SAVE]}))
    lock = lock_side(read_side(str(file)))
    assert (lock.kind, lock.origin) == ("mcp", "tools.json")
    write_lock(tmp_path / "lock.json", lock)
    assert '    "name": "find_page",\n' in (tmp_path / "lock.json").read_text()


def test_drift_is_said_with_a_call_that_breaks(tmp_path: Path) -> None:
    lock = read_lock(written(tmp_path, FIND, SAVE))
    new = [tool("find_page", "Finds pages that match a query.", query=TEXT, site=TEXT), SAVE]
    unused = verify(lock, new, [RecordedCall("save_page", {"page": "p"})])
    assert (unused.worst, unused.breaks_calls, unused.calls) == ("breaking", False, 1)
    used = verify(lock, new, [RecordedCall("find_page", {"query": "q"})])
    assert used.breaks_calls
    assert used.counter_examples["find_page"].why == '"site" is a required property'


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda raw: raw["tools"][0]["document"].update(description="x"),
            "find_page does not match its",
        ),
        (lambda raw: raw["tools"].pop(), "removed from it by hand"),
        (lambda raw: raw.update(format=9), "a lock of format 9"),
        (lambda raw: raw.pop("hash"), "is not a lock"),
        (lambda raw: raw["tools"][0]["document"].pop("name"), "has no name"),
    ],
)
def test_a_file_that_is_no_lock_is_refused(tmp_path: Path, change: Any, message: str) -> None:
    path = written(tmp_path, FIND, SAVE)
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw))
    with pytest.raises(UsageError, match=message):
        read_lock(path)


def test_a_key_that_is_there_twice_hides_nothing(tmp_path: Path) -> None:
    """The last is hashed, and who reviews the file may see the first."""
    path = written(tmp_path, FIND, SAVE)
    first = '"name": "find_page"'
    path.write_text(path.read_text().replace(first, f'"name": "harmless", {first}', 1))
    with pytest.raises(UsageError, match="is not a lock: it has the key 'name' twice"):
        read_lock(path)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_lock(tmp_path / "none.json")
    with pytest.raises(UsageError, match="cannot write"):
        write_lock(tmp_path / "no" / "folder" / "lock.json", lock_tools([FIND]))


def a_thousand() -> list[dict[str, Any]]:
    """A thousand tools of about 1.5 KB each."""
    told = "Finds the entries of one kind that match what is asked, the latest first. " * 5
    params = {f"_part_{n}": {"type": "string", "description": told[:120]} for n in range(6)}
    return [tool(f"find_entries_{n}", told, query=TEXT, **params) for n in range(1000)]


def test_a_thousand_tools_are_verified_within_a_second(tmp_path: Path) -> None:
    tools = a_thousand()
    path = written(tmp_path, *tools)
    new = [*tools[:500], {**tools[500], "description": "Other."}, *tools[501:]]
    begun = time.process_time()
    lock: Lock = read_lock(path)
    same, moved = verify(lock, tools), verify(lock, new)
    took = time.process_time() - begun
    assert (len(same.changes), len(moved.changes)) == (0, 1)
    assert took < 2, "a second on an idle core; twice that here"


def test_what_a_list_of_openai_has_no_place_for_is_not_gone() -> None:
    hints = {"title": "Find", "annotations": {"readOnlyHint": True}, "outputSchema": {}}
    lock = lock_tools([{**FIND, **hints}, SAVE])
    assert not verify(lock.beside([FIND, SAVE], "openai"), [FIND, SAVE]).changes
    assert verify(lock.beside([FIND, SAVE], "mcp"), [FIND, SAVE]).changes
    other = [{**FIND, "annotations": {"readOnlyHint": False}}, SAVE]
    (change,) = verify(lock.beside(other, "openai"), other).changes
    assert change.kind == "annotations_changed"


def test_what_a_lock_of_openai_has_no_place_for_is_not_new() -> None:
    strict = [{**FIND, "strict": True}, SAVE]
    lock = lock_tools(strict, kind="openai")
    hints = {"title": "Find", "annotations": {"readOnlyHint": True}, "outputSchema": {}}
    hinted = [{**FIND, **hints}, SAVE]
    assert not verify(lock.beside(hinted, "mcp"), hinted).changes
    (change,) = verify(lock.beside([FIND, SAVE], "openai"), [FIND, SAVE]).changes
    assert change.kind == "other_changed"
    moved = [{**FIND, **hints, "description": "Something else."}, SAVE]
    (change,) = verify(lock.beside(moved, "mcp"), moved).changes
    assert change.kind == "description_rewritten"
