"""Replies in Harmony are read by their channels."""

from __future__ import annotations

import pytest

from toolshift.reading.answers.by_words import matches
from toolshift.reading.harmony import Message, for_the_user, messages_of

THOUGHT = "<|channel|>analysis<|message|>Borealis?<|end|><|start|>assistant"


@pytest.mark.parametrize(
    "text",
    [
        THOUGHT + "<|channel|>final<|message|>The room is Aurora.<|return|>",
        "Borealis?<|end|><|start|>assistant<|channel|>final<|message|>The room is Aurora.",
        "analysisThe user wants Borealis.assistantfinalThe room is Aurora.",
    ],
)
def test_the_final_channel_is_what_is_said(text: str) -> None:
    assert for_the_user(text) == "The room is Aurora."
    assert matches(text, "Aurora")
    assert not matches(text, "Borealis")


def test_messages_have_a_channel_a_recipient_and_a_text() -> None:
    called = '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|>'
    text = THOUGHT + called
    assert messages_of(text) == [
        Message("analysis", "", "Borealis?"),
        Message("commentary", "f", '{"a": 1}'),
    ]
    assert for_the_user(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "The analysis is done.",
        "analysis of the final assistant",
        "He wrote <|channel|>final<|message|>x in it",
        "<|channel|>",
    ],
)
def test_any_other_text_stays(text: str) -> None:
    assert for_the_user(text) == text
    assert messages_of(text) == []
