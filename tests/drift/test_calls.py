"""Calls that were valid and are no longer."""

from __future__ import annotations

from typing import Any

import pytest
from drift.test_changes import FIND, SAVE, TEXT, tool

from toolshift.core.errors import UsageError
from toolshift.drift.calls import (
    BrokenCall,
    RecordedCall,
    as_calls,
    broken_calls,
    counter_examples,
    tried_calls,
)
from toolshift.interop.tools import from_mcp

NEW = tool("find_page", "Finds pages.", query=TEXT, _limit={"type": "integer", "maximum": 5})
GOOD = RecordedCall("find_page", {"query": "a"})
MANY = RecordedCall("find_page", {"query": "a", "limit": 9})
WRONG = RecordedCall("find_page", {"limit": 9})


def test_only_calls_that_were_valid_before_are_broken() -> None:
    found = broken_calls([GOOD, MANY, WRONG, MANY], [FIND, SAVE], [NEW])
    assert found == (BrokenCall(MANY, "9 is greater than the maximum of 5", "limit", True, 2),)


def test_a_call_of_a_tool_that_is_gone_is_broken() -> None:
    call = RecordedCall("save_page", {"page": "p"})
    (found,) = broken_calls([call], [FIND, SAVE], [FIND])
    assert found.why == "there is no tool named save_page"


def test_what_was_recorded_goes_before_what_is_tried() -> None:
    new = [tool("find_page", "Finds pages.", query=TEXT, site=TEXT)]
    recorded = RecordedCall("find_page", {"query": "mine"})
    found = counter_examples([FIND, SAVE], new, [recorded])
    assert (found["find_page"].call, found["find_page"].recorded) == (recorded, True)
    assert (found["save_page"].recorded, found["save_page"].times) == (False, 0)
    assert counter_examples([FIND], [FIND]) == {}


@pytest.mark.parametrize(
    "now",
    [
        {"enum": ["a"]},
        {"type": "array", "items": TEXT},
        {"anyOf": [{"enum": ["a", "b"]}, {"type": "number"}]},
    ],
)
def test_tries_reach_each_choice_and_type(now: dict[str, Any]) -> None:
    was = {"anyOf": [{"enum": ["a", "b"]}, {"type": "number"}, {"type": "null"}]}
    old, new = tool("t", _p=was), tool("t", _p=now)
    assert counter_examples([old], [new])["t"].where == "p"


def test_a_limit_is_tried_at_its_edges() -> None:
    old, new = tool("t", p={"type": "number"}), tool("t", p={"type": "number", "minimum": 0})
    assert counter_examples([old], [new])["t"].call.arguments == {"p": -1}
    old, new = tool("t", p=TEXT), tool("t", p={**TEXT, "format": "uri"})
    assert counter_examples([old], [new]) == {}, "a format is a note"


def test_tries_are_valid() -> None:
    limits = {"type": "string", "minLength": 20}
    tries = list(tried_calls(from_mcp([tool("t", a=limits, _b={"type": "number"})]).sources["t"]))
    assert len(tries) >= 3
    assert broken_calls(tries, [tool("t", a=limits, _b={"type": "number"})], []) != ()
    assert len(broken_calls(tries, [tool("t", a=limits, _b={"type": "number"})], [])) == len(tries)


def test_calls_are_read_from_json() -> None:
    read = as_calls([{"tool": "a", "arguments": {"x": 1}}, {"name": "b", "arguments": '{"y": 2}'}])
    assert read == [RecordedCall("a", {"x": 1}), RecordedCall("b", {"y": 2})]
    with pytest.raises(UsageError, match="item 1 of the list is not a call"):
        as_calls([{"tool": "a"}, {"tool": "b", "arguments": "no JSON"}])
