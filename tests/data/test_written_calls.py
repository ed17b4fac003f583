"""Calls that stand in the text of a message."""

from __future__ import annotations

from typing import Any

import pytest

from toolshift.data.formats import FORMATS
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
