"""Streams of others and of our own, read as calls, tools on offer and endings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolshift.data.conversation import RowFault
from toolshift.drift.stream import Called, Ended, Event, Reader, Shown

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def read(*rows: Any) -> list[Event]:
    reader = Reader()
    return [event for row in rows for event in reader.read(json.dumps(row).encode())]


def span(name: str, kind: int = 3, **more: Any) -> dict[str, Any]:
    said = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **more}
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in said.items()]
    times = {"startTimeUnixNano": "1000000", "endTimeUnixNano": "13500000"}
    return {"name": f"execute_tool {name}", "kind": kind, "attributes": attributes, **times}


def exported(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def test_a_call_of_the_proxy_is_read_with_its_result() -> None:
    answer = {"content": [{"type": "text", "text": '{"total": 3}'}]}
    row = {"n": 1, "tool": "get", "arguments": {"a": 1}, "ok": True, "ms": 2, "answers": [answer]}
    assert read(row) == [Called("get", {"a": 1}, True, 2.0, {"total": 3})]
    structured = {**row, "answers": [{"content": [], "structuredContent": {"total": 4}}]}
    (called,) = read(structured)
    assert isinstance(called, Called)
    assert called.result == {"total": 4}


def test_tools_of_a_trace_are_read_and_the_end_says_nothing() -> None:
    tool = {"name": "get", "inputSchema": SCHEMA}
    assert read({"n": 1, "listed": [tool]}, {"n": 2, "end": True, "calls": 0}) == [Shown([tool])]


def test_a_conversation_shows_tools_calls_and_results() -> None:
    function = {"name": "weather", "description": "Weather.", "parameters": SCHEMA}
    call = {"name": "weather", "arguments": '{"city": "Oslo"}'}
    messages = [
        {"role": "user", "content": "Weather in Oslo?"},
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "1", "content": '{"error": "no such city"}'},
        {"role": "assistant", "content": None, "refusal": "I cannot help with that."},
    ]
    said = read({"messages": messages, "tools": [{"type": "function", "function": function}]})
    shown = Shown([{"name": "weather", "description": "Weather.", "inputSchema": SCHEMA}], "openai")
    assert said[0] == shown
    result = {"error": "no such city"}
    ended = Ended(True, "Weather in Oslo?")
    assert said[1:] == [Called("weather", {"city": "Oslo"}, False, None, result), ended]


def test_spans_of_tools_are_calls() -> None:
    more = {"gen_ai.tool.call.arguments": '{"city": "Oslo"}', "gen_ai.tool.call.result": "mild"}
    assert read(exported(span("weather", **more))) == [
        Called("weather", {"city": "Oslo"}, True, 12.5, "mild", 0.001)
    ]
    (failed,) = read(exported(span("weather", **{"error.type": "timeout"})))
    assert isinstance(failed, Called)
    assert failed.ok is False


def test_one_call_with_a_client_and_a_server_span_is_counted_once() -> None:
    client, server = (span("weather", kind) for kind in (3, 2))
    assert len(read(exported(client, server))) == 1
    assert len(read(exported(server), exported(server))) == 2


def test_spans_of_a_model_show_tools_and_refusals() -> None:
    definition = {"type": "function", "name": "weather", "parameters": SCHEMA}
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.tool.definitions": json.dumps([{"type": "web_search"}, definition]),
        "gen_ai.response.finish_reasons": ["content_filter"],
    }
    shown, ended = read({"name": "chat", "attributes": attributes})
    assert shown == Shown([{"name": "weather", "inputSchema": SCHEMA}], "openai")
    assert ended == Ended(True)


@pytest.mark.parametrize("reason", ["tool_call", "tool_calls", "tool_use", "function_call"])
def test_a_turn_that_calls_a_tool_is_no_ending(reason: str) -> None:
    attributes = {"gen_ai.response.finish_reasons": [reason]}
    assert read({"name": "chat", "attributes": attributes}) == []


def test_a_call_that_ends_before_it_begins_has_no_time() -> None:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"}
    nanos = {"startTimeUnixNano": "2000000", "endTimeUnixNano": "1000000"}
    texts = {"start_time": "2026-01-01T00:00:02Z", "end_time": "2026-01-01T00:00:01Z"}
    back = [{"attributes": attributes, **nanos}, {"attributes": attributes, **texts}]
    for row in (*back, {"tool": "weather", "arguments": {}, "ok": True, "ms": -1.5}):
        (called,) = read(row)
        assert isinstance(called, Called)
        assert called.ms is None


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"nothing": 1}'])
def test_what_is_none_of_these_is_said(line: bytes) -> None:
    with pytest.raises(RowFault):
        Reader().read(line)
    assert Reader().read(b"\n") == []


def test_a_conversation_that_nobody_has_answered_is_not_read_as_one_that_went_well() -> None:
    asked: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}
    reader = Reader("asked")
    with pytest.raises(RowFault, match="nobody has answered"):
        reader.read(json.dumps(asked).encode())
    function = {"name": "find", "parameters": {"type": "object", "properties": {}}}
    shown = asked | {"tools": [{"type": "function", "function": function}]}
    assert [type(each) for each in reader.read(json.dumps(shown).encode())] == [Shown]
