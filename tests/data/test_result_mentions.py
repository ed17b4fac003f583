"""No text cites what results say no longer, and a recorded failure keeps its form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolshift.data.augment import Made, Recipe, augmented

RESULT: dict[str, Any] = {"order_state": "shipped", "eta": "2026-01-09", "total": 12}


def row(answer: str, prompt: str = "You help.", result: Any = None) -> dict[str, Any]:
    """A conversation about an order."""
    call = {"name": "find_order", "arguments": '{"order_id": "O-1"}'}
    schema = {"type": "object", "properties": {"order_id": {"type": "string"}}}
    function = {"name": "find_order", "description": "Finds an order.", "parameters": schema}
    calls = [{"id": "1", "type": "function", "function": call}]
    told = json.dumps(RESULT if result is None else result)
    return {
        "messages": [
            {"role": "system", "content": prompt},
            {"role": "user", "content": "Where is O-1?"},
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "1", "content": told},
            {"role": "assistant", "content": answer},
        ],
        "tools": [{"type": "function", "function": function}],
    }


def made(given: dict[str, Any], shift: str) -> Made:
    """What becomes of a row."""
    return augmented(given, json.dumps(given).encode(), Recipe(1.0, (shift,)))


CITES = (
    "`order_state` is shipped.",
    "The field order_state says shipped.",
    json.dumps(RESULT),
    "order_state: shipped, eta: 2026-01-09",
    'result["order_state"] == "shipped"',
    "| order_state | eta |\n|---|---|\n| shipped | 2026-01-09 |",
)


@pytest.mark.parametrize("severity", [1, 2, 3])
@pytest.mark.parametrize("text", CITES)
def test_an_answer_that_cites_a_key_keeps_the_shift_away(text: str, severity: int) -> None:
    done = made(row(text), f"format_drift:{severity}")
    assert not done.rows
    assert "a key that results have no longer" in done.reasons["format_drift"]


def test_a_prompt_that_cites_a_key_does_too() -> None:
    assert not made(row("Shipped.", "Its result has order_state."), "format_drift:1").rows


@pytest.mark.parametrize("text", ["Shipped.", "It is shipped, and the eta is 2026-01-09: 12 EUR."])
def test_an_answer_in_words_keeps_no_shift_away(text: str) -> None:
    (after,) = made(row(text, "An order_id looks like O-1."), "format_drift:1").rows
    assert "order_state" not in after["messages"][3]["content"]


def test_a_format_that_keeps_keys_and_values_goes_with_any_answer() -> None:
    for text in CITES:
        assert made(row(text), "csv_results").rows


FAILURES = ({"error": "find_order is down"}, {"success": False, "why_not": "gone"})


@pytest.mark.parametrize("severity", [1, 2, 3])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_recorded_failure_keeps_its_form(failure: dict[str, Any], severity: int) -> None:
    given = row("It is down.", result=failure)
    done = made(given, f"format_drift:{severity}")
    assert not done.rows
    assert done.reasons["format_drift"] == "nothing that is shown changes"
    (after,) = made(given, "transient_error:1").rows
    assert after["messages"][-2]["content"] == json.dumps(failure)
