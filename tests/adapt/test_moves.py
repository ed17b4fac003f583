"""A call may go only to a tool that says the same and whose name is the same words."""

from __future__ import annotations

from typing import Any

import pytest
from adapt.releases import RELEASES, name_of
from drift.test_changes import tool

from toolshift.adapt.moves import Moves
from toolshift.interop.tools import from_mcp

TEXT = {"type": "string", "description": "What it is"}
NUMBER = {"type": "number", "description": "How much it is"}


def moved(was: list[dict[str, Any]], now: list[dict[str, Any]], name: str = "") -> Any:
    found = Moves(from_mcp(was), now).move(name or was[0]["name"])
    return found and (found.tool, dict(found.params))


@pytest.mark.parametrize("release", RELEASES, ids=name_of)
def test_no_release_has_a_place_for_the_call(release: dict[str, Any]) -> None:
    found = moved(release["was"], release["now"], release["call"]["tool"])
    kept = {name: name for name in release["call"]["arguments"]}
    assert found in (None, (release["call"]["tool"], kept))


@pytest.mark.parametrize("hints", [{}, {"annotations": {"readOnlyHint": True}}])
@pytest.mark.parametrize(
    ("name", "params", "found"),
    [
        ("get_order", {"order_ref": TEXT, "sum": NUMBER}, {"orderRef": "order_ref", "sum": "sum"}),
        ("orders.get", {"orderRef": TEXT, "sum": NUMBER}, {"orderRef": "orderRef", "sum": "sum"}),
        ("getOrderV2", {"orderRefs": TEXT, "Sum": NUMBER}, {"orderRef": "orderRefs", "sum": "Sum"}),
        ("get_order", {"orderRef": TEXT, "sums": NUMBER}, None),
        ("get_order", {"orderRef": TEXT, "sum_2": NUMBER}, None),
        ("get_order", {"orderRef": NUMBER, "sum": NUMBER}, None),
        ("get_order", {"orderRef": TEXT, "sum": NUMBER, "more": TEXT}, None),
        ("get_order", {"orderRef": TEXT}, None),
        ("fetch_order", {"orderRef": TEXT, "sum": NUMBER}, None),
    ],
)
def test_names_of_the_same_words_are_a_move(
    name: str, params: dict[str, Any], found: dict[str, str] | None, hints: dict[str, Any]
) -> None:
    was = {**tool("getOrder", "Reads an order", orderRef=TEXT, sum=NUMBER), **hints}
    now = {**tool(name, "Reads an order", **params), **hints}
    assert moved([was], [now]) == (None if found is None else (name, found))


def test_two_tools_of_the_same_words_are_no_move() -> None:
    old, text = tool("getOrder", "Reads an order"), "Reads an order"
    assert moved([old], [tool("get_order", text), tool("orders.get", text)]) is None
    assert moved([old, tool("get-order", text)], [tool("get_order", text)]) is None
    assert moved([old, tool("get_order", text)], [tool("get_order", text)]) is None


@pytest.mark.parametrize(
    ("was", "now", "reads"),
    [
        ({"readOnlyHint": True}, {"readOnlyHint": True}, True),
        ({"readOnlyHint": True}, {"readOnlyHint": False}, False),
        ({"readOnlyHint": True}, {"readOnlyHint": True, "destructiveHint": True}, False),
        ({"readOnlyHint": True}, {}, False),
        ({}, {"readOnlyHint": True}, False),
        ({"idempotentHint": True}, {"idempotentHint": True}, False),
        ({"readOnlyHint": True}, None, True),
    ],
)
def test_a_tool_only_reads_where_both_sides_declare_it(
    was: dict[str, Any], now: dict[str, Any] | None, reads: bool
) -> None:
    old = {**tool("look", "Looks"), "annotations": was}
    new = tool("look", "Looks") if now is None else {**tool("look", "Looks"), "annotations": now}
    assert Moves(from_mcp([old]), [new]).only_reads("look", "look") == reads
    assert not Moves(from_mcp([old]), [tool("look", "Looks and ends")]).only_reads("look", "look")
