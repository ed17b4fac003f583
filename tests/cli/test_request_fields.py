from __future__ import annotations

import pytest

from toolshift.cli.request_fields import request_fields, request_headers
from toolshift.core.errors import UsageError


def test_values_are_json_or_texts_and_dots_go_down() -> None:
    given = ["reasoning_effort=high", "thinking.budget=2048", "thinking.on=true", 'stop=["a=b"]']
    assert request_fields(given, ["temperature"]) == {
        "reasoning_effort": "high",
        "thinking": {"budget": 2048, "on": True},
        "stop": ["a=b"],
        "temperature": None,
    }


@pytest.mark.parametrize(
    ("given", "left_out"),
    [(["x"], []), (["=1"], []), ([], ["a=1"]), (["a=1", "a.b=2"], [])],
)
def test_what_cannot_be_read_is_said(given: list[str], left_out: list[str]) -> None:
    with pytest.raises(UsageError):
        request_fields(given, left_out)


def test_headers_take_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_HERE", "s3cret")
    found = request_headers(["X-Team: a:b", "X-Key: Bearer ${TOKEN_HERE}"])
    assert found == {"X-Team": "a:b", "X-Key": "Bearer s3cret"}
    with pytest.raises(UsageError, match="NOT_HERE"):
        request_headers(["X: ${NOT_HERE}"])
    with pytest.raises(UsageError, match="NAME: VALUE"):
        request_headers(["sk-secret-secret-secret-secret"])
