"""`lock`, `verify` and `change` on schemas that servers in the field have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from running import Run

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
Row = tuple[str, str, str, str]


def tool(name: str, required: tuple[str, ...] = (), **params: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": params, "required": list(required)}
    return {"name": name, "description": f"The tool {name}.", "inputSchema": schema}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def changed(toolshift: Run, old: Any, new: Any) -> list[Row]:
    """The rows of `change`, once `lock` and `verify` have read the same two lists."""
    for name, each in (("old.json", old), ("new.json", new)):
        Path(name).write_text(json.dumps(each))
    assert toolshift("lock", "old.json", "--out", "old.lock")[0] == 0
    _, said, wrong = toolshift("change", "old.json", "new.json", "--json")
    assert said, wrong
    found = json.loads(said)
    code, told, _ = toolshift("verify", "old.lock", "new.json")
    assert (code != 0) == bool(found["rows"]), told
    code, said, wrong = toolshift("change", "old.lock", "new.json", "--json")
    assert json.loads(said)["rows"] == found["rows"], wrong
    return [
        (row["severity"], row["change"]["kind"], row["change"]["where"], row["carriage"])
        for row in found["rows"]
    ]


# -- schemas that are `true` or `false` ------------------------------------------------------------

OBJECT = {"type": "object"}


@pytest.mark.parametrize(
    ("wrap", "where"),
    [
        (lambda one: one, "p"),
        (lambda one: {"type": "object", "properties": {"a": one}}, "p.a"),
        (lambda one: {"type": "array", "items": one}, "p[]"),
        (lambda one: {"type": "object", "additionalProperties": one}, "p.*"),
        (lambda one: {"type": "array", "items": {"properties": {"a": one}}}, "p[].a"),
    ],
    ids=["parameter", "member", "items", "further", "member of items"],
)
def test_a_schema_that_is_true_is_narrowed_by_any_other(
    toolshift: Run, wrap: Any, where: str
) -> None:
    old, new = ([tool("look", p=wrap(one))] for one in (True, OBJECT))
    ((severity, kind, place, _),) = changed(toolshift, old, new)
    assert (severity, kind, place) == ("breaking", "type_narrowed", where)
    ((severity, kind, place, _),) = changed(toolshift, new, old)
    assert (severity, kind, place) == ("harmless", "type_widened", where)
    assert changed(toolshift, old, [tool("look", p=wrap({}))]) == []


def test_what_may_be_anything_and_then_nothing_breaks(toolshift: Run) -> None:
    rows = changed(toolshift, [tool("look", p=True)], [tool("look", p=False)])
    assert rows
    assert rows[0][0] == "breaking"


# -- references in circles -------------------------------------------------------------------------


def outline(level: Any, text: str) -> dict[str, Any]:
    node = {
        "type": "object",
        "properties": {
            text: TEXT,
            "level": level,
            "children": {"type": "array", "items": {"$ref": "#/properties/nodes/items"}},
        },
        "required": [text],
    }
    return tool("save", ("nodes",), nodes={"type": "array", "items": node})


def in_definitions(level: Any, text: str) -> dict[str, Any]:
    node = {
        "type": "object",
        "properties": {
            text: TEXT,
            "level": level,
            "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        },
        "required": [text],
    }
    found = tool("save", ("nodes",), nodes={"type": "array", "items": {"$ref": "#/$defs/Node"}})
    found["inputSchema"]["$defs"] = {"Node": node}
    return found


@pytest.mark.parametrize("form", [outline, in_definitions], ids=lambda form: form.__name__)
def test_what_changes_in_a_circle_is_told_once(toolshift: Run, form: Any) -> None:
    old = [outline(TEXT, "heading")]
    assert changed(toolshift, old, [form(TEXT, "heading")]) == []
    ((severity, kind, where, _),) = changed(toolshift, old, [form(WHOLE, "heading")])
    assert (severity, kind, where) == ("breaking", "type_changed", "nodes[].level")
    ((_, kind, where, carriage),) = changed(toolshift, old, [form(TEXT, "heading_text")])
    assert (kind, where, carriage) == ("parameter_renamed", "nodes[].heading", "carried")


def rule(field: str, tag: str = "kind", leaf: str = "leaf") -> dict[str, Any]:
    """Two definitions that hold each other, as rules of a search service do."""
    ref = {"$ref": "#/$defs/Rule"}
    every = {"properties": {tag: {"const": "all"}, "of": {"type": "array", "items": ref}}}
    one = {"properties": {tag: {"const": leaf}, field: TEXT, "equals": TEXT}, "required": [field]}
    found = tool("search", ("rule",), rule=ref)
    found["inputSchema"]["$defs"] = {
        "Rule": {"oneOf": [{"$ref": "#/$defs/All"}, {"$ref": "#/$defs/One"}]},
        "All": {"type": "object", **every},
        "One": {"type": "object", **one},
    }
    return found


@pytest.mark.parametrize(
    ("new", "kind", "where"),
    [
        (rule("field_name"), "parameter_renamed", "rule.field"),
        (rule("field", tag="rule_kind"), "parameter_renamed", "rule.kind"),
        (rule("field", leaf="condition"), "choice_replaced", "rule.kind"),
    ],
    ids=["member", "what tells them apart", "alternative"],
)
def test_alternatives_in_a_circle_are_told_once_and_carried_or_asked(
    toolshift: Run, new: dict[str, Any], kind: str, where: str
) -> None:
    ((severity, found, place, carriage),) = changed(toolshift, [rule("field")], [new])
    assert (severity, found, place) == ("breaking", kind, where)
    assert carriage in ("carried", "asked")


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("filter[app]", "filter.app"),
        ("accounts[]", "accounts"),
        ("$top", "top"),
        ("@odata.etag", "odata_etag"),
        ("StartTime<", "StartTime_before"),
    ],
)
@pytest.mark.parametrize("inside", [False, True], ids=["parameter", "member"])
def test_a_name_that_is_no_identifier_is_paired(
    toolshift: Run, old: str, new: str, inside: bool
) -> None:
    def listed(name: str) -> list[dict[str, Any]]:
        schema = {"type": "object", "properties": {name: TEXT}}
        return [tool("calls", query=schema) if inside else tool("calls", **{name: TEXT})]

    ((_, kind, where, carriage),) = changed(toolshift, listed(old), listed(new))
    assert (kind, where) == ("parameter_renamed", f"query.{old}" if inside else old)
    assert carriage in ("carried", "asked")


def test_tools_that_differ_in_their_signs_alone_stay_apart(toolshift: Run) -> None:
    three = [tool(name, user=TEXT) for name in ("getUser", "get_user", "get-user")]
    old = [*three, tool("admin.tools.list"), tool("user-profile/update", user=TEXT)]
    new = [*three, tool("admin_tools_list"), tool("user_profile_update", user=TEXT)]
    for one, other in zip(old[3:], new[3:], strict=True):
        other["description"] = one["description"]
    rows = changed(toolshift, old, new)
    assert [row[1] for row in rows] == ["tool_renamed"] * 2


# -- numbers ---------------------------------------------------------------------------------------


def test_a_number_is_the_same_however_it_is_written(toolshift: Run) -> None:
    old = [tool("pay", amount={"type": "number", "minimum": 1.0, "default": 1250.0})]
    new = [tool("pay", amount={"type": "number", "minimum": 1, "default": 1250})]
    assert changed(toolshift, old, new) == []
    text = [tool("pay", amount={"type": "string", "default": "1250"})]
    kinds = [row[1] for row in changed(toolshift, old, text)]
    assert "type_changed" in kinds
