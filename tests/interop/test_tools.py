"""Foreign tool lists: read without loss, said again under other names, sampled."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from connect.shop_server import TOOLS
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolshift.core.errors import UsageError
from toolshift.core.tool import Tool, input_schema, invalid_arguments
from toolshift.interop.schema import MAX_NODES, inlined, properties_of, renamed, sample
from toolshift.interop.tools import from_mcp, from_openai
from toolshift.shifts.surface import Surface


def mcp(inputs: Any, **more: Any) -> dict[str, Any]:
    return {"name": "act", "description": "Acts.", "inputSchema": inputs, **more}


def shown(raw: dict[str, Any], **tables: Any) -> dict[str, Any]:
    toolbox = from_mcp([raw])
    return toolbox.speak(Surface(**tables).show(toolbox.tools[0]))


def test_an_unchanged_list_comes_back_as_it_was_read() -> None:
    toolbox = from_mcp(TOOLS)
    assert [toolbox.speak(tool) for tool in toolbox.tools] == TOOLS


def test_openai_tools_come_back_as_they_were_read() -> None:
    raw = [
        {"type": "function", "function": {"name": "a", "strict": True, "x": [1]}, "y": None},
        {"type": "function", "function": {"name": "b", "parameters": {"type": "object"}}},
    ]
    toolbox = from_openai(raw)
    assert [toolbox.speak(tool) for tool in toolbox.tools] == raw


def test_what_is_said_of_a_tool_is_read() -> None:
    toolbox = from_mcp(TOOLS)
    find, _, cancel = toolbox.tools[:3]
    assert (find.effect, cancel.effect) == ("read", "write")
    assert [(p.name, p.required) for p in find.params] == [("customer", True), ("limit", False)]
    assert find.many
    assert [field.path for field in find.returns] == [("order_ref",), ("total",), ("status",)]
    assert [field.type for field in find.returns] == ["string", "number", "string"]


def test_a_referenced_parameter_stands_on_its_own() -> None:
    cancel = from_mcp(TOOLS).tools[2]
    assert cancel.params[1].schema == {"enum": ["late", "unwanted"], "description": "Why."}
    assert not invalid_arguments(cancel, {"order_ref": "R-1", "reason": "late"})
    assert invalid_arguments(cancel, {"order_ref": "R-1", "reason": "bored"})


@pytest.mark.parametrize(
    "inputs",
    [
        {"properties": {"x": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"$ref": "#/$defs/N"}}},
        {"$ref": "#"},
        {"$ref": "#/$defs/A", "$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}]}}},
        {"properties": {"x": {"$ref": "#/properties/x"}}},
        {"anyOf": [{"$ref": "#"}, {"properties": {"x": {}}}]},
        {"properties": {"x": {"$ref": "https://example.com/far"}}},
    ],
)
def test_circular_and_far_references_hang_nothing(inputs: dict[str, Any]) -> None:
    toolbox = from_mcp([mcp(inputs)])
    (tool,) = toolbox.tools
    assert toolbox.speak(tool) == mcp(inputs)
    names = {tool.name: {param.name: param.name + "_y" for param in tool.params}}
    words = toolbox.speak(Surface(params=names).show(tool))
    assert all(name.endswith("_y") for name in words["inputSchema"].get("properties", {}))
    input_schema(tool)


def test_a_schema_that_would_explode_is_cut() -> None:
    levels = {f"L{n}": {"properties": {k: {"$ref": f"#/$defs/L{n + 1}"} for k in "abcdefgh"}}
              for n in range(30)}  # fmt: skip
    written = inlined({"$ref": "#/$defs/L0"}, {"$defs": levels})
    nodes, level = 0, [written]
    while level:
        nodes += len(level)
        level = [v for one in level for v in one.values() if isinstance(v, dict)]
    assert nodes < 4 * MAX_NODES


def test_a_rename_follows_wherever_the_document_speaks_of_the_parameter() -> None:
    inputs = {
        "type": "object",
        "properties": {
            "by": {"type": "object", "properties": {"id": {"type": "integer"}}},
            "also": {"$ref": "#/properties/by/properties/id"},
            "note": {"type": "string"},
        },
        "required": ["by"],
        "dependentRequired": {"note": ["also"]},
        "anyOf": [{"required": ["also"]}, {"properties": {"note": {"const": "n"}}}],
        "additionalProperties": False,
    }
    words = shown(mcp(inputs), params={"act": {"by": "via", "also": "plus", "note": "memo"}})
    schema = words["inputSchema"]
    check = jsonschema_rs.validator_for(schema)
    assert check.is_valid({"via": {"id": 1}, "plus": 2})
    assert not check.is_valid({"via": {"id": 1}, "plus": "two"}), "the reference still holds"
    assert not check.is_valid({"via": {"id": 1}, "memo": "n"}), "dependentRequired still holds"
    assert not check.is_valid({"via": {"id": 1}, "memo": "other"}), "anyOf still holds"
    assert not check.is_valid({"by": {"id": 1}, "also": 2}), "the old names are gone"


def test_arguments_by_reference_can_be_renamed() -> None:
    inputs = {
        "$ref": "#/$defs/Args",
        "$defs": {"Args": {"type": "object", "properties": {"x": {"type": "integer"}},
                           "required": ["x"]}},
    }  # fmt: skip
    assert properties_of(inputs) == ({"x": {"type": "integer"}}, frozenset({"x"}))
    check = jsonschema_rs.validator_for(renamed(inputs, {"x": "y"}))
    assert check.is_valid({"y": 1})
    assert not check.is_valid({"x": 1})


def test_a_nested_key_of_the_same_name_is_left_alone() -> None:
    inner = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    words = shown(
        mcp({"type": "object", "properties": {"name": inner}}), params={"act": {"name": "title"}}
    )
    assert words["inputSchema"]["properties"] == {"title": inner}


def test_a_new_name_takes_the_title_away() -> None:
    inputs = {"title": "actArguments", "properties": {"to_whom": {"title": "To Whom"}}}
    hints = {"title": "A", "readOnlyHint": True}
    raw = mcp(inputs, title="Acts now", annotations=hints, outputSchema={"title": "actOutput"})
    words = shown(raw, names={"act": "KX-407"}, params={"act": {"to_whom": "whom"}})
    assert words["name"] == "KX-407"
    assert words["annotations"] == {"readOnlyHint": True}
    assert "itle" not in str(words)
    assert "To Whom" in str(shown(raw, names={"act": "KX-407"}))


def test_the_order_of_keys_makes_no_other_list() -> None:
    turned = [dict(reversed(list(raw.items()))) for raw in TOOLS]
    assert from_mcp(turned).hash == from_mcp(TOOLS).hash
    assert from_mcp(TOOLS[::-1]).hash != from_mcp(TOOLS).hash


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two tools are named 'act'"):
        from_mcp([mcp({}), mcp({})])
    with pytest.raises(UsageError, match="tool 0 of the list has no name"):
        from_mcp([{"inputSchema": {}}])


SCHEMAS = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "integer", "minimum": 3},
            {"type": "number", "exclusiveMinimum": 1.5},
            {"enum": ["a", 1]},
            {"const": None},
            {"type": "boolean"},
            {"type": ["null", "string"]},
            {"type": "string", "minLength": 9},
        ]
    ),
    lambda inner: st.one_of(
        st.builds(lambda s: {"type": "array", "items": s, "minItems": 2}, inner),
        st.builds(lambda s: {"anyOf": [s]}, inner),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3).map(
            lambda p: {"type": "object", "properties": p, "required": list(p)}
        ),
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=150)
@given(SCHEMAS)
def test_a_sample_is_accepted_by_its_schema(schema: dict[str, Any]) -> None:
    assert jsonschema_rs.is_valid(schema, sample(schema))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["type", "properties", "required", "$ref", "anyOf", "allOf", "items", "enum", "not",
             "minimum", "minItems", "minLength", "additionalProperties", "dependentRequired",
             "$defs", "description", "examples", "x"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(JSON, JSON)
@example({"properties": {"type": None}, "required": True}, None)
@example({"properties": {"type": None}, "required": [{}, "type"]}, None)
def test_nonsense_schemas_are_read_and_come_back(inputs: Any, outputs: Any) -> None:
    raw = {"name": "act", "inputSchema": inputs, "outputSchema": outputs}
    toolbox = from_mcp([raw])
    toolbox.sources["act"].example()
    (tool,) = toolbox.tools
    assert toolbox.speak(tool) == raw or not isinstance(inputs, dict)
    toolbox.speak(Surface(params={"act": {p.name: p.name + "_" for p in tool.params}}).show(tool))


@pytest.mark.parametrize(
    ("others", "shown"),
    [
        ([{"type": "object", "properties": {"x": {}}}], {"type": "object", "properties": {}}),
        (
            [{"type": "object", "properties": {"x": {}}}, {"type": "object", "required": []}],
            {"type": "object", "required": []},
        ),
        ([{"$ref": "#/somewhere"}], {"type": "object", "properties": {}}),
        ([{"type": "object", "properties": {"x": {}}}, None], None),
    ],
)
def test_an_added_tool_that_takes_nothing_is_written_as_the_others(
    others: list[dict[str, Any] | None], shown: dict[str, Any] | None
) -> None:
    listed = [
        {"type": "function", "function": {"name": f"f{n}", **({"parameters": one} if one else {})}}
        for n, one in enumerate(others)
    ]
    added = from_openai(listed).speak(Tool("badge", "A badge", (), ()))["function"]
    assert added.get("parameters") == shown
    assert ("parameters" in added) == (shown is not None)


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "boolean"}, "string"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}, "string"),
        ({"type": ["number", "null"]}, "number"),
        ({"anyOf": [{"$ref": "#/$defs/Lines"}, {"type": "null"}]}, "string"),
        ({"type": "array", "items": {"type": "object", "properties": {"a": {}}}}, "string"),
    ],
)
def test_optional_values_and_lists_of_a_result_are_declared(
    schema: dict[str, Any], kind: str
) -> None:
    outputs = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "value": schema},
        "$defs": {"Lines": {"type": "array", "items": {"type": "string"}}},
    }
    (tool,) = from_mcp([mcp({}, outputSchema=outputs)]).tools
    assert [(field.path, field.type) for field in tool.returns] == [
        (("id",), "integer"),
        (("value",), kind),
    ]


def test_the_values_of_an_optional_record_are_declared() -> None:
    inner = {"type": "object", "properties": {"amount": {"type": "number"}}}
    gross = {"anyOf": [{"type": "null"}, inner]}
    outputs = {"type": "object", "properties": {"gross": gross, "id": {"type": "string"}}}
    (tool,) = from_mcp([mcp({}, outputSchema=outputs)]).tools
    assert [field.path for field in tool.returns] == [("gross", "amount"), ("id",)]
