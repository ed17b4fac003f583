"""Tools and calls from files of several kinds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from drift.test_changes import FIND, SAVE

import toolshift
from toolshift.core.errors import UsageError
from toolshift.core.tool import as_openai
from toolshift.drift.calls import RecordedCall
from toolshift.drift.sources import calls_of, read_source, read_sources
from toolshift.worlds.registry import find_world


def write(path: Path, *rows: object) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def test_a_trace_shows_tools_and_calls(tmp_path: Path) -> None:
    call = {"n": 2, "tool": "find_page", "arguments": {"query": "q"}, "ok": True, "ms": 1.0}
    trace = write(tmp_path / "t.jsonl", {"n": 1, "listed": [FIND, SAVE]}, call)
    assert read_source(trace).tools == [FIND, SAVE]
    assert calls_of(trace).made == [RecordedCall("find_page", {"query": "q"})]
    with pytest.raises(UsageError, match="shows no list of tools"):
        read_source(write(tmp_path / "calls.jsonl", call))
    with pytest.raises(UsageError, match="line 1"):
        calls_of(write(tmp_path / "bad.jsonl", {"nothing": 1}))


def test_several_sources_are_one_lock(tmp_path: Path) -> None:
    one, two = (write(tmp_path / f"{n}.json", t) for n, t in (("a", [FIND]), ("b", [SAVE, FIND])))
    assert [tool["name"] for tool in read_sources([one, two]).tools] == [
        "find_page",
        "save_page",
    ]
    other = write(tmp_path / "c.json", [{**FIND, "description": "Another."}])
    with pytest.raises(UsageError, match="different tools named find_page"):
        read_sources([one, other])


def test_a_list_in_a_trace_has_each_name_once(tmp_path: Path) -> None:
    other = {**FIND, "description": "Another."}
    twice = {"listed": [FIND, other]}
    for rows in ([{"listed": [*twice["listed"], SAVE]}], [{"listed": [SAVE]}, twice]):
        with pytest.raises(UsageError, match="different tools named find_page"):
            read_source(write(tmp_path / "t.jsonl", *rows))
    later = write(tmp_path / "t.jsonl", {"listed": [FIND, other]}, {"listed": [FIND, FIND]})
    assert read_source(later).tools == [FIND]


def test_a_run_shows_its_tools_and_calls(tmp_path: Path) -> None:
    run = tmp_path / "run"
    toolshift.evaluate("oracle", worlds=["poi"], shifts=["tool_name_noise:2"], tasks=2, out=run)
    names = [as_openai(tool)["function"]["name"] for tool in find_world("poi").tools]
    assert [tool["name"] for tool in read_source(str(run)).tools] == names
    calls = calls_of(str(run)).made
    assert calls
    assert {call.tool for call in calls} <= set(names)


def test_a_tool_that_a_server_lists_no_more_is_gone(tmp_path: Path) -> None:
    trace = write(tmp_path / "t.jsonl", {"listed": [FIND, SAVE]}, {"listed": [FIND]})
    assert read_source(trace).tools == [FIND]


def test_lists_of_other_apis_keep_their_schemas(tmp_path: Path) -> None:
    """OpenAI's Responses and Anthropic's messages have no `function` around a tool."""
    rest = {key: value for key, value in FIND.items() if key != "inputSchema"}
    for raw in (
        {"type": "function", **rest, "parameters": FIND["inputSchema"]},
        {"type": "custom", **rest, "input_schema": FIND["inputSchema"]},
    ):
        assert read_source(write(tmp_path / "tools.json", [raw])).tools == [FIND]
        said = {"messages": [{"role": "user", "content": "Hi."}], "tools": [raw]}
        (tool,) = read_source(write(tmp_path / "said.jsonl", said)).tools
        assert tool["inputSchema"] == FIND["inputSchema"]


def test_a_mark_of_byte_order_is_no_part_of_a_file(tmp_path: Path) -> None:
    """As editors and shells of Windows write it."""
    call = {"tool": "find_page", "arguments": {"query": "q"}}
    for name, row in (("t.jsonl", call), ("t.json", [call])):
        path = Path(write(tmp_path / name, row))
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
        assert calls_of(str(path)).made == [RecordedCall("find_page", {"query": "q"})]
