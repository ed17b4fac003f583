"""Calls that stand in the text of a message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolshift.data.augment import Recipe, augmented, converted
from toolshift.data.formats import FORMATS, recognised
from toolshift.data.written_calls import calls_in_text
from toolshift.lm.call_texts.table import FORMATS as FORMS

TOOL = {"type": "function", "function": {"name": "get_rate", "parameters": {"type": "object"}}}
CALL = {"type": "function", "id": "1", "function": {"name": "get_rate", "arguments": "{}"}}
JSON_CALL = '{"name": "get_rate", "arguments": {"base": "USD"}}'
WRITTEN = [
    f"<tool_call>{JSON_CALL}</tool_call>",
    f"<tool_call>\n{JSON_CALL}\n</tool_call>",
    f"I look. <tool_call>{JSON_CALL}</tool_call>",
    f"[TOOL_CALLS] [{JSON_CALL}]",
    f"<|python_tag|>{JSON_CALL}",
    JSON_CALL,
    f"```json\n{JSON_CALL}\n```",
    'get_rate(base="USD")',
    '[get_rate(base="USD")]',
    'Action: get_rate\nAction Input: {"base": "USD"}',
    *(each.example.replace("get_ticket", "get_rate") for each in FORMS),
]


def said(text: str, **more: Any) -> bool:
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": text, **more}]
    row = {"messages": messages, "tools": [TOOL]}
    return calls_in_text(FORMATS.find("openai").read(row))


@pytest.mark.parametrize("text", WRITTEN)
def test_calls_in_any_form_that_models_write_are_seen(text: str) -> None:
    assert said(text)
    assert not said(text, tool_calls=[CALL]), "it has a call of its own"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Calls stand between <tool_call> and </tool_call>.",
        "The rate is 0.91.",
        "I asked get_rate for it.",
        '{"rate": 0.91}',
        "Is f(x) = 2?",
    ],
)
def test_what_only_speaks_of_tools_is_no_call(text: str) -> None:
    assert not said(text)


def as_qwen_writes(*answers: str) -> dict[str, Any]:
    """A row whose tools stand in the system's text, and whose results are turns of the user."""
    said = [
        {"role": "system", "content": f"<tools>\n{json.dumps(TOOL)}\n</tools>"},
        {"role": "user", "content": "Rates?"},
    ]
    for answer in answers:
        call = f"<tool_call>\n{JSON_CALL}\n</tool_call>"
        calls = "\n".join([call] * answer.count("<tool_response>"))
        said += [{"role": "assistant", "content": calls}, {"role": "user", "content": answer}]
    return {"messages": [*said, {"role": "assistant", "content": "0.91"}]}


ONE = '<tool_response>\n{"rate": 0.91}\n</tool_response>'


@pytest.mark.parametrize(
    ("answers", "roles"),
    [
        ((ONE,), ["tool"]),
        ((ONE, f"{ONE}\n{ONE}"), ["tool", "tool"]),
        ((f"{ONE} Go on.",), ["tool"]),
    ],
)
def test_a_result_in_a_turn_of_the_user_is_a_result(
    answers: tuple[str, ...], roles: list[str]
) -> None:
    row = as_qwen_writes(*answers)
    form = recognised(row)
    assert form.name == "calls-in-text"
    read = form.read(row)
    assert [message.role for message in read.messages[3:-1:2]] == roles
    assert form.write(read, row) == row
    made = converted(row, form, FORMATS.find("openai"))
    assert [message["role"] for message in made["messages"][3:-1:2]] == roles


def test_a_result_that_a_shift_adds_is_a_turn_of_the_user_as_the_others_are() -> None:
    row = as_qwen_writes(ONE)
    recipe = Recipe(alpha=1.0, shifts=("transient_error:1",))
    (made,) = augmented(row, json.dumps(row).encode(), recipe).rows
    said = [message["content"] for message in made["messages"] if message["role"] == "user"]
    assert said[2] == ONE
    assert said[1].startswith('<tool_response>\n{"error"')
    assert said[1].endswith("\n</tool_response>")
    assert made["messages"][2]["weight"] == 0
    several = as_qwen_writes(f"{ONE}\n{ONE}")
    assert not augmented(several, json.dumps(several).encode(), recipe).rows
