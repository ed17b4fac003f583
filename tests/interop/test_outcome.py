"""Failures are seen in results of every protocol, and nothing else is taken for one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.interop.outcome import has_failed

FAILED = {
    "mcp": {"content": [{"type": "text", "text": "no such order"}], "isError": True},
    "anthropic": {"type": "tool_result", "tool_use_id": "t1", "content": "no", "is_error": True},
    "success": {"success": False, "reason": "sold out"},
    "ok": {"ok": False},
    "message": {"error": "sold out"},
    "object": {"error": {"code": 7, "message": "sold out"}},
    "code": {"error": 7},
    "json rpc": {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "no"}},
    "graphql": {"data": None, "errors": [{"message": "no such field", "path": ["a"]}]},
    "graphql with some data": {"data": {"a": 1}, "errors": [{"message": "no such field"}]},
    "form": {"errors": {"email": ["is taken"]}},
    "http": {"statusCode": 503, "body": ""},
    "problem document": {"type": "about:blank", "title": "Not Found", "status": 404},
    "jsend": {"status": "error", "message": "no"},
    "ai sdk": {"type": "error-text", "value": "no"},
    "python": "ValueError: no such order",
    "traceback": "Traceback (most recent call last):\n  File",
    "text": "Error: no such order",
    "a word": "Error executing tool get_order: no such order",
    "an agents' sdk": "An error occurred while running the tool. Please try again. Error: refused",
    "a tag": "<tool_use_error>File not found</tool_use_error>",
    "a status line": "HTTP/1.1 503 Service Unavailable",
    "a page of HTML": "<html>\n<head><title>502 Bad Gateway</title></head>",
    "a flag in words": {"success": "false", "reason": "sold out"},
}
GOOD: dict[str, Any] = {
    "null": {"error": None, "refund": "RF-1"},
    "empty": {"error": "", "errors": [], "id": 3},
    "false": {"error": False, "isError": False},
    "success": {"success": True, "refund": "RF-1"},
    "a measure": {"error": 0.03, "mean": 1.0},
    "a count": {"errors": 3, "rows": 90},
    "some rows": {"imported": 90, "errors": [{"message": "row 3 is empty"}]},
    "http": {"status": 200, "body": "x"},
    "a word": {"status": "error", "invoice": "I-1", "owner": "Jo"},
    "a record": {"title": "Error handling", "ok": None},
    "prose": "The order failed to arrive, an error of the carrier.",
    "plural": "Errors: 0",
    "a subject": "Error budgets of the shop: 99.9%",
    "a number of things": "404 orders were found",
    "a title": "404 Not Found is an album of 2013",
    "another phrase": "423 Not Found",
    "a page": "<html><head><title>Orders</title></head>",
    "a count of none": {"success": 0, "skipped": 4},
    "number": 404,
    "none": None,
}


@pytest.mark.parametrize("name", FAILED)
def test_a_failure_is_seen_as_data_and_as_text(name: str) -> None:
    assert has_failed(FAILED[name])
    if not isinstance(FAILED[name], str):
        assert has_failed(json.dumps(FAILED[name]))


@pytest.mark.parametrize("name", GOOD)
def test_what_is_no_failure_is_none(name: str) -> None:
    assert not has_failed(GOOD[name])
    assert not has_failed(json.dumps(GOOD[name]))


ENVELOPES = (
    lambda inner: {"content": [{"type": "text", "text": json.dumps(inner)}], "isError": False},
    lambda inner: {"structuredContent": inner, "content": []},
    lambda inner: [{"type": "text", "text": json.dumps(inner)}],
    lambda inner: {"type": "json", "value": inner},
    lambda inner: {"result": inner},
    lambda inner: {"role": "tool", "tool_call_id": "c1", "content": json.dumps(inner)},
)


@given(
    st.sampled_from(sorted(FAILED)), st.sampled_from(sorted(GOOD)),
    st.lists(st.sampled_from(ENVELOPES), max_size=2),
)  # fmt: skip
def test_envelopes_change_nothing(bad: str, good: str, around: list[Any]) -> None:
    failed, fine = FAILED[bad], GOOD[good]
    for envelope in around:
        failed, fine = envelope(failed), envelope(fine)
    assert has_failed(failed)
    assert not has_failed(fine)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_any_value_is_read(value: Any) -> None:
    assert has_failed(value) in (True, False)
