"""A failure is known in any of its forms."""

from __future__ import annotations

import pytest

from toolshift.adapt.errors_said import failure_of


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("Error: busy, try again", "Error: busy, try again"),
        ("Error executing tool get_rate: busy", "Error executing tool get_rate: busy"),
        ("Error 503: busy\nNotice: x", "Error 503: busy"),
        ('{"isError":true,"content":[{"type":"text","text":"busy"}]}', "busy"),
        ('{"content":[{"type":"text","text":"busy"}],"isError":true}', "busy"),
        ('{"error":{"code":"x","message":"busy"}}', "x busy"),
        ('{"isError":false,"content":[{"type":"text","text":"fine"}]}', ""),
        ("Error rate of the day: 3%", ""),
        ("Errors are rare here", ""),
        ("All went well. Error: none", ""),
    ],
)
def test_a_failure_is_told_in_any_of_its_forms(text: str, failure: str) -> None:
    assert failure_of(text) == failure
