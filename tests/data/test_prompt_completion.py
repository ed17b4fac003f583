"""TRL's rows of `prompt` and `completion`: what is not to be learned is in no completion."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from data.trainer_rows import CONVERSATIONS, TOOLS

import toolshift
from toolshift.data.augment import Recipe, augmented, converted
from toolshift.data.conversation import RowFault
from toolshift.data.formats import FORMATS, recognised

Body = dict[str, Any]
SCHEMA = {"type": "object", "properties": {"base": {"type": "string"}}, "required": ["base"]}
FUNCTION = {"name": "get_rate", "description": "Gets a rate.", "parameters": SCHEMA}
ASKED = {"role": "user", "content": "Rate?"}
ANSWER = {"role": "assistant", "content": "1, says get_rate."}


def calling(base: str) -> list[Body]:
    function = {"name": "get_rate", "arguments": {"base": base}}
    call = {"id": base, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": base, "content": '{"rate": 1}'},
    ]


def row_of(prompt: list[Body], completion: list[Body]) -> Body:
    tools = [{"type": "function", "function": FUNCTION}]
    return {"id": 7, "prompt": prompt, "completion": completion, "tools": tools}


FIRST = row_of([ASKED], calling("a")[:1])
LATER = row_of([ASKED, *calling("a")], [ANSWER])
WHOLE = row_of([ASKED], [*calling("a"), *calling("b"), ANSWER])


def shifted(row: Body, shift: str) -> Any:
    return augmented(row, json.dumps(row).encode(), Recipe(alpha=1.0, shifts=(shift,)))


@pytest.mark.parametrize("row", [FIRST, LATER, WHOLE, {**FIRST, "tools": json.dumps(TOOLS)}])
def test_a_row_is_written_back_as_it_was(row: Body) -> None:
    form, before = recognised(row), deepcopy(row)
    assert form.name == "prompt-completion"
    conversation = form.read(row)
    learned = [m.learned for m in conversation.messages if m.role == "assistant"]
    assert sum(not one for one in learned) == str(row["prompt"]).count("'assistant'")
    assert json.dumps(form.write(conversation, row)) == json.dumps(before)
    assert row == before


@pytest.mark.parametrize("row", [FIRST, LATER, WHOLE], ids=["first", "later", "whole"])
def test_names_change_on_both_sides(row: Body) -> None:
    (made,) = shifted(row, "tool_name_noise:3").rows
    name = made["tools"][0]["function"]["name"]
    text = json.dumps({key: made[key] for key in row})
    assert "get_rate" not in text
    assert json.loads(text.replace(name, "get_rate")) == row


def test_a_call_that_fails_goes_into_the_prompt() -> None:
    (made,) = shifted(FIRST, "transient_error:1").rows
    assert made["completion"] == FIRST["completion"]
    assert [said["role"] for said in made["prompt"]][:3] == ["user", "assistant", "tool"]
    assert "weight" not in json.dumps(made)


def test_a_call_that_fails_behind_a_learned_turn_is_not_applicable() -> None:
    row = row_of([ASKED], [{"role": "assistant", "content": "I look."}, *calling("a"), ANSWER])
    made = shifted(row, "transient_error:1")
    assert not made.rows
    assert "learns the whole completion" in made.reasons["transient_error"]


def test_the_sides_are_in_no_row_of_another_format() -> None:
    made = converted(LATER, recognised(LATER), FORMATS.find("openai"))
    assert made.keys() == {"id", "messages", "tools"}
    assert [said.get("weight") for said in made["messages"]] == [None, 0, None, None]
    with pytest.raises(RowFault, match="--for trl"):
        recognised(LATER).write(recognised(LATER).read(LATER), None)


@pytest.mark.parametrize("case", ["failing", "late"])
def test_what_is_written_for_trl_is_read(case: str) -> None:
    row = {"messages": CONVERSATIONS[case], "tools": TOOLS}
    made = augmented(row, json.dumps(row).encode(), Recipe(alpha=0.0, trainer="trl")).rows
    assert made
    for one in made:
        form = recognised(one)
        assert form.name == "prompt-completion"
        assert form.write(form.read(one), one) == one
        again = augmented(one, b"x", Recipe(alpha=0.0, trainer="trl")).rows
        assert [{**each, "toolshift": ""} for each in again] == [{**one, "toolshift": ""}]


def test_a_data_set_keeps_its_columns() -> None:
    datasets = pytest.importorskip("datasets")
    rows = [{**row, "tools": json.dumps(row["tools"])} for row in (FIRST, LATER)] * 4
    given = datasets.Dataset.from_list(rows)
    made = toolshift.augment(given, alpha=1.0, shifts=("EFP",))
    assert set(made.column_names) == {*rows[0], "toolshift"}
    assert any("EFP" not in one and one for one in made["toolshift"])
    for one in made:
        assert [said["role"] for said in one["completion"]] == ["assistant"]
