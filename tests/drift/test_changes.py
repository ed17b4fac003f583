"""Typed changes between two tool lists."""

from __future__ import annotations

from typing import Any

import pytest

from toolshift.core.errors import UsageError
from toolshift.drift.changes import KINDS, ToolChange, changes_between, worst_severity

TEXT = {"type": "string"}
Listed = list[dict[str, Any]]


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


FIND = tool("find_page", "Finds pages that match a query.", query=TEXT, _limit={"type": "integer"})
SAVE = tool("save_page", "Stores a page in the archive.", page=TEXT)


def said(old: Listed, new: Listed) -> list[tuple[str, str, str, str]]:
    return [(c.kind, c.old, c.new, c.severity) for c in changes_between(old, new)]


def test_nothing_changed_where_only_the_order_did() -> None:
    assert changes_between([FIND, SAVE], [SAVE, FIND]) == ()
    assert worst_severity(()) is None


def test_tools_come_and_go() -> None:
    weather = tool("get_weather", "Current weather of a city.", city=TEXT)
    assert said([FIND, SAVE], [FIND, weather]) == [
        ("tool_removed", "save_page", "", "breaking"),
        ("tool_added", "", "get_weather", "harmless"),
    ]
    assert said([FIND], []) == [("tool_removed", "find_page", "", "breaking")]
    assert said([], [FIND]) == [("tool_added", "", "find_page", "harmless")]


def test_a_rename_comes_with_what_else_changed() -> None:
    new = tool("find-page", "Finds pages that match a text.", _query=TEXT, site=TEXT)
    assert said([FIND], [new]) == [
        ("tool_renamed", "find_page", "find-page", "breaking"),
        ("description_reworded", "find_page", "find-page", "maybe"),
        ("parameter_optional", "find_page", "find-page", "harmless"),
        ("parameter_removed", "find_page", "find-page", "maybe"),
        ("required_parameter_added", "find_page", "find-page", "breaking"),
    ]


def test_a_likely_rename_says_so() -> None:
    new = tool("page_lookup", "Looks up pages that match what is asked.", query=TEXT)
    (change,) = [c for c in changes_between([FIND], [new]) if c.kind == "tool_renamed"]
    assert not change.sure
    assert "(likely: both names have page; descriptions share 43%" in change.sentence


def test_a_tool_that_reads_never_became_one_that_writes() -> None:
    old = tool("page", "Handles a page of the archive.", True, page=TEXT)
    new = tool("pages", "Handles a page of the archive.", False, page=TEXT)
    assert {kind for kind, *_ in said([old], [new])} == {"tool_removed", "tool_added"}


TABS = [
    tool("window_tab_list", "Lists tabs."),
    tool("window_tab_open", "Opens a tab.", url=TEXT),
    tool("window_tab_close", "Closes a tab.", _index={"type": "number"}),
]
ACTION = {"type": "string", "enum": ["list", "open", "close"]}
ONE = tool("window_tabs", "Tabs.", action=ACTION, _index={"type": "number"}, _url=TEXT)


def test_merged_tools_and_split_ones_are_the_same_read_backwards() -> None:
    merged = changes_between(TABS, [ONE])
    split = changes_between([ONE], TABS)
    assert {(c.kind, c.old, c.new, c.where, c.after) for c in merged} == {
        ("tool_merged", f"window_tab_{one}", "window_tabs", "action", one)
        for one in ("list", "open", "close")
    }
    assert {(c.kind, c.old, c.new, c.where, c.before) for c in split} == {
        ("parameter_required", "window_tabs", "window_tab_open", "url", False),
        *(
            ("tool_split", "window_tabs", f"window_tab_{one}", "action", one)
            for one in ("list", "open", "close")
        ),
    }
    assert worst_severity(merged) == worst_severity(split) == "breaking"


def test_tools_behind_a_dispatcher() -> None:
    new = [
        tool("search", "Finds operations.", query=TEXT),
        tool("execute", "Runs one.", tool=TEXT, arguments={"type": "object"}),
    ]
    assert said(TABS, new) == [
        *(("tool_dispatched", old["name"], "execute", "breaking") for old in TABS),
        ("tool_added", "", "search", "harmless"),
    ]


def test_what_a_server_says_beside_the_schema() -> None:
    old = {**FIND, "annotations": {"readOnlyHint": True}, "title": "Find"}
    new = {
        **FIND,
        "annotations": {"readOnlyHint": False},
        "outputSchema": {"type": "object", "properties": {"pages": {"type": "array"}}},
        "_meta": {"a": 1},
    }
    found = {c.kind: c for c in changes_between([old], [new])}
    assert {kind: c.severity for kind, c in found.items()} == {
        "annotations_changed": "maybe",
        "output_schema_added": "harmless",
        "title_changed": "harmless",
        "other_changed": "harmless",
    }
    assert found["output_schema_added"].dimension == "observation"


def test_a_mark_of_deprecation_is_said_once() -> None:
    marked = {**FIND, "deprecated": True}
    (change,) = changes_between([FIND], [marked])
    assert (change.kind, change.severity) == ("deprecation_added", "harmless")
    assert change.sentence == "find_page: a tool is marked as deprecated: false -> true"
    assert said([marked], [FIND])[0][0] == "deprecation_removed"
    told = {**marked, "description": f"{FIND['description']} Use look_up_page."}
    successor = {**FIND, "name": "look_up_page"}
    kinds = [kind for kind, *_ in said([FIND], [told, successor])]
    assert "tool_superseded" in kinds
    assert "deprecation_added" not in kinds


def test_results_that_lose_a_value_may_matter() -> None:
    def giving(*names: str) -> Listed:
        known = dict.fromkeys(names, TEXT)
        return [{**FIND, "outputSchema": {"type": "object", "properties": known}}]

    (more,) = changes_between(giving("a"), giving("a", "b"))
    (less,) = changes_between(giving("a", "b"), giving("a"))
    assert (more.severity, more.after) == ("harmless", ["b"])
    assert (less.severity, less.before) == ("maybe", ["b"])


@pytest.mark.parametrize(
    ("inner", "before", "after"),
    [
        ({"type": "string"}, ["total: number"], ["total: string"]),
        ({"description": "In cents"}, ["total: In euros"], ["total: In cents"]),
        ({"enum": [1, 2]}, ["total: [3]"], None),
    ],
)
def test_results_of_another_form_say_which(
    inner: dict[str, Any], before: list[str], after: list[str] | None
) -> None:
    total = {"type": "number", "description": "In euros", "enum": [1, 2, 3]}
    for more in ({}, {"more": TEXT}):  # a further value hides no change of another one
        old = {"type": "object", "properties": {"total": total}}
        new = {"type": "object", "properties": {"total": {**total, **inner}, **more}}
        (found,) = changes_between([{**FIND, "outputSchema": old}], [{**FIND, "outputSchema": new}])
        assert (found.kind, found.severity) == ("output_schema_changed", "maybe")
        assert (found.before, found.after) == (before, [*more, *(after or [])] or None)


def test_results_that_are_required_no_more_and_titles_are_said() -> None:
    old = {"type": "object", "properties": {"total": TEXT}, "required": ["total"]}
    for new, said in (({**old, "required": []}, "optional"), ({**old, "title": "Sum"}, "title")):
        (found,) = changes_between([{**FIND, "outputSchema": old}], [{**FIND, "outputSchema": new}])
        assert "none" not in found.sentence
        assert said in str(found.after)


def test_unknown_arguments_that_are_refused_now() -> None:
    new = {**FIND, "inputSchema": {**FIND["inputSchema"], "additionalProperties": False}}
    (change,) = changes_between([FIND], [new])
    assert (change.kind, change.severity) == ("limit_tightened", "maybe")


@pytest.mark.parametrize(
    ("before", "after", "severity"),
    [
        ("List events of at most 90 days.", "List events of at most 31 days.", "maybe"),
        ("Share of the users, from 0 to 1.", "Share of the users, from 0 to 100.", "maybe"),
        ("At most 10 items on 5 pages.", "At most 5 items on 10 pages.", "maybe"),
        ("A shift from -5 to 5.", "A shift from 5 to 5.", "maybe"),
        ("At most 1,000 of the items.", "At most 1000 of the items.", "harmless"),
        ("List the events of a day.", "List the events of one day.", "harmless"),
    ],
)
def test_a_text_with_another_number_may_mean_something_else(
    before: str, after: str, severity: str
) -> None:
    (change,) = changes_between([tool("list_events", before)], [tool("list_events", after)])
    assert change.severity == severity


AMOUNT = {"type": "number", "title": "Amount in EUR"}


def test_a_title_of_a_parameter_with_another_unit_may_mean_something_else() -> None:
    olds, news = (
        [tool("pay", "Pays.", amount={**AMOUNT, **new})] for new in ({}, {"title": "JPY"})
    )
    (change,) = changes_between(olds, news)
    assert (change.kind, change.severity, change.where) == ("title_changed", "maybe", "amount")
    assert change.sentence.endswith("Amount in EUR -> JPY")


def test_of_what_no_kind_is_of_the_texts_that_differ_are_shown() -> None:
    olds, news = (
        [tool("pay", "Pays.", amount={**AMOUNT, "examples": [f"{text} of the offer"]})]
        for text in ("Price", "Rate")
    )
    (change,) = changes_between(olds, news)
    assert change.kind == "other_changed"
    assert change.sentence.endswith(": Price of the offer -> Rate of the offer")


@pytest.mark.parametrize(
    ("added", "severity"),
    [
        ({"type": "boolean"}, "harmless"),
        ({"type": "boolean", "default": False}, "harmless"),
        ({"type": "string", "default": ""}, "harmless"),
        ({"type": "boolean", "default": True}, "maybe"),
        ({"type": "integer", "default": 5000}, "maybe"),
    ],
)
def test_a_default_that_has_come_may_act_on_old_calls(added: dict[str, Any], severity: str) -> None:
    old = tool("delete_file", "Deletes a file.", path={"type": "string"})
    new = tool("delete_file", "Deletes a file.", path={"type": "string"}, permanent=added)
    new["inputSchema"]["required"] = old["inputSchema"].get("required", [])
    (change,) = changes_between([old], [new])
    assert (change.kind, change.severity) == ("parameter_added", severity)


def test_of_two_long_texts_what_differs_is_shown() -> None:
    same = (
        "List the events of a calendar, newest first, with their titles and all who are invited. "
    )
    old, new = (tool("list_events", f"{same}At most {days} days.") for days in (90, 31))
    (change,) = changes_between([old], [new])
    assert "At most 90 days. -> " in change.sentence
    assert change.sentence.endswith("At most 31 days.")
    longer = tool("list_events", f"{same}At most 90 days. Deletes them afterwards.")
    (change,) = changes_between([old], [longer])
    assert "Deletes them afterwards." in change.sentence


def test_every_kind_is_explained() -> None:
    change = ToolChange("parameter_renamed", "a", "a", "breaking", "fields[].ref", "ref", "target")
    assert change.sentence == "a, fields[].ref: a parameter has another name: ref -> target"
    for old, new in ((TABS, [ONE]), ([ONE], TABS), ([FIND], [SAVE]), ([FIND, SAVE], [SAVE])):
        for one in changes_between(old, new):
            assert KINDS[one.kind] in one.sentence


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two tools are named 'find_page'"):
        changes_between([FIND, FIND], [FIND])


def test_a_list_that_stands_elsewhere_is_one_move_and_another_type_inside_is_said() -> None:
    def listed(place: str, stock: str, **more: Any) -> dict[str, Any]:
        values = {"name": {"type": "string"}, "no": {"type": "string"}, "stock": {"type": stock}}
        parts = {"type": "array", "items": {"type": "object", "properties": values}}
        schema = {"type": "object", "properties": {place: parts, **more}}
        inputs = {"type": "object", "properties": {}}
        return {"name": "parts", "description": "", "inputSchema": inputs, "outputSchema": schema}

    old, new = listed("result", "integer"), listed("items", "string", next={"type": "string"})
    (change,) = changes_between([old], [new])
    told = "result[], result[].stock: integer -> items[], next, result[].stock: string"
    assert change.sentence == f"parts: another form of the results: {told}"


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [(10, "10", '10 -> "10"'), ("", "x", '"" -> x'), (True, "true", 'true -> "true"')],
)
def test_values_that_look_alike_are_told_by_their_quotes(
    before: Any, after: Any, shown: str
) -> None:
    change = ToolChange("default_changed", "find", "find", "maybe", "limit", before, after)
    assert change.sentence.endswith(f": {shown}")
