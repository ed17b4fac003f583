"""What a failure offers, and what it denies."""

from __future__ import annotations

import pytest

from toolshift.adapt.errors_said import says_again


@pytest.mark.parametrize(
    ("failure", "passes"),
    [
        ("Busy. Try again.", True),
        ("The host could not be reached; retry.", True),
        ("It is not your call that is wrong, so please try the same later", True),
        ("This cannot be reached temporarily", True),
        ("No capacity at present. Ask once more.", True),
        ("It was switched off. Nobody will start it again.", False),
        ("Do not try again.", False),
        ("It makes no sense to send the call again.", False),
        ("This is not a temporary fault.", False),
        ("You needn't retry", False),
        ("We have closed this desk and will not open it later on.", False),
        ("It will not come back today, but try again tomorrow", True),
    ],
)
def test_an_offer_that_is_denied_is_none(failure: str, passes: bool) -> None:
    assert says_again(failure) == passes
