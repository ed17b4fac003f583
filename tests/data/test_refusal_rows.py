"""A refusal is written only where no tool that is left may do the work of the one that is gone."""

from __future__ import annotations

from typing import Any

import pytest

from toolshift.core.shift import NotApplicable
from toolshift.data.conversation import Call, Conversation, Message, read_tools
from toolshift.data.refusal_rows import check_alone


def tool(name: str, told: str, **params: Any) -> dict[str, Any]:
    """A tool; each parameter is a schema, or the description of a text."""
    known = {
        key: {"type": "string", "description": one} if isinstance(one, str) else one
        for key, one in params.items()
    }
    schema = {"type": "object", "properties": known}
    return {"name": name, "description": told, "parameters": schema}


WEATHER = tool("get_weather", "Current weather of a city.", city="City")
EVENTS = tool("list_events", "Events of the user's calendar on a day.", day="Day")


def check(other: dict[str, Any], gone: dict[str, Any] = WEATHER, **given: Any) -> None:
    """Checks a list of two tools of which one goes; the other was called, if so, before."""
    calls = (Call(other["name"], given),) if given else ()
    said = (Message("user", "And there?"), Message("assistant", "", calls))
    check_alone(Conversation(read_tools([gone, other]), said), gone["name"])


@pytest.mark.parametrize(
    "other",
    [
        tool("web_search", "Searches the web.", query="What to look for"),
        tool("http_get", "Fetches any URL.", url="Address"),
        tool("run_python", "Runs Python with access to the internet.", code="Code"),
        tool("meteo_report", "Temperature and sky at a location right now.", location="Town"),
        tool("weather_by_coordinates", "Current weather at coordinates.", lat="x", lon="y"),
        tool("ask_anything", "", question={}),
        EVENTS,
    ],
)
def test_a_tool_that_takes_any_text_may_do_the_work(other: dict[str, Any]) -> None:
    with pytest.raises(NotApplicable, match=f"{other['name']} may do the work of get_weather"):
        check(other)


@pytest.mark.parametrize("text", ["weather in Rome on 2026-01-02", "https://x.org/1", "tea"])
def test_one_that_was_told_something_in_words_may_too(text: str) -> None:
    with pytest.raises(NotApplicable):
        check(tool("web_search", "Searches the web.", query="What"), query=text)


def test_what_was_told_dates_or_ids_alone_does_something_else() -> None:
    check(EVENTS, day="2026-01-02")


def test_what_writes_does_not_what_reads_does() -> None:
    check(tool("send_mail", "Sends a letter.", text="What it says"))
    check(WEATHER, tool("send_mail", "Sends a letter.", text="What it says"))


def test_what_can_be_told_nothing_does_something_else() -> None:
    choice = {"type": "string", "enum": ["a", "b"]}
    check(tool("tide", "", level={"type": "integer"}, place=choice))
