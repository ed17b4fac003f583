"""Formats of data: recognised by content, read, and written without loss."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from conversations import openai, question
from hypothesis import given, settings
from hypothesis import strategies as st

from toolshift.data.conversation import Conversation, RowFault, portable
from toolshift.data.formats import FORMATS, recognised
from toolshift.data.formats.toolace import read_calls

CALL = "{'name': 'g', 'arguments': {'x': 1}}"
RESULT = '{"name": "g", "content": [1]}'
BROKEN = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{x"}}]}
SEEDS = st.integers(0, 10**6)


def said(conversation: Conversation) -> list[tuple[Any, ...]]:
    """What is said and called, without the marks of a format."""
    return [
        (m.role, _plain(m.text), [(c.name, c.arguments) for c in m.calls])
        for m in portable(conversation).messages
    ]


def _plain(text: str) -> str:
    """A text; JSON without its spaces."""
    try:
        return msgspec.json.encode(msgspec.json.decode(text)).decode()
    except msgspec.DecodeError:
        return text


def functions(conversation: Conversation) -> list[dict[str, Any]]:
    return [tool.function for tool in conversation.tools]


@settings(max_examples=500, deadline=None)
@given(SEEDS)
def test_a_row_is_written_as_it_was_read(seed: int) -> None:
    for make, name in ((openai, "openai"), (question, "xlam")):
        row = make(seed)
        form = recognised(row)
        assert form.name == name
        written = form.write(form.read(row), row)
        assert form.read(written) == form.read(row)
        assert set(written) == set(row)
        if name == "openai":
            assert written == row


@pytest.mark.parametrize("name", ["hermes", "sharegpt", "toolace"])
@settings(max_examples=500, deadline=None)
@given(SEEDS)
def test_another_format_says_the_same_and_back(name: str, seed: int) -> None:
    form, source = FORMATS.find(name), FORMATS.find("openai")
    before = source.read(openai(seed))
    row = form.write(before, None)
    assert recognised(row) is form
    again = form.read(json.loads(json.dumps(row)))
    missing_system = name == "toolace"  # its system text is where the tools stand
    assert said(again) == [s for s in said(before) if not (missing_system and s[0] == "system")]
    assert functions(again) == functions(before)
    assert form.read(form.write(again, row)) == again, "written over itself"
    back = source.read(source.write(portable(again), None))
    assert said(back) == said(again)
    assert functions(back) == functions(before)


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_the_agent_data_protocol_says_calls_one_by_one(seed: int) -> None:
    before = FORMATS.find("openai").read(openai(seed))
    form = FORMATS.find("adp")
    row = form.write(before, None)
    assert recognised(row) is form
    again = form.read(row)
    calls = [(c.name, c.arguments) for m in before.messages for c in m.calls]
    assert [(c.name, c.arguments) for m in again.messages for c in m.calls] == calls
    assert functions(again) == functions(before)
    assert [m.role for m in again.messages if m.role != "assistant"] == [
        m.role for m in before.messages if m.role != "assistant"
    ]


def test_turns_of_function_calls_are_sharegpt() -> None:
    row = {
        "conversations": [
            {"from": "human", "value": "Weather?"},
            {
                "from": "function_call",
                "value": '{"name": "weather", "arguments": {"city": "Oslo"}}',
            },
            {"from": "observation", "value": "rain"},
            {"from": "gpt", "value": "Rain."},
        ],
        "tools": json.dumps([{"name": "weather", "description": "", "parameters": {}}]),
    }
    form = recognised(row)
    assert form.name == "sharegpt"
    read = form.read(row)
    assert read.messages[1].calls[0].arguments == {"city": "Oslo"}
    assert form.write(read, row)["conversations"][2:] == row["conversations"][2:]


def test_tools_one_a_line_and_python_literals_are_hermes() -> None:
    lines = '<tools>\n{"name": "f", "parameters": {}}\n{"name": "g", "parameters": {}}\n</tools>'
    row = {
        "conversations": [
            {"from": "system", "value": f"You have tools.\n{lines}\nUse them."},
            {"from": "human", "value": "Go."},
            {
                "from": "gpt",
                "value": "<tool_call>\n{'name': 'g', 'arguments': {'x': 1}}\n</tool_call>",
            },
            {
                "from": "tool",
                "value": '<tool_response>\n{"name": "g", "content": [1]}\n</tool_response>',
            },
        ]
    }
    form = recognised(row)
    read = form.read(row)
    assert [tool.function["name"] for tool in read.tools] == ["f", "g"]
    assert read.messages[2].calls[0].arguments == {"x": 1}
    assert (read.messages[3].name, read.messages[3].text) == ("g", "[1]")
    system = form.write(read, row)["conversations"][0]["value"]
    assert system.startswith("You have tools.\n<tools>\n{")
    assert system.endswith("\n</tools>\nUse them.")


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('[Get Price(item="tea, green", n=2)]', [("Get Price", {"item": "tea, green", "n": 2})]),
        (
            "[a.b(x=[1, 2], y={'k': true}), c()]",
            [("a.b", {"x": [1, 2], "y": {"k": True}}), ("c", {})],
        ),
        ('[f(text="say \\"hi\\" (now)")]', [("f", {"text": 'say "hi" (now)'})]),
        ("I cannot do that.", []),
        ("[see (1) and (2)]", []),
    ],
)
def test_calls_of_toolace(text: str, calls: list[tuple[str, dict[str, Any]]]) -> None:
    assert [(c.name, c.arguments) for c in read_calls(text, [])] == calls


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"prompt": "x"}, "no known format has these columns: prompt"),
        ({"messages": [{"role": "king"}]}, "message 0 has the unknown role 'king'"),
        ({"messages": [BROKEN]}, "the arguments of f is not JSON"),
        ({"conversations": [{"from": "human", "value": 1}], "tools": "[]"}, "turn 0 has no text"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said(row: dict[str, Any], why: str) -> None:
    with pytest.raises(RowFault, match=why):
        recognised(row).read(row)
