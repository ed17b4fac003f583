"""Tools that do several things: taken apart for who plans, put together for the call."""

from __future__ import annotations

import pytest

from toolshift.core.operations import encode_call, split_operations
from toolshift.core.tool import Field, Operation, Param, Tool

FIND = Tool("find", "Find it", (Param("name", "name", {}),), (Field(("id",), "id"),), origin=("f",))
BUY = Tool("buy", "Buy it", (Param("id", "id", {}),), (Field(("ref",), "ref"),), origin=("b",))


def several(nested: bool) -> Tool:
    own = () if nested else (Param("what", "name", {}, False), Param("id", "id", {}, False))
    nest = (Param("input", "the input", {}),) if nested else ()
    return Tool(
        "do",
        "Does it",
        (Param("action", "the action", {}), *nest, *own, Param("page", "page", {}, False)),
        (),
        origin=("f", "b"),
        operations=(
            Operation("find", FIND, "the action", "the input" * nested, (("name", "name"),)),
            Operation("buy", BUY, "the action", "the input" * nested, (("id", "id"),)),
        ),
    )


@pytest.mark.parametrize("nested", [False, True])
def test_an_operation_is_a_tool_of_its_own_that_is_called_through_the_shown_one(
    nested: bool,
) -> None:
    find, buy = split_operations((several(nested),))
    assert [tool.key for tool in (find, buy)] == ["do find", "do buy"]
    assert find.yields("id")
    assert not find.yields("ref")
    assert set(find.needs) == {"the action", "name"}
    call = {"action": "find", find.params[1].name: "x", "page": 2}
    own = {"input": {"name": "x"}} if nested else {"what": "x"}
    assert encode_call(find, call) == {"action": "find", "page": 2, **own}


def test_a_tool_that_resembles_one_of_several_has_no_operations() -> None:
    decoy = several(False).with_(origin=())
    assert split_operations((decoy,)) == (decoy,)
