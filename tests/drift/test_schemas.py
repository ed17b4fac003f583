"""Differences between two schemas of one value, each with what it does to old calls."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from toolshift.drift.schemas import differences, wording
from toolshift.interop.normal import normal

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
NULLABLE: Schema = {"anyOf": [TEXT, {"type": "null"}]}


def kinds(old: Schema, new: Schema) -> list[tuple[str, str, str]]:
    return [
        (one.kind, one.where, one.severity) for one in differences("p", normal(old), normal(new))
    ]


@pytest.mark.parametrize(
    ("old", "new", "kind", "severity"),
    [
        (TEXT, NUMBER, "type_changed", "breaking"),
        (TEXT, NULLABLE, "type_widened", "harmless"),
        (NULLABLE, TEXT, "type_narrowed", "breaking"),
        ({"type": "integer"}, NUMBER, "type_widened", "harmless"),
        (NUMBER, {"type": "integer"}, "type_narrowed", "breaking"),
        ({}, TEXT, "type_narrowed", "breaking"),
        (TEXT, {"type": ["string", "null"]}, "type_widened", "harmless"),
        (TEXT, {"enum": ["a", "b"]}, "choices_introduced", "breaking"),
        ({"enum": ["a", "b"]}, TEXT, "choices_lifted", "harmless"),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, "choice_added", "harmless"),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, "choice_removed", "breaking"),
        ({"enum": ["a", "b"]}, {"enum": ["a", "c"]}, "choice_replaced", "breaking"),
        ({"enum": ["a"]}, {"anyOf": [{"const": "a"}, {"const": "b"}]}, "choice_added", "harmless"),
        (TEXT, {**TEXT, "default": "a"}, "default_added", "maybe"),
        (TEXT, {**TEXT, "default": ""}, "default_added", "harmless"),
        ({**TEXT, "default": "a"}, TEXT, "default_removed", "maybe"),
        ({**TEXT, "default": "a"}, {**TEXT, "default": "b"}, "default_changed", "maybe"),
        ({"default": 1}, {"default": True}, "default_changed", "maybe"),
        ({"default": False}, {"default": 0}, "default_changed", "maybe"),
        (
            {"type": ["integer", "boolean"], "enum": [0, 1]},
            {"type": ["integer", "boolean"], "enum": [False, True]},
            "choice_replaced",
            "breaking",
        ),
        ({"const": [1]}, {"const": [True]}, "choice_replaced", "breaking"),
        (
            {"type": "integer", "minimum": 1},
            {"type": "integer", "exclusiveMinimum": 1},
            "limit_tightened",
            "breaking",
        ),
        (NUMBER, {**NUMBER, "minimum": 1}, "limit_tightened", "breaking"),
        (NUMBER, {**NUMBER, "minimum": 0}, "limit_tightened", "breaking"),
        ({**NUMBER, "minimum": 1}, {**NUMBER, "minimum": 2}, "limit_tightened", "breaking"),
        ({**NUMBER, "maximum": 1}, {**NUMBER, "maximum": 2}, "limit_loosened", "harmless"),
        (TEXT, {**TEXT, "pattern": "a"}, "limit_tightened", "breaking"),
        (TEXT, {**TEXT, "format": "uri"}, "limit_tightened", "maybe"),
        (TEXT, {**TEXT, "not": {"const": "a"}}, "schema_changed", "maybe"),
        (TEXT, {**TEXT, "description": "A text."}, "description_added", "harmless"),
    ],
)
def test_each_difference_has_its_kind_and_its_severity(
    old: Schema, new: Schema, kind: str, severity: str
) -> None:
    assert kinds(old, new) == [(kind, "p", severity)]


def test_a_limit_that_limits_nothing_is_none() -> None:
    assert kinds(TEXT, {**TEXT, "minLength": 0}) == []
    listed = {"type": "array", "items": TEXT}
    assert kinds(listed, {**listed, "minItems": 0, "uniqueItems": False}) == []


def test_what_is_inside_a_renamed_parameter_breaks_no_old_call() -> None:
    old = {"type": "object", "properties": {"page_size": TEXT}}
    new = {"type": "object", "properties": {"pageSize": NUMBER}}
    assert kinds(old, new) == [
        ("parameter_renamed", "p.page_size", "maybe"),
        ("type_changed", "p.page_size", "maybe"),
    ]


def test_the_limit_that_libraries_write_to_every_integer_is_none() -> None:
    most = 2**53 - 1
    new = {"type": "integer", "minimum": -most, "maximum": most}
    assert kinds({"type": "integer"}, new) == []


def test_members_inside_are_paired_by_meaning() -> None:
    old = {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "ref": {"type": "string", "description": "Exact target reference of the element"},
                "value": TEXT,
            },
            "required": ["ref"],
        },
    }
    new = {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "target": {
                    "type": "string",
                    "description": "Exact target reference of the element",
                },
                "value": NUMBER,
                "more": TEXT,
            },
            "required": ["target", "more"],
        },
    }
    assert kinds(old, new) == [
        ("parameter_renamed", "p[].ref", "breaking"),
        ("type_changed", "p[].value", "breaking"),
        ("required_parameter_added", "p[].more", "breaking"),
    ]


def test_a_member_that_is_gone_breaks_only_where_others_are_refused() -> None:
    old = {"type": "object", "properties": {"a": TEXT, "other": NUMBER}}
    new: Schema = {"type": "object", "properties": {"a": TEXT}}
    assert kinds(old, new) == [("parameter_removed", "p.other", "maybe")]
    closed = {**new, "additionalProperties": False}
    assert ("parameter_removed", "p.other", "breaking") in kinds(old, closed)


BASES: list[tuple[Schema, list[Any]]] = [
    (TEXT, ["a", "", "long text"]),
    (NUMBER, [0, 1.5, -3, 10**6]),
    (NULLABLE, ["a", None]),
    ({"enum": ["a", "b"]}, ["a", "b"]),
    ({"type": "integer", "minimum": 2}, [2, 3]),
    ({"type": "array", "items": TEXT}, [[], ["a"]]),
    ({"type": "object", "properties": {"a": TEXT}}, [{}, {"a": "x"}]),
    ({"type": "object", "properties": {"a": TEXT}, "required": ["a"]}, [{"a": "x"}]),
]


def test_whatever_is_refused_has_a_breaking_difference() -> None:
    seen = 0
    for old, values in BASES:
        for new, _ in BASES:
            found = {one.severity for one in differences("p", normal(old), normal(new))}
            refused = [v for v in values if not jsonschema_rs.is_valid(new, v)]
            seen += bool(refused)
            assert not refused or "breaking" in found, (old, new, refused)
    assert seen > 30


def test_how_far_a_text_was_changed() -> None:
    said = "Search the web for pages that match a query and return the best ten."
    assert wording(said, said) == ""
    assert wording(said, said.replace("ten", "five")) == "small"
    assert wording(said, "Search the web for pages about a topic, the best first.") == "reworded"
    assert wording(said, "Looks something up.") == "rewritten"
    assert (wording("", said), wording(said, " ")) == ("added", "removed")


@pytest.mark.parametrize(
    ("was", "now", "severity"),
    [
        ("Timeout in seconds", "Timeout in milliseconds", "maybe"),
        ("The amount is in euros.", "The amount is in cents.", "maybe"),
        ("Day as MM/DD/YYYY", "Day as DD/MM/YYYY", "maybe"),
        ("Day as %d.%m.%Y", "Day as %m.%d.%Y", "maybe"),
        ("All personal data is kept.", "All personal data is kept no more.", "maybe"),
        ("Do open it for the customer.", "Don't open it for the customer.", "maybe"),
        ("Archive the customer.", "Delete the customer.", "maybe"),
        ("Read the mail of the customer.", "Delete the mail of the customer.", "maybe"),
        ("Open a ticket of the customer.", "Close a ticket of the customer.", "maybe"),
        ("Timeout in seconds, of a job", "Timeout of a job, in seconds", "maybe"),
        ("Timeout of a job, one second", "Timeout of a job, two seconds", "maybe"),
        ("Do not open the old ticket.", "Don't open the old ticket.", "harmless"),
        ("Get the mail of the customer.", "Fetches the mail of the customer.", "harmless"),
        ("Delete the mail of one customer.", "Deletes mail of the customer.", "harmless"),
        ("Day as YYYY-MM-DD, in UTC", "Day as yyyy-mm-dd (in UTC)", "harmless"),
    ],
)
def test_one_word_can_be_another_meaning_and_a_rewording_is_none(
    was: str, now: str, severity: str
) -> None:
    for one, other in ((was, now), (now, was)):
        (found,) = differences(
            "p", normal({**TEXT, "description": one}), normal({**TEXT, "description": other})
        )
        assert found.severity == severity
        assert found.kind in ("description_small", "description_reworded")


A = {"type": "object", "properties": {"kind": {"const": "a"}}, "required": ["kind"]}
B = {"type": "object", "properties": {"kind": {"const": "b"}}, "required": ["kind"]}
MAP: Schema = {"type": "object", "additionalProperties": {"type": "integer"}}


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (MAP, {**MAP, "additionalProperties": TEXT}, ("type_changed", "p.*", "breaking")),
        ({"type": "object"}, MAP, ("type_narrowed", "p.*", "breaking")),
        ({"type": "object"}, A, ("required_parameter_added", "p.kind", "breaking")),
        ({"type": "array"}, {"type": "array", "items": TEXT}, ("type_narrowed", "p[]", "breaking")),
        ({"anyOf": [A, B]}, {"anyOf": [A]}, ("schema_changed", "p", "maybe")),
        (
            {"type": "array", "items": [TEXT, NUMBER]},
            {"type": "array", "items": [NUMBER, TEXT]},
            ("schema_changed", "p", "maybe"),
        ),
        (
            {"type": "object", "propertyNames": {"pattern": "^a"}},
            {"type": "object", "propertyNames": {"pattern": "^b"}},
            ("schema_changed", "p", "maybe"),
        ),
    ],
)
def test_what_has_no_name_of_its_own_is_compared_too(
    old: Schema, new: Schema, found: tuple[str, str, str]
) -> None:
    assert kinds(old, new) == [found]


def test_another_way_to_write_a_schema_is_no_difference() -> None:
    for one, other in (
        ({"enum": ["a", "b"]}, {"anyOf": [{"const": "a"}, {"const": "b"}]}),
        (NULLABLE, {"type": ["null", "string"]}),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": "object", "required": ["a", "b"]}, {"type": "object", "required": ["b", "a"]}),
        ({"type": "integer", "minimum": 1}, {"type": "integer", "exclusiveMinimum": 0}),
        ({"type": "integer", "maximum": 9}, {"type": "integer", "exclusiveMaximum": 10}),
        ({"type": "integer", "default": 1}, {"type": "integer", "default": 1.0}),
    ):
        assert kinds(one, other) == kinds(other, one) == []
