"""A call that cannot be checked is a fault of its row, whatever its arguments."""

from __future__ import annotations

from typing import Any

import jsonschema_rs

from toolshift.data.replay import fault_of


def test_arguments_that_are_nested_beyond_what_is_checked_are_a_fault_of_the_row() -> None:
    deep: Any = {}
    for _ in range(400):
        deep = {"a": deep}
    check = jsonschema_rs.validator_for({"type": "object", "required": ["b"]})
    said = fault_of({"find": check}, "find", deep)
    assert said.startswith("find: it cannot be checked")
