"""What a failure offers, and what it denies."""

from __future__ import annotations

import pytest

from toolshift.adapt.errors_said import failure_of, named_tool, says_again


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
        ("Retry will not help.", False),
        ("Retry is not useful: the id is malformed", False),
        ("Trying again makes no difference", False),
        ("A retry is of no use.", False),
        ("Trying again won't change it", False),
        ("A retry is pointless", False),
        ("Retry. It is not your fault", True),
        ("Try again when it is not busy", True),
        ("Rate limited. Retry after 3600 seconds.", False),
        ("Too many requests, try again in 5 minutes", False),
        ("Rate limited. Retry after 30 seconds.", True),
        ("Busy, retry in 2s", True),
        ("429, Retry-After: 3600", False),
        ("Overloaded. Wait for an hour, or wait 90 minutes", False),
        ("It timed out after 120 seconds; please retry", True),
        ("It will not come back today, but try again tomorrow", True),
        ("The password is wrong, try again", False),
        ("Incorrect PIN. Please try again.", False),
        ("The two codes do not match; try again", False),
        ("That is not the right code, try again", False),
        ("Your session has expired, please log in and try again", False),
        ("Check your spelling and try again", False),
        ("Something went wrong. Try again.", True),
        ("Nothing is wrong with your call; try again", True),
    ],
)
def test_an_offer_that_is_denied_is_none(failure: str, passes: bool) -> None:
    assert says_again(failure) == passes


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


@pytest.mark.parametrize(
    ("failure", "named"),
    [
        ("get_rate is down; use list_rates", True),
        ("The index of get_rate is corrupt, that of list_rates is whole.", True),
        ("We have shut get_rate down. Whoever needs it takes list_rates.", True),
        ("Use list_rates, for get_rate failed.", True),
        ("The upstream list_rates failed.", False),
        ("get_rate depends on `list_rates`, which is down.", False),
        ("An error in list_rates.", False),
        ("list_rates did not answer in time.", False),
        ("list_rates found a record that get_rate cannot parse.", False),
        ("Call list_rates first.", False),
        ("Run list_rates before get_rate. Then try again.", False),
    ],
)
def test_a_tool_that_is_blamed_or_wanted_beforehand_stands_for_none(
    failure: str, named: bool
) -> None:
    assert named_tool(failure, ["list_rates"]) == ("list_rates" if named else "")
