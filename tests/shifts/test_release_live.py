"""The coming change on live tools, where nothing is known but the documents."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from shifts.test_release import Listed, made

from toolshift.core.errors import UsageError
from toolshift.core.tool import Result
from toolshift.interop.tools import from_mcp, from_openai
from toolshift.shifts.live import Live, live_scene, shifted
from toolshift.shifts.release.mapping import Answers, read_mapping
from toolshift.shifts.stacks import read_stack

OLD: Listed = [
    {
        "name": "find",
        "description": "Finds.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "limit": {"type": "string"},
                "order": {"enum": ["asc", "desc"]},
                "tag": {"type": "string"},
            },
            "required": ["query"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {"total": {"type": "number"}, "old_note": {"type": "string"}},
        },
    },
    {"name": "get_a", "description": "Gets A.", "inputSchema": {"type": "object"}},
    {"name": "get_b", "description": "Gets B.", "inputSchema": {"type": "object"}},
    {
        "name": "manage",
        "description": "Manages.",
        "inputSchema": {
            "type": "object",
            "properties": {"action": {"enum": ["create", "drop"]}, "id": {"type": "string"}},
            "required": ["action", "id"],
        },
    },
]
NEW: Listed = [
    {
        "name": "search",
        "title": "Search",
        "description": "Finds what matches.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "queries": {"type": "array", "items": {"type": "string"}},
                "limit": {"type": "integer", "maximum": 50},
                "order": {"enum": ["ascending", "descending"]},
                "why": {"type": "string"},
            },
            "required": ["queries", "why"],
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "amount": {"type": "object", "properties": {"total": {"type": "number"}}}
            },
        },
    },
    {
        "name": "get",
        "description": "Gets A or B.",
        "inputSchema": {
            "type": "object",
            "properties": {"which": {"enum": ["a", "b"]}},
            "required": ["which"],
        },
    },
    {
        "name": "create_item",
        "description": "Creates.",
        "inputSchema": {
            "type": "object",
            "properties": {"id": {"type": "string"}},
            "required": ["id"],
        },
    },
]
MAPPING = """
renamed = {find = "search"}
[params.find]
query = "queries"
[values.find.order]
asc = "ascending"
desc = "descending"
[defaults.find]
tag = "all"
[fields.find]
total = "amount.total"
[merged.get]
by = "which"
tools = {a = "get_a", b = "get_b"}
[split.manage]
by = "action"
tools = {create_item = "create"}
"""


def live(folder: Path, asked: list[tuple[str, dict[str, Any]]]) -> Live:
    (folder / "m.toml").write_text(MAPPING)
    path = made(folder, OLD, NEW, read_mapping(folder / "m.toml"), "big")
    toolbox = from_mcp(OLD)
    after = shifted(live_scene(toolbox), read_stack(path))

    def carry(name: str, arguments: dict[str, Any]) -> Result:
        asked.append((name, arguments))
        return Result(True, {"total": 7, "old_note": "x"}, toolbox.sources[name].tool.returns)

    return Live(after, toolbox, carry)


def test_live_tools_are_shown_word_for_word(tmp_path: Path) -> None:
    shown = live(tmp_path, [])
    assert [shown.toolbox.speak(tool) for tool in shown.tools()] == NEW
    spoken = from_openai([])
    assert spoken.speak(shown.tools()[0])["function"]["parameters"] == NEW[0]["inputSchema"]


def test_values_are_carried_where_the_meaning_is_the_same(tmp_path: Path) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    tools = live(tmp_path, asked)
    said = {"queries": ["x"], "limit": 5, "order": "descending", "why": "curious"}
    spoken = tools.call("search", said)
    assert asked.pop() == ("find", {"tag": "all", "query": "x", "limit": "5", "order": "desc"})
    assert spoken.result.data == {"amount": {"total": 7}}
    lost = tools.call("search", {"queries": ["x", "y"], "why": "z"}).result
    assert lost.data["error"]["code"] == "not_available"
    assert "queries" in lost.data["error"]["message"]
    wrong = tools.call("search", {"query": "x"}).result
    assert wrong.data["error"]["code"] == "invalid_arguments"
    assert not asked


def test_merged_and_split_tools_reach_the_old_ones(tmp_path: Path) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    tools = live(tmp_path, asked)
    tools.call("get", {"which": "b"})
    tools.call("create_item", {"id": "7"})
    assert asked == [("get_b", {}), ("manage", {"action": "create", "id": "7"})]
    for gone in ("get_a", "manage", "find"):
        assert tools.call(gone, {}).result.data["error"]["code"] == "unknown_tool"


def test_a_schema_of_results_is_shown_where_each_result_is_carried_into_it(tmp_path: Path) -> None:
    shown = live(tmp_path, [])
    assert shown.documents()[0]["outputSchema"] == NEW[0]["outputSchema"]
    given = shown.call("search", {"queries": ["x"], "why": "z"}).result.data
    assert jsonschema_rs.validator_for(NEW[0]["outputSchema"]).is_valid(given)


def test_a_schema_of_results_is_left_out_where_nothing_gives_what_it_requires(
    tmp_path: Path,
) -> None:
    new = deepcopy(OLD)
    new[0]["outputSchema"]["properties"]["currency"] = {"type": "string"}
    new[0]["outputSchema"]["required"] = ["currency"]
    toolbox = from_mcp(OLD)
    for given, is_shown in (({}, False), ({"find": {"currency": "EUR"}}, True)):
        answers = Answers(returned=given)
        after = shifted(live_scene(toolbox), read_stack(made(tmp_path, OLD, new, answers)))
        shown = Live(after, toolbox, lambda name, arguments: Result(True, {"total": 7}))
        assert ("outputSchema" in shown.documents()[0]) is is_shown
        expected = {"total": 7, **given.get("find", {})}
        assert shown.call("find", {"query": "x"}).result.data == expected


def test_a_result_that_the_new_schema_cannot_hold_is_an_error(tmp_path: Path) -> None:
    new = deepcopy(OLD)
    new[0]["outputSchema"]["properties"]["total"] = {"type": "number", "maximum": 5}
    toolbox = from_mcp(OLD)
    after = shifted(live_scene(toolbox), read_stack(made(tmp_path, OLD, new)))
    shown = Live(after, toolbox, lambda name, arguments: Result(True, {"total": 7}))
    result = shown.call("find", {"query": "x"}).result
    assert (result.ok, result.data["error"]["code"]) == (False, "not_available")


def test_a_schema_of_the_same_results_stays(tmp_path: Path) -> None:
    toolbox = from_mcp(OLD)
    told = [{**OLD[0], "description": "Finds all."}, *OLD[1:]]
    after = shifted(live_scene(toolbox), read_stack(made(tmp_path, OLD, told)))
    shown = Live(after, toolbox, lambda name, arguments: Result(True, {}))
    assert shown.documents()[0] == told[0]


def _moved_by(folder: Path, outputs: Any, mapping: str, result: Any) -> Any:
    """What a tool returns whose results a mapping moves."""
    declared = {"outputSchema": outputs} if outputs else {}
    tools = [{"name": "list", "description": "Lists.", "inputSchema": {"type": "object"}}]
    old = [{**tools[0], **declared}]
    (folder / "m.toml").write_text(f"[fields.list]\n{mapping}\n")
    path = made(folder, old, tools, read_mapping(folder / "m.toml"), "moved")
    toolbox = from_mcp(old)
    after = shifted(live_scene(toolbox), read_stack(path))
    given = Result(True, result, toolbox.sources["list"].tool.returns)
    return Live(after, toolbox, lambda name, arguments: given).call("list", {}).result.data


def _declared_list(key: str) -> dict[str, Any]:
    due = {"type": ["string", "null"]}
    item = {"type": "object", "properties": {"due": due, "id": {"type": "string"}}}
    return {"type": "object", "properties": {key: {"type": "array", "items": item}}}


def test_results_that_are_not_declared_move_as_the_mapping_says(tmp_path: Path) -> None:
    found = _moved_by(tmp_path, None, '"ticket.due" = "ticket.due_date"', {"ticket": {"due": "x"}})
    assert found == {"ticket": {"due_date": "x"}}


def test_results_in_lists_move_in_each_element(tmp_path: Path) -> None:
    declared = _declared_list("items")
    declared["properties"]["total"] = {"type": "integer"}
    rows = {"items": [{"id": "1", "due": "x"}, {"id": "2"}, {"id": "3", "due": None}], "total": 3}
    found = _moved_by(tmp_path, declared, '"items.due" = "items.due_date"', rows)
    kept = [{"id": "1", "due_date": "x"}, {"id": "2"}, {"id": "3", "due_date": None}]
    assert found == {"items": kept, "total": 3}
    assert rows["items"][0] == {"id": "1", "due": "x"}, "what was given stays as it was"
    found = _moved_by(tmp_path, declared, '"items.due" = "days.due"', rows)
    assert found["days"] == [{"due": "x"}, {}, {"due": None}]


def test_results_in_an_envelope_move_by_either_path(tmp_path: Path) -> None:
    for mapping in ('"result.due" = "result.due_date"', 'due = "due_date"'):
        declared = _declared_list("result") if mapping.startswith('"') else None
        found = _moved_by(tmp_path, declared, mapping, [{"id": "1", "due": "x"}])
        assert found == [{"id": "1", "due_date": "x"}]


def test_a_path_that_no_declared_result_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"fields\.list: unknown path 'items\.duw'.*items\.due"):
        _moved_by(tmp_path, _declared_list("items"), '"items.duw" = "items.due_date"', {})
