"""Lines of a sentence: words and commands stay whole."""

from __future__ import annotations

import pytest

from toolshift.core.terminal import wrapped

COMMAND = "toolshift --plugin envelope.py trace 'my run' 7829d56bc6"


@pytest.mark.parametrize(
    "text", [f"Commonest cause: a slip: {COMMAND}", f"A loss ({COMMAND}) of 9.", f"{COMMAND}. See."]
)
@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_command_is_never_broken(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert " ".join(lines) == text
    assert any(COMMAND in line for line in lines)


def test_our_name_in_a_sentence_is_no_command_to_its_end() -> None:
    assert max(map(len, wrapped("ToolShift says what broke and why it did so " * 3, 30))) <= 30
