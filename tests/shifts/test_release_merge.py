"""Tools that became one, and changes that a world of one's own is carried over."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scenes import proven
from shifts.test_release import OWN_TOOLS, Listed, made, side

from toolshift.core.errors import UsageError
from toolshift.core.scene import Applied, Scene
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import Result, as_openai
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.interop.tools import from_mcp
from toolshift.shifts.live import Live, live_scene, shifted
from toolshift.shifts.registry import compose, find_shift
from toolshift.shifts.release.describe import Row, rows_of
from toolshift.shifts.release.file import read_shift_file
from toolshift.shifts.release.mapping import Answers, Several, read_mapping, write_mapping
from toolshift.shifts.release.resolve import Settled, settle
from toolshift.shifts.stacks import read_stack
from toolshift.worlds.own import load

Functions = dict[str, dict[str, Any]]


def tool(name_: str, told: str = "", /, reads: bool | None = None, **params: Any) -> dict[str, Any]:
    """A tool as an MCP server lists it; a parameter whose name begins with _ is optional."""
    listed: dict[str, Any] = {
        "name": name_,
        "description": told,
        "inputSchema": {
            "type": "object",
            "properties": {key.lstrip("_"): schema for key, schema in params.items()},
            "required": [key for key in params if not key.startswith("_")],
        },
    }
    if reads is not None:
        listed["annotations"] = {"readOnlyHint": reads}
    return listed


TEXT = {"type": "string"}


def between(folder: Path, old: Listed, new: Listed, accept: bool = False) -> Settled:
    return settle(side(folder, "a.json", old), side(folder, "b.json", new), Answers(), accept)


def rows(folder: Path, old: Listed, new: Listed) -> dict[str, Row]:
    """What is said of each new tool, or of an old one that is gone."""
    file = read_shift_file(Path(made(folder, old, new)))
    return {row.new or row.old: row for row in rows_of(file.release())}


# -- proposals -------------------------------------------------------------------------------------

TABS = [
    tool("window_tab_list", "Lists tabs."),
    tool("window_tab_open", "Opens a tab.", url=TEXT),
    tool("window_tab_close", "Closes a tab.", _index={"type": "number"}),
    tool("window_click", "Clicks.", ref=TEXT),
]


def merged_tabs(default: str | None = None) -> Listed:
    action = {"type": "string", "enum": ["list", "open", "close"]}
    if default is None:
        one = tool("window_tabs", "Tabs.", action=action, _index={"type": "number"}, _url=TEXT)
    else:
        action = {**action, "default": default}
        one = tool("window_tabs", "Tabs.", _action=action, _index={"type": "number"}, _url=TEXT)
    return [one, TABS[3]]


def test_tools_that_became_choices_of_one_are_found(tmp_path: Path) -> None:
    found = between(tmp_path, TABS, merged_tabs())
    assert found.questions == ()
    tools = {"list": "window_tab_list", "open": "window_tab_open", "close": "window_tab_close"}
    assert found.answers.merged == {"window_tabs": Several("action", tools)}
    assert found.answers.removed == []


def test_verbs_of_reading_are_alike_and_words_are_the_tools_own(tmp_path: Path) -> None:
    old = [tool("get_ticket"), tool("get_ticket_comments"), tool("list_sub_tickets")]
    method = {"enum": ["get", "get_comments", "get_sub_tickets"]}
    found = between(tmp_path, old, [tool("ticket_read", method=method)])
    assert found.answers.merged["ticket_read"].tools == {
        "get": "get_ticket",
        "get_comments": "get_ticket_comments",
        "get_sub_tickets": "list_sub_tickets",
    }


def test_a_choice_that_names_no_tool_merges_nothing(tmp_path: Path) -> None:
    format_ = {"enum": ["list", "table"]}
    found = between(tmp_path, TABS, [tool("window_export", "Exports.", format=format_)])
    assert found.answers.merged == {}
    kept = between(tmp_path, TABS, [*TABS, merged_tabs()[0]])
    assert kept.answers.merged == {}, "nothing is gone"


def test_an_omitted_choice_is_the_default(tmp_path: Path) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    tools = live(tmp_path, TABS, merged_tabs("list"), asked)
    assert tools.call("window_tabs", {}).result.ok
    assert tools.call("window_tabs", {"action": "open", "url": "u"}).result.ok
    assert asked == [("window_tab_list", {}), ("window_tab_open", {"url": "u"})]


def test_two_choices_of_one_old_tool_both_reach_it(tmp_path: Path) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    answers = Answers(merged={"search": Several("kind", {"web": "find", "all": "find"})})
    new = [tool("search", kind={"enum": ["web", "all"]}, q=TEXT)]
    tools = live(tmp_path, [tool("find", q=TEXT)], new, asked, answers)
    for kind in ("web", "all"):
        tools.call("search", {"kind": kind, "q": kind})
    assert asked == [("find", {"q": "web"}), ("find", {"q": "all"})]


DISPATCHED = [
    tool("search_tools", "Finds operations.", query=TEXT),
    tool("run_tool", "Runs an operation.", tool_name=TEXT, _arguments={"type": "object"}),
]
THREE = [
    tool("create_invoice", "Makes an invoice.", customer=TEXT),
    tool("list_invoices", "Lists invoices."),
    tool("refund_payment", "Pays back.", payment=TEXT),
]


def test_a_dispatcher_passes_the_arguments_that_stand_inside(tmp_path: Path) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    tools = live(tmp_path, THREE, DISPATCHED, asked)
    found = tools.call("search_tools", {"query": "refund"}).result.data
    assert [one["tool_name"] for one in found] == ["refund_payment"]
    assert found[0]["arguments"] == THREE[2]["inputSchema"]
    said = {"tool_name": "refund_payment", "arguments": {"payment": "p1"}}
    assert tools.call("run_tool", said).result.ok
    assert asked == [("refund_payment", {"payment": "p1"})]
    wrong = tools.call("run_tool", {"tool_name": "refund", "arguments": {}}).result
    assert not wrong.ok


def test_an_object_beside_a_name_is_no_dispatcher(tmp_path: Path) -> None:
    plain = tool("create_monitor", "Makes a monitor.", tool=TEXT, body={"type": "object"})
    found = between(tmp_path, THREE, [plain])
    assert found.answers.merged == {}


def test_a_mapping_with_a_dispatcher_survives_writing(tmp_path: Path) -> None:
    told = between(tmp_path, THREE, DISPATCHED).answers
    assert told.merged["run_tool"].finder == "search_tools"
    (tmp_path / "m.toml").write_text(write_mapping(told, {}))
    assert read_mapping(tmp_path / "m.toml") == told


def live(
    folder: Path,
    old: Listed,
    new: Listed,
    asked: list[tuple[str, dict[str, Any]]],
    answers: Answers | None = None,
) -> Live:
    toolbox = from_mcp(old)
    after = shifted(live_scene(toolbox), read_stack(made(folder, old, new, answers)))

    def carry(name: str, arguments: dict[str, Any]) -> Result:
        asked.append((name, arguments))
        return Result(True, {"done": True})

    return Live(after, toolbox, carry)


# -- reads and writes ------------------------------------------------------------------------------


@pytest.mark.parametrize("accept", [False, True])
def test_a_read_never_becomes_a_write(tmp_path: Path, accept: bool) -> None:
    old = [tool("tenant_record_get", "The record of a tenant.", reads=True, id=TEXT)]
    new = [tool("tenant_record_set", "The record of a tenant.", reads=False, id=TEXT)]
    found = between(tmp_path, old, new, accept)
    assert found.answers.renamed == {}
    assert found.answers.removed == ["tenant_record_get"]


def test_verbs_alone_are_asked_and_never_taken(tmp_path: Path) -> None:
    old = [tool("get_tenant_record", "The record of a tenant.", id=TEXT)]
    new = [tool("delete_tenant_record", "The record of a tenant.", id=TEXT)]
    found = between(tmp_path, old, new)
    assert [question.path for question in found.questions] == [("renamed", "get_tenant_record")]
    assert between(tmp_path, old, new, accept=True).answers.removed == ["get_tenant_record"]
    same = [tool("fetch_tenant_record", "The record of a tenant.", id=TEXT)]
    assert between(tmp_path, old, same).answers.renamed == {old[0]["name"]: same[0]["name"]}


# -- what is said ----------------------------------------------------------------------------------


def test_what_cannot_be_carried_is_named(tmp_path: Path) -> None:
    inner = {"type": "object", "properties": {"ref": TEXT}}
    old = [
        tool(
            "fill",
            fields={"type": "array", "items": inner},
            rows={"type": "array", "items": inner},
            _order={"enum": ["asc", "desc"]},
            _note={"anyOf": [{"type": "string"}, {"type": "null"}]},
        )
    ]
    moved = {"type": "object", "properties": {"target": TEXT}}
    new = [
        tool(
            "fill",
            fields={"type": "array", "items": moved},
            rows={"type": "array", "items": TEXT},
            _order={"enum": ["asc", "random"]},
            _note=TEXT,
        )
    ]
    row = rows(tmp_path, old, new)["fill"]
    assert not any(each.startswith("inside fields") for each in row.partly)
    assert any(each.startswith("rows: what is said as") for each in row.partly)
    assert "order = random: calls fail" in row.partly
    assert "order: desc can no longer be said" in row.partly
    assert "note: string or null -> string" in row.changes
    assert "rows: array of object -> array of string" in row.changes


def test_a_change_of_the_arguments_as_a_whole_is_said(tmp_path: Path) -> None:
    new = copy.deepcopy(TABS)
    new[0]["inputSchema"]["additionalProperties"] = False
    assert rows(tmp_path, TABS, new)["window_tab_list"].changes == ["unknown arguments are refused"]


# -- worlds of one's own ---------------------------------------------------------------------------


def shop() -> Listed:
    return [as_openai(each) for each in load(OWN_TOOLS).tools]


def changed(change: Callable[[Functions], Any]) -> Listed:
    """The tools of the shop after a change of their functions, by name."""
    listed = copy.deepcopy(shop())
    change({each["function"]["name"]: each["function"] for each in listed})
    return listed


def refund(path: str, index: int = 1) -> Scene:
    before = make_scene(load(OWN_TOOLS), "refund", index)
    return compose(before, [Applied(find_shift(path).name, 2)])


def called(scene: Scene) -> list[tuple[str, dict[str, Any]]]:
    """The calls of the good path, as shown."""
    assert proven(scene)
    return [(step.name, dict(step.arguments)) for step in scene.rehearsal if step.kind == "call"]


def function(listed: dict[str, Any]) -> dict[str, Any]:
    schema = listed["inputSchema"]
    told = {"name": listed["name"], "description": listed["description"], "parameters": schema}
    return {"type": "function", "function": told}


def test_a_world_is_carried_over_a_merge(tmp_path: Path) -> None:
    rest = [t for t in shop() if t["function"]["name"] not in ("get_order", "refund_order")]
    one = tool("order", "One order.", action={"enum": ["get", "refund"]}, order_id=TEXT)
    path = made(tmp_path, shop(), [*rest, function(one)])
    calls = called(refund(path))
    assert calls == [("order", {"action": "refund", "order_id": "O-1801"})]


def test_a_world_is_carried_over_a_dispatcher(tmp_path: Path) -> None:
    path = made(tmp_path, shop(), [function(each) for each in DISPATCHED])
    calls = called(refund(path))
    said = {"tool_name": "refund_order", "arguments": {"order_id": "O-1801"}}
    assert calls == [("run_tool", said)]


def test_a_world_is_carried_over_a_change_of_type(tmp_path: Path) -> None:
    def listed(tools: Functions) -> None:
        tools["refund_order"]["parameters"]["properties"]["order_id"] = {
            "type": "array",
            "items": TEXT,
        }

    path = made(tmp_path, shop(), changed(listed))
    assert called(refund(path)) == [("refund_order", {"order_id": ["O-1801"]})]


def required(name: str, schema: dict[str, Any]) -> Callable[[Functions], None]:
    def change(tools: Functions) -> None:
        parameters = tools["refund_order"]["parameters"]
        parameters["properties"][name] = schema
        parameters["required"] = [*parameters["required"], name]

    return change


def test_a_new_required_parameter_takes_its_default(tmp_path: Path) -> None:
    path = made(
        tmp_path, shop(), changed(required("currency", {"type": "string", "default": "EUR"}))
    )
    assert called(refund(path))[-1][1]["currency"] == "EUR"


def test_a_new_required_parameter_takes_what_an_earlier_result_says(tmp_path: Path) -> None:
    path = made(tmp_path, shop(), changed(required("customer_id", TEXT)))
    scene = refund(path, 0)
    found = next(s for s in scene.rehearsal if s.name == "find_customer")
    assert called(scene)[-1][1]["customer_id"] in found.text


def test_what_no_task_says_is_asked_for_and_then_stated(tmp_path: Path) -> None:
    new = changed(required("connection", TEXT))
    with pytest.raises(NotApplicable, match=r"connection.*\[given\.refund_order\]"):
        refund(made(tmp_path, shop(), new))
    given = Answers(given={"refund_order": {"connection": "c-17"}})
    scene = refund(made(tmp_path, shop(), new, given, "told"))
    assert "Use c-17 as connection." in scene.asks[0].text
    assert called(scene)[-1][1]["connection"] == "c-17"
    with pytest.raises(UsageError, match="connection"):
        made(tmp_path, shop(), new, Answers(given={"refund_order": {"conection": "c"}}))


def test_a_split_is_carried_by_the_value_of_the_task(tmp_path: Path) -> None:
    world = tmp_path / "w"
    world.mkdir()
    (world / "door_tools.py").write_text(
        "def door(action: str, room: str) -> dict:\n"
        '    """Opens or locks the door of a room."""\n'
        '    return {"door": f"{action} {room}"}\n'
    )
    (world / "tasks.yaml").write_text(
        "world: doors\ntools: {python: door_tools}\nwrites: [door]\ntasks:\n"
        "  - id: lock\n    kind: doors\n    ask: Please lock the door of room 12.\n"
        "    calls:\n      - {name: door, arguments: {action: lock, room: '12'}}\n"
        "    check: {calls: true}\n"
    )
    doors = load(world / "tasks.yaml")
    old = [as_openai(each) for each in doors.tools]
    new = [function(tool(name, f"{name}.", room=TEXT)) for name in ("open_door", "lock_door")]
    answers = Answers(split={"door": Several("action", {"open_door": "open", "lock_door": "lock"})})
    path = made(tmp_path, old, new, answers)
    scene = compose(make_scene(doors, "doors", 0), [Applied(find_shift(path).name, 2)])
    assert called(scene) == [("lock_door", {"room": "12"})]
    assert Episode(scene).call("open_door", {"room": "12"})[1].ok


# -- splits ----------------------------------------------------------------------------------------


def test_a_tool_that_became_several_is_found_by_its_choices(tmp_path: Path) -> None:
    found = between(tmp_path, merged_tabs(), TABS)
    tools = {"window_tab_list": "list", "window_tab_open": "open", "window_tab_close": "close"}
    assert found.answers.split == {"window_tabs": Several("action", tools)}
    assert (found.questions, found.answers.removed, found.answers.added) == ((), [], [])
    kept = between(tmp_path, merged_tabs(), [*TABS, merged_tabs()[0]])
    assert kept.answers.split == {}, "nothing is gone"


def test_what_was_guessed_is_said(tmp_path: Path) -> None:
    old = [tool("find_page", "Finds pages that match a query.", query=TEXT)]
    new = [tool("page_lookup", "Looks up pages that match what is asked.", query=TEXT)]
    (open_,) = between(tmp_path, old, new).questions
    taken = between(tmp_path, old, new, accept=True)
    assert taken.guessed == (open_,)
    assert taken.answers.renamed == {"find_page": "page_lookup"}
