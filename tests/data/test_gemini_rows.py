"""Rows that are requests to Gemini: nothing is lost on the way back, and no shift is."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from toolshift.cli import toolshift
from toolshift.data.conversation import RowFault
from toolshift.data.formats import FORMATS, recognised

PARAMETERS = {
    "type": "OBJECT",
    "properties": {"base": {"type": "STRING"}, "target": {"type": "STRING"}},
    "required": ["base", "target"],
}
CALL = {"name": "get_exchange_rate", "args": {"base": "USD", "target": "EUR"}}
MODEL = [
    {"text": "Hm.", "thought": True},
    {"text": "I look."},
    {"functionCall": CALL, "thoughtSignature": "c2ln"},
    {"functionCall": {"name": "get_exchange_rate", "args": {"base": "USD", "target": "CHF"}}},
]
PICTURE = {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}
ROW: dict[str, Any] = {
    "id": 7,
    "systemInstruction": {"role": "system", "parts": [{"text": "You help."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "Rate from USD to EUR?"}, PICTURE]},
        {"role": "model", "parts": MODEL},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "get_exchange_rate", "response": {"rate": 0.91}}},
                {"functionResponse": {"name": "get_exchange_rate", "response": {"error": "no"}}},
            ],
        },
        {"role": "model", "parts": [{"text": "0.91"}]},
    ],
    "tools": [
        {
            "functionDeclarations": [
                {
                    "name": "get_exchange_rate",
                    "description": "Gets the rate between two currencies.",
                    "parameters": PARAMETERS,
                }
            ]
        }
    ],
}


def test_a_row_is_recognised_and_written_back_as_it_was() -> None:
    form = recognised(ROW)
    assert form.name == "gemini"
    before = deepcopy(ROW)
    conversation = form.read(ROW)
    assert [len(said.calls) for said in conversation.messages] == [0, 0, 2, 0, 0, 0]
    assert "Hm." not in "".join(said.text for said in conversation.messages)
    assert form.write(conversation, ROW) == before
    assert before == ROW


def test_a_row_of_another_format_becomes_contents() -> None:
    call = {"id": "c1", "function": {"name": "f", "arguments": '{"a": 1}'}}
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    row = {
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "U"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "R"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
    }
    made = FORMATS.find("gemini").write(recognised(row).read(row), None)
    assert made["systemInstruction"] == {"parts": [{"text": "S"}]}
    assert made["contents"] == [
        {"role": "user", "parts": [{"text": "U"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}]},
        {"role": "user",
         "parts": [{"functionResponse": {"name": "f", "response": {"output": "R"}}}]},
    ]  # fmt: skip
    (function,) = made["tools"][0]["functionDeclarations"]
    assert function == {"name": "f", "parametersJsonSchema": schema}
    assert recognised(made).name == "gemini"


def test_what_is_not_read_is_named() -> None:
    row = deepcopy(ROW)
    row["contents"][1]["parts"].append({"executableCode": {"code": "1"}})
    with pytest.raises(RowFault, match="executableCode"):
        recognised(row).read(row)


@pytest.mark.parametrize("shift", ["identity_erasure:2", "parameter_rename:2", "format_drift:2"])
def test_augment_shifts_tools_and_calls_and_keeps_the_rest(tmp_path: Path, shift: str) -> None:
    source, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps(ROW) + "\n")
    words = ["augment", str(source), "--alpha", "1", "--shift", shift, "--out", str(out)]
    done = CliRunner().invoke(toolshift, words)
    assert done.exit_code == 0, done.output
    (made,) = map(json.loads, out.read_text().splitlines())
    ((function,),) = (tool["functionDeclarations"] for tool in made["tools"])
    parts = made["contents"][1]["parts"]
    assert parts[:2] == MODEL[:2]
    assert parts[2]["thoughtSignature"] == "c2ln"
    assert [part["functionCall"]["name"] for part in parts[2:]] == [function["name"]] * 2
    results = [part["functionResponse"] for part in made["contents"][2]["parts"]]
    assert [result["name"] for result in results] == [function["name"]] * 2
    changed = {
        "identity_erasure:2": function["name"] != "get_exchange_rate",
        "parameter_rename:2": parts[2]["functionCall"]["args"].keys() != {"base", "target"},
        "format_drift:2": results[0]["response"] != {"rate": 0.91},
    }
    assert changed[shift]
    rest = [made["contents"][0], made["contents"][3], made["systemInstruction"], made["id"]]
    assert rest == [ROW["contents"][0], ROW["contents"][3], ROW["systemInstruction"], 7]
