"""One form of schemas: what generators write in many ways is the same, what asks more is not."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.drift.changes import changes_between
from toolshift.interop.normal import normal

TEXT = {"type": "string"}
Schema = dict[str, Any]


def tool(schema: Schema, **more: Any) -> list[Schema]:
    return [{"name": "find", "inputSchema": {"type": "object", **schema}, **more}]


def taking(inner: Any, **more: Any) -> list[Schema]:
    return tool({"properties": {"q": inner}, **more})


def under(key: str, kind: str) -> list[Schema]:
    held = {"Kind": {"title": "Kind", "enum": ["a", "b"], "type": "string"}}
    told = {"allOf": [{"$ref": f"#/{key}/Kind"}]} if kind == "allOf" else {"$ref": f"#/{key}/Kind"}
    return tool({"properties": {"q": {**told, "default": "a"}}, key: held})


EMAIL = r"^(?!\.)(?!.*\.\.)([\w'+\-\.]*)[\w+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
SAME = {
    "draft 04 limits": (
        taking({"type": "number", "minimum": 0, "exclusiveMinimum": True}),
        taking({"type": "number", "exclusiveMinimum": 0}),
    ),
    "OpenAPI 3.0 null": (
        taking({**TEXT, "nullable": True}),
        taking({"anyOf": [TEXT, {"type": "null"}]}),
    ),
    "null choice": (
        taking({**TEXT, "nullable": True, "enum": ["x"]}),
        taking({"oneOf": [{"const": "x"}, {"type": "null"}]}),
    ),
    "pydantic 1 and 2": (under("definitions", "allOf"), under("$defs", "ref")),
    "zod 3 and 4, whole number": (
        taking({"type": "integer", "exclusiveMinimum": 0}),
        taking({"type": "integer", "minimum": 1, "maximum": 2**53 - 1}),
    ),
    "zod 3 and 4, format": (
        taking({**TEXT, "format": "email"}),
        taking({**TEXT, "format": "email", "pattern": EMAIL}),
    ),
    "dependencies": (
        tool({"properties": {"a": TEXT, "b": TEXT}, "dependencies": {"a": ["b"]}}),
        tool({"properties": {"a": TEXT, "b": TEXT}, "dependentRequired": {"a": ["b"]}}),
    ),
    "tuples": (
        taking({"type": "array", "items": [TEXT, TEXT], "additionalItems": False}),
        taking({"type": "array", "prefixItems": [TEXT, TEXT], "items": False}),
    ),
    "types": (
        taking({"type": ["integer", "string"]}),
        taking({"anyOf": [TEXT, {"type": "integer"}]}),
    ),
    "example": (taking({**TEXT, "example": "x"}), taking({**TEXT, "examples": ["x"]})),
    "titles": (taking({**TEXT, "title": "Q"}, title="findArguments"), taking(TEXT)),
    "anything": (taking(True), taking({})),
    "whole floats": (
        taking({"type": "number", "default": 1250.0, "minimum": 1.0}),
        taking({"type": "number", "default": 1250, "minimum": 1}),
    ),
    "parts": (
        taking(
            {"allOf": [
                {"type": "object", "properties": {"x": TEXT}, "required": ["x"]},
                {"properties": {"y": TEXT}},
            ]}
        ),
        taking({"type": "object", "properties": {"x": TEXT, "y": TEXT}, "required": ["x"]}),
    ),
    "closed": (taking(TEXT, additionalProperties=False), taking(TEXT, unevaluatedProperties=False)),
}  # fmt: skip


@pytest.mark.parametrize("case", SAME)
def test_another_generator_alone_is_silent(case: str) -> None:
    one, other = SAME[case]
    assert changes_between(one, other) == changes_between(other, one) == ()


def test_what_is_left_out_is_null_in_strict_mode_alone() -> None:
    plain = tool({"properties": {"q": TEXT, "n": TEXT}, "required": ["q"]})
    every = {"properties": {"q": TEXT, "n": {"type": ["string", "null"]}}, "required": ["q", "n"]}
    (said,) = changes_between(plain, tool(every, strict=True))
    assert (said.kind, said.severity) == ("other_changed", "harmless")  # that it is strict
    kinds = {(one.kind, one.severity) for one in changes_between(plain, tool(every))}
    assert ("parameter_required", "breaking") in kinds


@pytest.mark.parametrize(
    ("pattern", "silent"), [(EMAIL, True), (r"@corp\.example$", False), ("(", False)]
)
def test_a_pattern_is_the_generators_only_where_it_says_the_format(
    pattern: str, silent: bool
) -> None:
    now = taking({**TEXT, "format": "email", "pattern": pattern})
    changes = changes_between(taking({**TEXT, "format": "email"}), now)
    assert (not changes) == silent


# -- references in circles -------------------------------------------------------------------------


def tree(level: str, wrap: bool) -> Schema:
    """A tree of nodes, by a pointer into the schema itself or by a definition."""
    held: Any = {"$ref": "#/$defs/Node"} if wrap else None
    node = {
        "type": "object",
        "properties": {
            "level": {"type": level},
            "below": {"type": "array", "items": held or {"$ref": "#/properties/q/items"}},
        },
    }
    several = {"type": "array", "items": held or node}
    more = several if wrap else {"$ref": "#/properties/q"}
    return {
        "properties": {"q": several, "more": more},
        **({"$defs": {"Node": node}} if wrap else {}),
    }


@pytest.mark.parametrize("wrap", [False, True])
def test_a_recursion_is_told_once_and_another_way_to_write_it_never(wrap: bool) -> None:
    was = tool(tree("string", False))
    assert changes_between(was, tool(tree("string", wrap))) == ()
    (one,) = changes_between(was, tool(tree("integer", wrap)))
    assert (one.kind, one.where, one.severity) == ("type_changed", "q[].level", "breaking")


X = {"$ref": "#/$defs/X"}
NULL = {"type": "null"}
BESIDE = {
    "null comes": (X, {"anyOf": [X, NULL]}),
    "null goes": ({"anyOf": [X, NULL]}, {"anyOf": [X]}),
    "a default": ({**X, "default": {"n": "1"}}, {**X, "default": {"n": "2"}}),
    "a limit": (X, {**X, "minProperties": 2}),
    "a limit beside null": (
        {"anyOf": [X, NULL], "minProperties": 1},
        {"anyOf": [X, NULL], "minProperties": 2},
    ),
    "a limit in parts": ({"allOf": [X]}, {"allOf": [X, {"minProperties": 2}]}),
}


@pytest.mark.parametrize("case", BESIDE)
def test_what_stands_beside_a_reference_is_told_where_its_definition_changes_too(case: str) -> None:
    def two(inner: Schema, kind: str) -> list[Schema]:
        held = {"X": {"type": "object", "properties": {"n": {"type": kind}}}}
        return tool({"properties": {"first": X, "q": inner}, "$defs": held})

    was, now = BESIDE[case]
    alone = {(c.kind, c.where) for c in changes_between(two(was, "string"), two(now, "string"))}
    both = {(c.kind, c.where) for c in changes_between(two(was, "string"), two(now, "integer"))}
    assert len(alone) == 1
    assert both >= alone | {("type_changed", "first.n")}


def rules(field: str, third: bool = False) -> Schema:
    ref = {"$ref": "#/$defs/Rule"}
    several = [{"$ref": "#/$defs/All"}, {"$ref": "#/$defs/Leaf"}]
    several += [{"$ref": "#/$defs/Not"}] if third else []
    leaf = {
        "type": "object",
        "required": ["kind", field],
        "properties": {"kind": {"const": "leaf"}, field: TEXT},
    }
    every = {
        "type": "object",
        "required": ["kind", "of"],
        "properties": {"kind": {"const": "all"}, "of": {"type": "array", "items": ref}},
    }
    negated = {"type": "object", "properties": {"kind": {"const": "not"}, "of": ref}}
    defs = {"Rule": {"oneOf": several}, "All": every, "Leaf": leaf, "Not": negated}
    return {"properties": {"rule": ref}, "$defs": defs}


def test_alternatives_are_compared_by_what_tells_them_apart() -> None:
    (one,) = changes_between(tool(rules("name")), tool(rules("full_name")))
    assert (one.kind, one.where, one.severity) == ("parameter_renamed", "rule.name", "breaking")
    (more,) = changes_between(tool(rules("name")), tool(rules("name", third=True)))
    assert (more.kind, more.after, more.severity) == ("choice_added", ["not"], "harmless")
    (less,) = changes_between(tool(rules("name", third=True)), tool(rules("name")))
    assert (less.kind, less.before, less.where) == ("choice_removed", ["not"], "rule.kind")


# -- the same demand -------------------------------------------------------------------------------

scalars = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["a", "b", ""]))
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)
leaves = st.one_of(
    st.sampled_from(["string", "integer", "number", "boolean", "null"]).map(lambda k: {"type": k}),
    st.lists(scalars, min_size=1, max_size=3).map(lambda each: {"enum": each}),
    st.builds(lambda low: {"type": "integer", "exclusiveMinimum": low}, st.integers(-2, 2)),
    st.just(True),
    st.just({}),
)
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda each: {"anyOf": each}),
        st.lists(inner, min_size=1, max_size=2).map(lambda each: {"allOf": each}),
        st.lists(inner, min_size=1, max_size=3).map(lambda each: {"oneOf": each}),
        inner.map(lambda one: {"type": "array", "items": one}),
        st.builds(
            lambda each, needs, rest: {
                "type": "object",
                "properties": each,
                "required": needs,
                **rest,
            },
            st.dictionaries(st.sampled_from("ab"), inner),
            st.lists(st.sampled_from("ab"), max_size=2, unique=True),
            st.sampled_from([{}, {"additionalProperties": False}]),
        ),
    ),
    max_leaves=6,
)


@given(schemas, values)
def test_the_form_takes_what_the_schema_takes(schema: Any, value: Any) -> None:
    form = normal(schema)
    assert jsonschema_rs.is_valid(form, value) == jsonschema_rs.is_valid(schema, value)
    assert normal(form) == form


@pytest.mark.parametrize(
    "key", ["properties", "required", "anyOf", "allOf", "items", "$defs", "not", "enum"]
)
@pytest.mark.parametrize("value", ["text", 7, None, [3], {"a": 4}])
def test_a_keyword_of_no_form_breaks_nothing_and_a_change_of_it_is_told(
    key: str, value: Any
) -> None:
    found = normal({"type": "object", key: value, "dependentSchemas": 3, "dependencies": {"a": []}})
    for name, form in (("properties", dict), ("required", list), ("anyOf", list), ("enum", list)):
        assert isinstance(found.get(name, form()), form)
    if key in ("properties", "required", "enum") and value in ("text", 7):
        assert found != normal({"type": "object", key: "another", "dependentSchemas": 3})
