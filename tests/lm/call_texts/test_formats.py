"""Every format of the table: what a template writes is read, and never as something else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lm.call_texts.writers import ALONE, ONE, RAW, WRITERS

from toolshift.core.calls import Call, MalformedCall, ToolCall
from toolshift.lm.call_texts.table import FORMATS
from toolshift.lm.parse_reply import has_marked_call, parse_reply

NAMES = [each.name for each in FORMATS]


def tool(name: str, **kinds: Any) -> dict[str, Any]:
    properties = {key: {"type": kind} for key, kind in kinds.items()}
    schema = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


TOOLS = [
    tool("get_ticket", ticket_id="string"),
    tool("list_tickets", limit="integer", open="boolean", tags="array"),
    tool("add_note", text="string", ticket_id="string", weight="number"),
]
TEXTS = st.one_of(
    st.text(max_size=30),
    st.text(alphabet="\"'\\\n\t {}[]()<>=:,`;|/aé\u2028\U0001f600", max_size=30),
    st.sampled_from([each.example for each in FORMATS]),
    st.sampled_from([f"It prints {each.example} here." for each in FORMATS]),
    st.sampled_from(
        ["5", "true", "null", "[1]", '{"a": 1}', '"x"', " x ", "\nx\n", "", "</think>"]
    ),
)
CALLS = st.lists(
    st.one_of(
        st.builds(lambda text: ToolCall("get_ticket", {"ticket_id": text}), TEXTS),
        st.builds(
            lambda limit, opened, tags: ToolCall(
                "list_tickets", {"limit": limit, "open": opened, "tags": tags}
            ),
            st.integers(-(10**6), 10**6),
            st.booleans(),
            st.lists(st.integers(0, 9), max_size=3),
        ),
        st.builds(
            lambda text, other, weight: ToolCall(
                "add_note", {"text": text, "ticket_id": other, "weight": weight}
            ),
            TEXTS,
            TEXTS,
            st.floats(-1e6, 1e6, allow_nan=False),
        ),
        st.just(ToolCall("list_tickets", {})),
    ),
    min_size=1,
    max_size=3,
)
SAMPLE = [
    ToolCall("get_ticket", {"ticket_id": "T-31"}),
    ToolCall("list_tickets", {"limit": 12, "open": True, "tags": [1, 2]}),
    ToolCall("add_note", {"text": "a\nb", "ticket_id": "T-31", "weight": 12.5}),
]


def without_ids(calls: tuple[Call, ...]) -> list[Call]:
    return [
        ToolCall(call.name, call.arguments) if isinstance(call, ToolCall) else call
        for call in calls
    ]


def may_hold(name: str, calls: list[ToolCall]) -> bool:
    """Whether a format can write these texts at all."""
    said = json.dumps([call.arguments for call in calls], ensure_ascii=False)
    said = said.replace('\\"', '"')
    if name in RAW:
        return not any(part in said for part in RAW[name])
    return True


def test_each_format_has_a_template() -> None:
    assert list(WRITERS) == NAMES


@pytest.mark.parametrize("each", FORMATS, ids=NAMES)
def test_the_example_of_a_format_is_the_call_that_it_says(each: Any) -> None:
    expected = [ToolCall("get_ticket", {"ticket_id": "T-31"})]
    assert without_ids(parse_reply(each.example, tools=TOOLS).calls) == expected
    assert without_ids(parse_reply(each.example, tools=["get_ticket"]).calls) == expected
    assert WRITERS[each.name](expected) or each.opening is None
    assert each.source.startswith("https://") or each.name == "our own layout"


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20, deadline=None)
@given(calls=CALLS)
def test_what_is_written_is_read(name: str, calls: list[ToolCall]) -> None:
    calls = calls[:1] if name in ONE else calls
    if not may_hold(name, calls):
        return
    text = WRITERS[name](calls)
    assert without_ids(parse_reply(text, tools=TOOLS).calls) == calls
    if name not in ALONE:
        reply = parse_reply(f"<think>\nHm.\n</think>\nI look it up.\n{text}", tools=TOOLS)
        assert without_ids(reply.calls) == calls
        assert reply.text == "I look it up."
        assert has_marked_call(text) or name == "a tool as a tag"


@pytest.mark.parametrize("name", NAMES)
def test_a_text_that_is_cut_off_makes_no_other_call(name: str) -> None:
    calls = SAMPLE[1:2] if name in ONE else SAMPLE
    text = WRITERS[name](calls)
    for length in range(len(text)):
        read = without_ids(parse_reply(text[:length], tools=TOOLS).calls)
        whole = [call for call in read if isinstance(call, ToolCall)]
        assert whole == calls[: len(whole)], text[:length]
        assert all(isinstance(call, MalformedCall) for call in read[len(whole) :]), text[:length]
        assert len(read) <= len(whole) + 1, text[:length]


MARKED = [each.name for each in FORMATS if each.opening and each.sure]


@pytest.mark.parametrize("name", MARKED)
def test_where_a_mark_has_begun_a_text_that_is_cut_off_is_no_prose(name: str) -> None:
    text = WRITERS[name](SAMPLE[2:])
    begun = next(n for n in range(len(text)) if parse_reply(text[:n], tools=TOOLS).calls)
    assert begun <= max(12, text.index("add_note") + 10), "a mark that is whole says a call"
    for length in range(begun, len(text)):
        assert parse_reply(text[:length], tools=TOOLS).calls, text[:length]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([each.example for each in FORMATS]), max_size=4), st.data())
def test_pieces_of_formats_in_any_order_never_fail(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(piece[: data.draw(st.integers(0, len(piece)))] for piece in pieces)
    reply = parse_reply(text, tools=TOOLS)
    assert all(isinstance(call, ToolCall | MalformedCall) for call in reply.calls)
