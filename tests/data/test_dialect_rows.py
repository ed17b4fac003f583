"""Rows that are requests in a dialect: nothing is lost on the way back, and no shift is."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from data.trainer_rows import CONVERSATIONS, TOOLS

from toolshift.cli import toolshift
from toolshift.data.augment import Recipe, augmented, converted
from toolshift.data.conversation import RowFault
from toolshift.data.formats import FORMATS, ONLY_BACK, recognised

SCHEMA = {"type": "object", "properties": {"base": {"type": "string"}}, "required": ["base"]}
SEALED = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}
TEXT = {"type": "text", "text": "0.9"}
ROW: dict[str, Any] = {
    "id": 7,
    "system": [{"type": "text", "text": "You help.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Rate of USD?"}, PICTURE]},
        {
            "role": "assistant",
            "content": [
                SEALED,
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "get_rate", "input": {"base": "USD"}},
                {"type": "tool_use", "id": "t2", "name": "get_rate", "input": {"base": "EUR"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t2", "content": "no", "is_error": True},
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "0.9"}],
                },
            ],
        },
        {"role": "assistant", "content": "0.9"},
    ],
    "tools": [{"name": "get_rate", "description": "Gets a rate.", "input_schema": SCHEMA}],
}


def test_a_row_is_recognised_and_written_back_as_it_was() -> None:
    form = recognised(ROW)
    assert form.name == "anthropic"
    before = deepcopy(ROW)
    conversation = form.read(ROW)
    assert [len(said.calls) for said in conversation.messages] == [0, 0, 2, 0, 0, 0]
    assert form.write(conversation, ROW) == before
    assert before == ROW


def test_a_row_of_another_format_becomes_blocks() -> None:
    call = {"id": "c1", "function": {"name": "f", "arguments": '{"a": 1}'}}
    row = {
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "U"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "R"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
    }
    made = FORMATS.find("anthropic").write(recognised(row).read(row), None)
    assert made["system"] == "S"
    used = {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}
    answered = {"type": "tool_result", "tool_use_id": "c1", "content": "R"}
    assert [message["content"] for message in made["messages"]] == ["U", [used], [answered]]


def test_what_is_not_read_is_named() -> None:
    row = deepcopy(ROW)
    row["messages"][1]["content"].append({"type": "server_tool_use", "id": "s", "name": "web"})
    with pytest.raises(RowFault, match="server_tool_use"):
        recognised(row).read(row)


def test_augment_shifts_tools_and_calls_and_keeps_the_rest(tmp_path: Path) -> None:
    source, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps(ROW) + "\n")
    words = ["augment", str(source), "--alpha", "1", "--shift", "identity_erasure:2"]
    done = CliRunner().invoke(toolshift, [*words, "--out", str(out)])
    assert done.exit_code == 0, done.output
    (made,) = map(json.loads, out.read_text().splitlines())
    (tool,) = made["tools"]
    assert tool["name"] != "get_rate"
    blocks = made["messages"][1]["content"]
    assert blocks[:2] == ROW["messages"][1]["content"][:2]
    assert [block.get("name") for block in blocks[2:]] == [tool["name"]] * 2
    assert made["system"] == ROW["system"]
    assert made["messages"][2] == ROW["messages"][2]
    assert made["id"] == 7


@pytest.mark.parametrize("name", sorted(set(FORMATS.names()) - {*ONLY_BACK, "xlam"}))
@pytest.mark.parametrize("case", ["failing", "late"])
def test_what_is_not_learned_is_said_in_every_format(name: str, case: str) -> None:
    openai, form = FORMATS.find("openai"), FORMATS.find(name)
    row = {"messages": CONVERSATIONS[case], "tools": TOOLS}
    before = [m.learned for m in openai.read(row).messages if m.role == "assistant"]
    made = converted(row, openai, form)
    again = form.read(made)
    assert [m.learned for m in again.messages if m.role == "assistant"] == before
    assert form.write(again, made) == made
    back = converted(made, form, openai)
    assert [m.get("weight", 1) for m in back["messages"] if m["role"] == "assistant"] == before


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
def test_a_call_that_a_shift_made_fail_is_marked_in_rows_of_a_dialect(name: str) -> None:
    row = converted(
        {"messages": CONVERSATIONS["late"][:4], "tools": TOOLS},
        FORMATS.find("openai"),
        FORMATS.find(name),
    )
    (made,) = augmented(row, b"x", Recipe(1.0, ("transient_error:1",))).rows
    said = [m for m in FORMATS.find(name).read(made).messages if m.role == "assistant"]
    assert [message.learned for message in said] == [False, True, True]
