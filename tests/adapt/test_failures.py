"""Beside an error stands what today's tools take; the error and the call are not touched."""

from __future__ import annotations

import json
from typing import Any

import pytest
from drift.test_changes import tool

import toolshift
from toolshift.adapt.failures import MAX_SIGNS, TITLE, beside
from toolshift.adapt.layer import Intervention
from toolshift.adapt.notes import facts
from toolshift.core.message import Reply, Turn
from toolshift.drift.calls import Checker, RecordedCall
from toolshift.drift.lock import lock_tools

TEXT = {"type": "string"}
LEVEL = {"type": "string", "enum": ["error", "warning"]}
OLD = tool("find_order", "Finds the order of a customer", customer=TEXT)
NOW = tool("order_search", "Finds the order of a customer by its number", customer=TEXT, day=TEXT)
LOGS = tool("read_logs", "Reads the messages of the console", level=LEVEL)


def said(call: str, now: list[dict[str, Any]], was: dict[str, Any] = OLD, **given: Any) -> str:
    known = {was["name"]: was}
    told = facts(lock_tools([was]), now)
    return beside(RecordedCall(call, given), Checker(now), known, told)


def test_of_a_tool_that_is_gone_the_nearest_are_given_whole_and_what_they_require() -> None:
    text = said("find_order", [LOGS, NOW], customer="c1")
    title, *lines = text.splitlines()
    assert title == TITLE
    assert "- there is no tool `find_order`" in lines
    assert "- `order_search` requires `day`" in lines
    assert "`find_order` may be `order_search` now" in text
    assert json.loads(lines[-1]) == NOW
    assert "read_logs" not in text


def test_a_tool_that_was_never_locked_is_looked_for_by_its_own_words() -> None:
    near = tool("read_console_logs", "Reads the messages", level=LEVEL)
    assert '"read_console_logs"' in said("console_logs_read", [near, NOW], level="error")
    assert "{" not in said("x7", [near, NOW])


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"level": "info"}, "`level` is one of: `error`, `warning`"),
        ({}, "`read_logs` requires `level`"),
        ({"onlyErrors": True}, "`read_logs` has no argument `onlyErrors`"),
        ({"level": 3}, "level: "),
    ],
)
def test_what_is_wrong_with_the_arguments_is_said(given: dict[str, Any], line: str) -> None:
    assert f"- {line}" in said("read_logs", [LOGS, NOW], **given)


def test_beside_an_error_of_a_call_that_todays_tools_take_stands_nothing() -> None:
    assert said("read_logs", [LOGS], level="error") == ""
    assert said("refuse", [LOGS]) == ""


def test_an_argument_that_is_gone_is_said_where_the_schema_is_silent_about_others() -> None:
    was = tool("read_logs", "Reads the messages of the console", level=LEVEL, since=TEXT)
    text = said("read_logs", [LOGS], was, level="error", since="May")
    assert "- `read_logs` has no argument `since`" in text.splitlines()
    assert json.loads(text.splitlines()[-1]) == LOGS
    assert said("read_logs", [LOGS], was, level="error") == ""
    assert said("read_logs", [LOGS], was, level="error", never="known") == ""
    open_ = {**LOGS, "inputSchema": {**LOGS["inputSchema"], "additionalProperties": True}}
    assert said("read_logs", [open_], was, level="error", since="May") == ""


@pytest.mark.parametrize(
    "more",
    [
        {"additionalProperties": {}},
        {"anyOf": [{"properties": {"since": TEXT}}, {"required": ["level"]}]},
        {"anyOf": [{"$ref": "#/$defs/A"}, {}], "$defs": {"A": {"properties": {"since": {}}}}},
        {"if": {"required": ["level"]}, "then": {"properties": {"since": TEXT}}},
        {"dependentSchemas": {"level": {"properties": {"since": TEXT}}}},
        {"anyOf": [{"$ref": "#"}, {"properties": {"since": TEXT}}]},
    ],
)
def test_an_argument_that_is_allowed_or_named_elsewhere_is_not_gone(more: dict[str, Any]) -> None:
    was = tool("read_logs", "Reads the messages of the console", level=LEVEL, since=TEXT)
    now = {**LOGS, "inputSchema": {**LOGS["inputSchema"], **more}}
    assert said("read_logs", [now], was, level="error", since="May") == ""


def test_of_a_call_that_is_refused_only_what_is_named_nowhere_is_said_to_be_no_argument() -> None:
    inputs = {**LOGS["inputSchema"], "anyOf": [{"properties": {"since": TEXT}}]}
    now = {**LOGS, "inputSchema": {**inputs, "additionalProperties": False}}
    text = said("read_logs", [now], since="May", until="June")
    assert "has no argument `since`" not in text
    assert text.count("has no argument `until`") == 1


def test_a_long_schema_is_left_out() -> None:
    for key in ("inputSchema", "description"):
        more = "x\n" * MAX_SIGNS
        schema = {**NOW["inputSchema"], "description": more}
        about = f"{NOW['description']} {more}"
        long = {**NOW, key: schema if key == "inputSchema" else about}
        text = said("find_order", [long], customer="c1")
        shown = json.loads(text.splitlines()[-1])
        assert shown["name"] == "order_search"
        assert "inputSchema" not in shown
        assert len(text) < MAX_SIGNS


ASKED: dict[str, Any] = {"role": "user", "content": "?"}


@pytest.mark.parametrize("parts", [False, True], ids=["text", "parts"])
def test_an_agent_reads_it_behind_the_error_which_is_as_it_came(parts: bool) -> None:
    seen, heard = list[Intervention](), list[Any]()

    class Hears:
        name = "hears"

        def reply(self, turn: Turn) -> Reply:
            heard[:] = turn.messages
            return Reply("done")

    error: Any = json.dumps({"error": {"message": "unknown tool"}})
    content = [{"type": "text", "text": "Error: x"}] if parts else error
    function = {"name": "find_order", "arguments": '{"customer": "c1"}'}
    call = {"id": "c", "type": "function", "function": function}
    messages = [
        ASKED,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": content},
    ]
    shown = {"name": NOW["name"], "description": NOW["description"]}
    tools = [{"type": "function", "function": {**shown, "parameters": NOW["inputSchema"]}}]
    agent = toolshift.adapt(Hears(), lock_tools([OLD]), only=["failures"], record=seen.append)
    agent.reply(Turn(messages, tools))
    if parts:
        assert heard[-1] is messages[-1]  # a list that is no failure in any form that is known
        return
    assert heard[-1]["content"].startswith(f"{error}\n\n{TITLE}")
    assert heard[:-1] == messages[:-1]
    assert [each.part for each in seen] == ["failures"]
    assert seen[0].asked == seen[0].made == RecordedCall("find_order", {"customer": "c1"})
