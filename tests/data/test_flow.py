"""Merged, split and guarded tools in recordings: only where the data flow is plain."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolshift.data.augment import Made, Recipe, augmented
from toolshift.data.conversation import Conversation
from toolshift.data.flow import Link, flow_of
from toolshift.data.formats import FORMATS
from toolshift.data.prepared import called
from toolshift.data.replay import check

OPENAI = FORMATS.find("openai")
FORMS = ("openai", "hermes", "sharegpt", "toolace", "adp")


def tool(name: str, text: str, *params: str) -> dict[str, Any]:
    properties = {each: {"type": "string"} for each in params}
    schema = {"type": "object", "properties": properties, "required": list(params)}
    function = {"name": name, "description": text, "parameters": schema}
    return {"type": "function", "function": function}


def call(number: int, name: str, said: str = "", **arguments: Any) -> dict[str, Any]:
    inner = {"name": name, "arguments": json.dumps(arguments)}
    calls = [{"id": f"c{number}", "type": "function", "function": inner}]
    return {"role": "assistant", "content": said, "tool_calls": calls}


def result(number: int, **data: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": json.dumps(data)}


def shop() -> dict[str, Any]:
    """A customer is found, then their last order, which is cancelled."""
    return {
        "messages": [
            {"role": "user", "content": "I am jane@example.com. Cancel my order, it is too late."},
            call(1, "find_customer", email="jane@example.com"),
            result(1, customer_id="cust_88412", tier="gold"),
            call(2, "last_order", customer="cust_88412"),
            result(2, order={"id": "ord-5512", "total": 31.5}),
            call(3, "cancel_order", order_id="ord-5512", reason="too late"),
            result(3, status="cancelled"),
            {"role": "assistant", "content": "Your order ord-5512 is cancelled."},
        ],
        "tools": [
            tool("find_customer", "Find a customer by e-mail.", "email"),
            tool("last_order", "The last order of a customer.", "customer"),
            tool("cancel_order", "Cancel an order.", "order_id", "reason"),
        ],
    }


def made(row: dict[str, Any], shift: str, severity: int = 1) -> Made:
    recipe = Recipe(alpha=1.0, shifts=(shift,), severities=(severity,))
    return augmented(row, json.dumps(row).encode(), recipe)


def only(row: dict[str, Any], shift: str, severity: int = 1) -> Conversation:
    (each,) = made(row, shift, severity).rows
    return OPENAI.read(each)


def test_what_is_passed_on_is_read_from_the_recording() -> None:
    flow = flow_of(OPENAI.read(shop()))
    assert flow.links == (
        Link("last_order", ("order", "id"), "cancel_order", "order_id"),
        Link("find_customer", ("customer_id",), "last_order", "customer"),
    )
    assert [name for name, _ in flow.results] == ["cancel_order", "find_customer", "last_order"]


def test_merged_tools_take_what_the_caller_knew_and_return_both_results() -> None:
    after = only(shop(), "merged_tools@1", 2)
    (one,) = after.tools
    (message,) = [said for said in after.messages if said.calls]
    assert message.calls[0].name == one.function["name"]
    assert message.calls[0].arguments == {"email": "jane@example.com", "reason": "too late"}
    (brought,) = [json.loads(said.text) for said in after.messages if said.role == "tool"]
    assert brought == {
        "customer_id": "cust_88412",
        "tier": "gold",
        "order": {"id": "ord-5512", "total": 31.5},
        "status": "cancelled",
    }
    assert ".." not in one.function["description"]


def test_a_split_tool_hands_its_arguments_to_the_first_call_and_its_result_to_the_second() -> None:
    before, after = OPENAI.read(shop()), only(shop(), "split_tools", 3)
    said = [call for message in after.messages for call in message.calls]
    assert len(said) == 6
    for first, second, was in zip(said[::2], said[1::2], _calls(before), strict=True):
        assert first.arguments == was.arguments
        (handle,) = second.arguments.values()
        results = {m.call_id: m.text for m in after.messages if m.role == "tool"}
        assert handle in results[first.id]
        assert results[second.id] == next(
            m.text for m in before.messages if m.role == "tool" and m.call_id == was.id
        )


def test_a_tool_that_is_marked_to_read_is_split_into_parts_of_its_result() -> None:
    row = shop()
    for each in row["tools"]:
        each["function"]["annotations"] = {"readOnlyHint": True}
    row["messages"] = row["messages"][:3]
    after = only(row, "split_tools", 1)
    assert len(after.tools) == 4
    first, second = _calls(after)
    assert first.arguments == second.arguments == {"email": "jane@example.com"}
    parts = [json.loads(said.text) for said in after.messages if said.role == "tool"]
    shown = {key: value for part in parts for key, value in part.items() if key != "part_ref"}
    assert shown == {"customer_id": "cust_88412", "tier": "gold"}


def test_a_guarded_tool_is_called_with_the_permit_that_another_gives() -> None:
    after = only(shop(), "new_precondition", 3)
    granted, guarded = _calls(after)[:2]
    results = {m.call_id: m.text for m in after.messages if m.role == "tool"}
    (permit,) = set(guarded.arguments.values()) - {"jane@example.com"}
    assert permit in results[granted.id]
    assert guarded.name == "find_customer"


def _calls(conversation: Conversation) -> list[Any]:
    return [call for message in conversation.messages for call in message.calls]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("shift", ["merged_tools@1", "split_tools", "new_precondition"])
def test_every_format_with_results_can_say_it(name: str, shift: str) -> None:
    form = FORMATS.find(name)
    row = form.write(OPENAI.read(shop()), None)
    done = made(json.loads(json.dumps(row)), shift)
    assert done.shifts == f"{shift}:1", done.reasons
    after = form.read(done.rows[0])
    check(after)
    assert called(after) != called(form.read(row)) or shift == "new_precondition"
    assert len(_calls(after)) == (2 if shift.startswith("merged") else 4)


def with_messages(*messages: dict[str, Any]) -> dict[str, Any]:
    return {**shop(), "messages": list(messages)}


USER, FIND, FOUND, LAST, ORDER, *_ = shop()["messages"]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        pytest.param(
            with_messages(
                {"role": "user", "content": "Orders of cust_88412, jane@example.com?"},
                *(FIND, FOUND, LAST, ORDER),
            ),
            "no pair to merge",
            id="the user has said the value",
        ),
        pytest.param(
            with_messages(
                USER, FIND, FOUND, {"role": "assistant", "content": "One moment."}, LAST, ORDER
            ),
            "no pair to merge",
            id="something stands between the calls",
        ),
        pytest.param(
            with_messages(USER, FIND, FOUND, {**LAST, "content": "Now the order."}, ORDER),
            "something is said between the calls",
            id="something is said with the second call",
        ),
        pytest.param(
            with_messages(
                USER, FIND, result(1, customer_id="cust_88412", owner="cust_88412"), LAST, ORDER
            ),
            "no pair to merge",
            id="the value stands in two places",
        ),
        pytest.param(
            with_messages(USER, FIND, FOUND, LAST, {**ORDER, "content": "No orders."}),
            "no pair to merge",
            id="a result is a text",
        ),
        pytest.param(
            with_messages(USER, FIND, FOUND, LAST, result(2, tier="silver", id="ord-5512")),
            "two results have other values under one key",
            id="results clash",
        ),
        pytest.param(
            with_messages(USER, FIND, FOUND, LAST, ORDER, call(4, "last_order", customer="cust_1"),
                          result(4, order={"id": "x", "total": 1})),
            "no tool that is shown stands for last_order alone",
            id="a call stands alone elsewhere",
        ),
        pytest.param(
            with_messages(
                {"role": "system", "content": "Call find_customer first."}, *shop()["messages"][:5]
            ),
            "a text names a tool that others take the place of",
            id="the system text names what is gone",
        ),
    ],
)  # fmt: skip
def test_what_is_not_plain_is_not_merged(row: dict[str, Any], why: str) -> None:
    done = made(row, "merged_tools")
    assert done.rows == ()
    assert why in done.reasons["merged_tools"]


def test_a_short_value_may_be_a_coincidence() -> None:
    row = with_messages(
        USER,
        FIND,
        result(1, id="c1", tier="gold"),
        call(2, "last_order", customer="c1"),
        result(2, order={"id": "ord-5512"}),
    )
    assert flow_of(OPENAI.read(row)).links == ()


def test_of_calls_at_once_either_all_have_results_or_none() -> None:
    both = {**FIND, "tool_calls": [*FIND["tool_calls"], *LAST["tool_calls"]]}
    done = made(with_messages(USER, both, FOUND), "split_tools")
    assert "the results of some calls and not of others" in done.reasons["split_tools"]


def test_calls_at_once_are_told_apart_where_the_tools_change_between_them() -> None:
    row = shop()
    row["messages"][1]["tool_calls"] += row["messages"][5]["tool_calls"]
    row["messages"][2:7] = [row["messages"][2], row["messages"][6]]
    done = made(row, "tool_removed_midway")
    assert done.shifts == "tool_removed_midway:1", done.reasons
    assert len(done.rows) == 2
    lists = [{tool["function"]["name"] for tool in each["tools"]} for each in done.rows]
    assert lists[0] != lists[1]
    for each in done.rows:
        check(OPENAI.read(each))


@pytest.mark.parametrize("shift", ["transient_error", "redirect", "split_tools"])
def test_what_comes_before_a_call_needs_no_result_of_it(shift: str) -> None:
    row = {**shop(), "messages": shop()["messages"][:2]}
    done = made(row, shift)
    after = OPENAI.read(done.rows[0])
    check(after)
    assert [said.role for said in after.messages] == ["user", "assistant", "tool", "assistant"]
    assert "jane@example.com" in str(after.messages[1].calls[0].arguments)


def test_what_a_format_cannot_say_is_not_applicable_and_no_fault_of_the_row() -> None:
    text = {"type": "str", "description": ""}
    tools = [{"name": "find", "description": "Finds.", "parameters": {"q": text}},
             {"name": "send", "description": "Sends.", "parameters": {"to": text}}]  # fmt: skip
    answers = [{"name": "find", "arguments": {"q": "x"}}]
    row = {"query": "Find x.", "tools": json.dumps(tools), "answers": json.dumps(answers)}
    reasons = {
        shift: made({**row, "id": n}, shift).reasons
        for n in range(4)
        for shift in ("transient_error", "endings")
    }
    for found in reasons.values():
        assert all("xlam holds one question" in why for why in found.values())
    done = augmented(row, b"x", Recipe(alpha=1.0, shifts=("transient_error",), to="openai"))
    assert [said["role"] for said in done.rows[0]["messages"]].count("tool") >= 1


@pytest.mark.parametrize("twice", [False, True])
def test_tools_of_one_name_and_unlearned_calls_of_none_stop_nothing(twice: bool) -> None:
    row = shop()
    if twice:
        row["tools"].append(row["tools"][0])
    else:
        row["messages"].insert(1, {**call(9, "nobody"), "weight": 0})
    for shift in ("transient_error", "SBP", "midway", "graph", "endings"):
        done = made(row, shift)
        assert done.rows or done.reasons
