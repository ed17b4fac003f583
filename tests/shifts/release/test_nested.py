"""What is inside of an argument: said in the other form, and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.interop.tools import Source, from_mcp
from toolshift.shifts.release.nested import Restated, Unsayable, form_of, nodes_in

TEXT = {"type": "string"}
NAMES = ("name", "kind", "count", "lines")
Pair = tuple[Any, Any, Any]
"""A schema, the same under other names, and a value of the first."""


def source(**params: Any) -> Source:
    tool = {"name": "do", "inputSchema": {"type": "object", "properties": params}}
    (found,) = from_mcp([tool]).sources.values()
    return found


def an_object(members: dict[str, Pair], renames: dict[str, str]) -> Pair:
    old = {name: one[0] for name, one in members.items()}
    new = {renames[name]: one[1] for name, one in members.items()}
    value = {name: one[2] for name, one in members.items()}
    return (
        {"type": "object", "properties": old, "required": sorted(old)},
        {"type": "object", "properties": new, "required": sorted(new)},
        value,
    )


LEAVES = st.sampled_from(
    [
        (TEXT, TEXT, "a"),
        ({"type": "integer"}, {"type": "number"}, 3),
        ({"type": "boolean"}, {"type": "boolean"}, True),
        ({"type": "integer"}, {"type": "string"}, 7),
        (TEXT, {"type": ["string", "null"]}, "b"),
    ]
)
RENAMES = {name: f"{name}_now" for name in NAMES}
PAIRS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=3).map(
            lambda members: an_object(members, RENAMES)
        ),
        inner.map(
            lambda one: (
                {"type": "array", "items": one[0]},
                {"type": "array", "items": one[1]},
                [one[2], one[2]],
            )
        ),
    ),
    max_leaves=6,
)


@given(PAIRS)
def test_what_is_said_in_the_new_form_comes_back_as_it_was(pair: Pair) -> None:
    old, new, value = pair
    before, after = source(p=old), source(p=new)
    names = {
        path: RENAMES[name]
        for path, _ in nodes_in(form_of(before))
        if (name := path.rpartition(".")[2].replace("[]", "")) in RENAMES
    }
    how = Restated(before, after, "p", "p", names)
    assert how.inward(how.outward(value)) == value


def alternatives(*parts: tuple[str, str, str]) -> dict[str, Any]:
    return {
        "oneOf": [
            {"type": "object", "properties": {tag: {"const": value}, name: TEXT}, "required": [tag]}
            for tag, value, name in parts
        ]
    }


def test_an_alternative_goes_by_its_new_words() -> None:
    before = source(p=alternatives(("kind", "card", "number"), ("kind", "bank", "iban")))
    after = source(p=alternatives(("type", "credit_card", "number"), ("type", "bank", "iban_code")))
    names = {"p.kind": "type", "p.iban": "iban_code"}
    how = Restated(before, after, "p", "p", names, {"p.kind": {"card": "credit_card"}})
    for old, new in (
        ({"kind": "card", "number": "4"}, {"type": "credit_card", "number": "4"}),
        ({"kind": "bank", "iban": "DE"}, {"type": "bank", "iban_code": "DE"}),
    ):
        assert how.outward(old) == new
        assert how.inward(new) == old
    unknown = {"type": "paypal", "mail": "m"}
    with pytest.raises(Unsayable, match="nothing for type 'paypal'"):
        how.inward(unknown)


def test_what_the_tool_behind_needs_and_nobody_says_is_no_guess() -> None:
    old = {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["b"]}
    new = {"type": "object", "properties": {"a": TEXT}}
    with pytest.raises(Unsayable, match=r"needs p\.b"):
        Restated(source(p=old), source(p=new), "p", "p").inward({"a": "x"})
    fixed = Restated(source(p=old), source(p=new), "p", "p", fixed={"p.b": "y"})
    assert fixed.inward({"a": "x"}) == {"a": "x", "b": "y"}
