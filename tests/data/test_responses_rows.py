"""Rows of OpenAI's Responses: read, shifted, and written back with nothing lost on the way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conversations import openai
from dialects.response_items import FUNCTION, OUTPUTS, Body, requests
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolshift.data.augment import Recipe, augmented, converted
from toolshift.data.conversation import RowFault, told
from toolshift.data.formats import FORMATS, read_as, recognised
from toolshift.dialects.responses_scope import unshifted

FORM = FORMATS.find("responses")
RATES = {
    "type": "function",
    "name": "get_rate",
    "description": "Gets a rate.",
    "parameters": {
        "type": "object",
        "properties": {"base": {"type": "string", "description": "From."}},
        "required": ["base"],
    },
    "strict": True,
}
THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "I call get_rate now."}],
    "encrypted_content": "sealed",
}
ROW = {
    "input": [
        {"role": "user", "content": "Rate of USD?"},
        THOUGHT,
        {"type": "function_call", "call_id": "c1", "name": "get_rate",
         "arguments": '{"base": "USD"}'},
        {"type": "function_call_output", "call_id": "c1", "output": '{"rate": 0.91}'},
    ],
    "output": [
        {"type": "message", "role": "assistant",
         "content": [{"type": "output_text", "text": "0.91"}]}
    ],
    "tools": [RATES],
}  # fmt: skip


@given(requests(), OUTPUTS | st.none(), st.lists(FUNCTION, min_size=1, max_size=1))
def test_a_row_is_written_as_it_was_read(body: Body, output: list[Body] | None, tools: Any) -> None:
    kept = ("instructions", "input", "tools", "x_vendor")
    row = {key: value for key, value in body.items() if key in kept}
    row |= {"output": output} if output is not None else {}
    row["tools"] = row.get("tools") or tools
    assume(isinstance(row["input"], list) and row["input"])
    both = [*row["input"], *(output or [])]
    try:
        read = read_as(FORM, row)
    except RowFault:
        broken = [item for item in both if item.get("arguments") == "{broken"]
        assert unshifted({**row, "input": both, "output": None}) or broken
        return
    assert recognised(row) is FORM
    assert json.dumps(FORM.write(read, row)) == json.dumps(row)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_another_format_says_the_same_and_back(seed: int) -> None:
    source = FORMATS.find("openai")
    before = source.read(openai(seed))
    row = FORM.write(before, None)
    assert recognised(row) is FORM
    again = FORM.read(json.loads(json.dumps(row)))
    assert told(again) == told(before)
    assert FORM.write(again, row) == row
    assert told(source.read(source.write(again, None))) == told(before)


def test_the_columns_of_a_row_go_into_another_format() -> None:
    row = {**ROW, "instructions": "Be brief.", "split": "dev"}
    out = converted(row, FORM, FORMATS.find("openai"))
    assert set(out) == {"messages", "tools", "split"}
    assert out["messages"][0] == {"role": "system", "content": "Be brief."}
    assert "reasoning" not in json.dumps(out), "thoughts are in no row of another format"


def test_lists_in_texts_stay_texts() -> None:
    row = {**ROW, "input": json.dumps(ROW["input"]), "tools": json.dumps([RATES])}
    assert recognised(row) is FORM
    assert FORM.write(FORM.read(row), row) == row


def shifted(shift: str, row: Body = ROW) -> Body:
    made = augmented(row, json.dumps(row).encode(), Recipe(alpha=1.0, shifts=(shift,)))
    (found,) = made.rows
    return found


def test_a_shifted_row_names_the_tool_alike_everywhere() -> None:
    row = shifted("tool_name_noise:3")
    name = row["tools"][0]["name"]
    assert name != "get_rate"
    assert row["input"][2] == {**ROW["input"][2], "name": name}  # type: ignore[dict-item]
    assert row["output"] == ROW["output"]
    assert row["input"][3] == ROW["input"][3]
    thought = row["input"][1]
    assert "get_rate" not in json.dumps(thought)
    assert "encrypted_content" not in thought, "it would still hold the old name"


def test_what_a_shift_adds_is_written_as_the_others_are_and_not_learned() -> None:
    unnamed = json.loads(json.dumps(ROW).replace("I call get_rate now", "I look"))
    row = shifted("permanent_error:1", unnamed)
    assert {tuple(tool) for tool in row["tools"]} == {tuple(RATES)}
    marked = [item for item in row["input"] if item.get("weight") == 0]
    assert [item["type"] for item in marked] == ["function_call"]
    assert read_as(FORM, row).messages[1].learned is False
    assert sum(item.get("type") == "reasoning" for item in row["input"]) == 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tools": [RATES, {"type": "web_search"}]}, "web_search"),
        ({"input": [{"type": "mcp_call", "name": "f"}]}, "mcp_call"),
        ({"tools": []}, "offers no tools"),
    ],
    ids=range(3),
)
def test_what_is_not_shifted_is_left_out_with_a_sentence(changed: Body, said: str) -> None:
    with pytest.raises(RowFault, match=said):
        read_as(recognised({**ROW, **changed}), {**ROW, **changed})


def test_texts_around_a_call_are_renamed_in_their_places() -> None:
    said = [
        {"type": "message", "role": "assistant", "content": [part, part]}
        for part in [{"type": "output_text", "text": "get_rate", "annotations": []}]
    ]
    row = {**ROW, "input": [*ROW["input"][:2], *said, ROW["input"][2], *said, ROW["input"][3]]}
    made = shifted("tool_name_noise:3", row)
    name = made["tools"][0]["name"]
    texts = [item for item in made["input"] if item.get("role") == "assistant"]
    expected = [{**said[0], "content": [{**part, "text": name} for part in said[0]["content"]]}]
    assert texts == expected * 2
    assert [i.get("type") for i in made["input"]] == [i.get("type") for i in row["input"]]
