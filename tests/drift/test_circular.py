"""What is asked beside a reference that leads back in is compared like anything else."""

from __future__ import annotations

from typing import Any

import pytest

from toolshift.drift.schemas import Difference, differences
from toolshift.interop.normal import normal


def tree(beside: dict[str, Any], pointer: bool) -> dict[str, Any]:
    """A tree of nodes, by a pointer into the schema itself or by a definition."""
    inner = {"$ref": "#" if pointer else "#/$defs/node", **beside}
    node = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "child": inner},
    }
    return node if pointer else {"$ref": "#/$defs/node", "$defs": {"node": node}}


def compared(before: dict[str, Any], after: dict[str, Any], pointer: bool) -> list[Difference]:
    return list(differences("", normal(tree(before, pointer)), normal(tree(after, pointer))))


TIGHTER = {
    "a limit": ({"maxProperties": 3}, {"maxProperties": 2}, "limit_tightened"),
    "a first limit": ({}, {"minProperties": 1}, "limit_tightened"),
    "a limit that goes": ({"minProperties": 1}, {}, "limit_loosened"),
    "a rewritten description": (
        {"description": "Where the parcel is sent."},
        {"description": "Deprecated and never read by anyone."},
        "description_rewritten",
    ),
    "a further demand": ({}, {"not": {"required": ["name"]}}, "schema_changed"),
}


@pytest.mark.parametrize("pointer", [True, False], ids=["pointer", "definition"])
@pytest.mark.parametrize("case", TIGHTER)
def test_a_demand_beside_a_circular_reference_is_compared(case: str, pointer: bool) -> None:
    before, after, kind = TIGHTER[case]
    found = compared(before, after, pointer)
    assert kind in [each.kind for each in found]
    assert {each.where for each in found} <= {"child", "child.child"}
    assert not compared(before, before, pointer)
