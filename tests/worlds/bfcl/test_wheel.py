"""What is said where the package that BFCL's worlds read is not there, or not whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from running import Run

from toolshift.core.errors import UsageError
from toolshift.worlds.bfcl import wheel
from toolshift.worlds.bfcl.schemas import as_schema, is_valid, listed, widened


def test_a_missing_package_is_said_with_the_command_that_installs_it(
    toolshift: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel, "find_spec", lambda name: None)
    code, _, said = toolshift("run", "--world", "bfcl:multi_turn_base", "--agent", "oracle")
    assert code == 2
    assert "not installed: pip install --no-deps bfcl-eval && pip install mpmath" in said
    assert "Traceback" not in said


def test_a_part_that_needs_something_else_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "half_a_wheel.py").write_text("import no_such_package_at_all\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(wheel, "folder", lambda: tmp_path)
    with pytest.raises(UsageError, match="imports no_such_package_at_all, which is not installed"):
        wheel.part("half_a_wheel")
    assert "half_a_wheel" not in sys.modules
    with pytest.raises(UsageError, match=r"has no data/BFCL_v4_other\.json"):
        wheel.entries("other")


def test_documents_become_json_schemas() -> None:
    told = {
        "type": "dict",
        "properties": {
            "x": {"type": "float", "description": "A number."},
            "days": {"type": "array", "items": {"type": "String"}, "enum": ["mon", "tue"]},
            "at": {"type": "tuple", "items": {"type": "integer"}},
            "more": {"type": "dict", "properties": {"a": {"type": "any"}}, "required": ["a"]},
        },
        "required": ["x"],
    }
    schema = as_schema(told)
    assert schema["properties"]["x"] == {"type": "number", "description": "A number."}
    assert is_valid(schema, {"x": 1, "days": ["mon"], "at": [1, 2], "more": {"a": "b"}})
    for wrong in ({}, {"x": 1, "days": ["sun"]}, {"x": "1"}, {"x": 1, "more": {}}):
        assert not is_valid(schema, wrong)
    tool = listed({"name": "a.b", "description": "d", "response": told}, schema, reads=True)
    assert (tool["name"], tool["annotations"]) == ("a_b", {"readOnlyHint": True})


def test_a_schema_is_opened_to_what_the_ground_truth_passes_and_to_no_more() -> None:
    schema = as_schema({"type": "dict", "properties": {"a": {"type": "integer"}, "b": {}}})
    opened = widened(schema, [{"a": 1}, {"a": "ticket_001"}])
    assert is_valid(opened, {"a": "x"})
    assert is_valid(opened, {"a": 1})
    assert not is_valid(opened, {"a": [1]})
    assert widened(schema, [{"a": 1}]) == schema
