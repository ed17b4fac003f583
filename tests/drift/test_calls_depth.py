"""Recorded calls that no schema checker can follow."""

from __future__ import annotations

from typing import Any

from toolshift.drift.calls import Checker, RecordedCall


def test_a_recorded_call_that_is_nested_too_deep_is_a_fault() -> None:
    deep: Any = {}
    for _ in range(400):
        deep = {"a": deep}
    schema = {"type": "object", "required": ["b"]}
    _, said = Checker([{"name": "find", "inputSchema": schema}]).fault(RecordedCall("find", deep))
    assert said.startswith("its arguments cannot be checked")
