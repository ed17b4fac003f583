"""Which tool of today stands for one of the lock: never one of another effect, scope or unit."""

from __future__ import annotations

from typing import Any

import pytest
from adapt.test_layer import READS
from drift.test_changes import tool

from toolshift.drift.effects import contradict, only_reads, opposed, substituted
from toolshift.interop.tools import Source, from_mcp
from toolshift.watch.successors import Today

STATE = "Change the state of one thing"
Call = tuple[str, dict[str, Any]]


def made(call: Call, was: list[dict[str, Any]], now: list[dict[str, Any]]) -> Call:
    """A call by the names of its successor; as it is where there is none. Today has no hints."""
    bare = [{key: value for key, value in t.items() if key != "annotations"} for t in now]
    found = Today(from_mcp(was), bare).successor(call[0])
    if found is None or not call[1].keys() <= found.params.keys():
        return call
    return found.tool, {found.params[key]: value for key, value in call[1].items()}


def param(text: str, kind: str = "string") -> dict[str, Any]:
    return {"type": kind, "description": text}


@pytest.mark.parametrize(
    ("was", "now"),
    [
        *(("enable_it", "disable_it"), ("lock_door", "unlock_door"), ("turn_on", "turn_off")),
        *(("freeze_card", "unfreeze_card"), ("arm_alarm", "disarm_alarm"), ("hire", "fire")),
        *(("make_public", "make_private"), ("vote_up", "vote_down"), ("pay_it", "refund_it")),
        *(("deploy_dev", "deploy_prod"), ("delete_draft", "delete_account"), ("get_it", "set_it")),
    ],
)
def test_a_write_is_never_made_by_an_opposite_name(was: str, now: str) -> None:
    call = (was, {"id": "1"})
    assert (
        made(call, [tool(was, STATE, id=param("Id"))], [tool(now, STATE, id=param("Id"))]) == call
    )


@pytest.mark.parametrize(
    ("was", "now"),
    [
        *(
            ("delete_user", "archive_user"),
            ("archive_user", "purge_user"),
            ("hold_it", "capture_it"),
        ),
        *(("preview_mail", "send_mail"), ("soft_delete_user", "hard_delete_user")),
        *(("dry_run_deploy", "deploy"), ("deploy", "dry_run_deploy"), ("draft_mail", "mail")),
        *(("stage_deploy", "prod_deploy"), ("eu_create_user", "us_create_user")),
        *(("reply_mail", "reply_all_mail"), ("delete_order", "delete_all_orders")),
    ],
)
def test_a_write_is_made_by_no_name_of_another_effect_or_scope(was: str, now: str) -> None:
    call, text = (was, {"id": "1"}), "One of the things in the shop"
    old, new = (tool(name, text, id=param("Id of the thing")) for name in (was, now))
    assert made(call, [old], [new]) == call


@pytest.mark.parametrize(
    ("was", "now"),
    [("book_room", "reserve_room"), ("send_mail", "dispatch_mail"), ("delete_it", "remove_it")],
)
def test_a_write_is_made_by_another_name_of_the_same_effect(was: str, now: str) -> None:
    text = "One of the things in the shop"
    old, new = (tool(name, text, id=param("Id of the thing")) for name in (was, now))
    assert made((was, {"id": "1"}), [old], [new]) == (now, {"id": "1"})


def test_a_write_is_made_of_no_tool_that_says_that_it_destroys_where_the_old_one_does_not() -> None:
    def hinted(name: str, destroys: bool) -> Source:
        hints = {"annotations": {"readOnlyHint": False, "destructiveHint": destroys}}
        (source,) = from_mcp([{**tool(name, STATE), **hints}]).sources.values()
        return source

    assert opposed(hinted("op1", False), hinted("op2", True))
    assert not opposed(hinted("op1", True), hinted("op2", True))
    assert not opposed(hinted("op1", True), hinted("op2", False))


@pytest.mark.parametrize("reads", [True, False])
def test_a_description_of_one_word_says_not_what_a_parameter_is(reads: bool) -> None:
    def document(name: str, text: str) -> dict[str, Any]:
        hints = READS if reads else {}
        return {**tool("act_on", "Act on what is given", **{name: param(text)}), **hints}

    call = ("act_on", {"customer_id": "1"})
    for text, name, found in (
        ("Identifier", "merchant_id", "customer_id"),
        ("Identifier", "customerId", "customerId"),
        ("Who pays the bill", "payer_id", "payer_id"),
    ):
        moved = made(call, [document("customer_id", text)], [document(name, text)])
        assert moved == ("act_on", {found: "1"})


def test_a_write_rests_on_no_description_of_a_word_or_two() -> None:
    call = ("op1", {"id": "1"})
    for text, name in (("Run", "op1"), ("Run it", "op1"), ("Run it once a day", "op2")):
        found = made(call, [tool("op1", text, id=param("Id"))], [tool("op2", text, id=param("Id"))])
        assert found[0] == name


PAY_FROM = {"from": param("Account that pays"), "to": param("Account that receives")}


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (PAY_FROM, {"from": PAY_FROM["to"], "to": PAY_FROM["from"]}),
        (PAY_FROM, {**PAY_FROM, "to": param("Account that receives the fee")}),
        ({"dose": param("Dose in mg", "number")}, {"dose": param("Dose in mcg", "number")}),
        ({"dose_mg": param("Dose", "number")}, {"dose_mcg": param("Dose", "number")}),
        ({"last_minutes": param("Back", "number")}, {"last_seconds": param("Back", "number")}),
        ({"include": param("Tag")}, {"exclude": param("Tag")}),
        ({"min_price": param("Price")}, {"max_price": param("Price")}),
        ({"before": param("Date")}, {"after": param("Date")}),
        ({"from": param("Account")}, {"to": param("Account")}),
    ],
)
@pytest.mark.parametrize("reads", [True, False])
def test_a_value_goes_under_no_name_that_means_something_else(
    was: dict[str, Any], now: dict[str, Any], reads: bool
) -> None:
    hints = READS if reads else {}
    call = ("act_on", dict.fromkeys(was, 1 if "number" in str(was) else "a"))
    told = {**tool("act_on", "Act on what is given", **was), **hints}
    for name in ("act_on", "x7"):
        today = {**tool(name, "Act on what is given", **now), **hints}
        if name != "act_on" or was.keys() != now.keys():
            assert made(call, [told], [today]) == call


def test_a_read_is_made_of_no_tool_that_reads_something_else() -> None:
    for was, now in (
        (
            "List all the users of a team that are active",
            "List all the users of a team that are not active",
        ),
        (
            "Read the logs of a build on the dev servers",
            "Read the logs of a build on the main servers",
        ),
    ):
        old = {**tool("list_it", was, id=param("Id")), **READS}
        new = {**tool("x7", now, id=param("Id")), **READS}
        call = ("list_it", {"id": "1"})
        assert made(call, [old], [new]) == call


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("get_next_number", "Get the next number; each call takes one"),
        ("fetch_message", "Fetch a message and remove it from the queue"),
        ("get_token", "Get a one-time token"),
        ("check_out", "Check out a book"),
        ("show_and_dispense", "Show and dispense"),
    ],
)
def test_what_may_change_something_does_not_only_read(name: str, text: str) -> None:
    document = tool(name, text, id=param("Id"))
    (source,) = from_mcp([document]).sources.values()
    assert not only_reads(source)


USER = {**tool("get_user", "Read a user by id", id=param("Id")), **READS}
FIND_USER = {**tool("find_user", "Find a user by mail", mail=param("Mail")), **READS}


def both(text: str, **more: Any) -> dict[str, Any]:
    whole = tool("user", text, id=param("Id"), mail=param("Mail"), **more)
    whole["inputSchema"]["required"] = []
    return whole


def test_reads_that_became_one_are_made_of_it_and_a_write_among_them_is_not() -> None:
    text = "Read a user by id. Find a user by mail."
    call = ("get_user", {"id": "1"})
    assert made(call, [USER, FIND_USER], [both(text)]) == ("user", {"id": "1"})
    erase = tool("erase_user", "Erase a user by mail", mail=param("Mail"))
    needs = both(text, kind=param("Kind"))
    needs["inputSchema"]["required"] = ["kind"]
    for was, now in (
        ([USER, erase], both("Read a user by id. Erase a user by mail.")),
        ([USER, FIND_USER], both(f"{text} Then removes it.")),
        ([USER, FIND_USER], needs),
    ):
        assert made(call, was, [now]) == call


def test_texts_contradict_by_the_words_that_only_one_has() -> None:
    assert contradict("Open the door", "Close the door")
    assert contradict("Activate it", "Deactivate it")
    assert contradict("Open it", "Do not open it")
    assert not contradict("Open or close it", "Close or open it")
    assert substituted("Rate of a day", "Rate of a month")
    assert not substituted("Rate of a day", "Rate of one day, rounded")
