"""Arguments that come in another unit or format: asked, and then converted both ways."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolshift.drift.release import Settling, read_release
from toolshift.shifts.release.conversions import (
    Named,
    conversions,
    converted,
    reversed_way,
    unit_gained,
)
from toolshift.shifts.release.inputs import side_of
from toolshift.shifts.release.mapping import Answers, WrongMapping

NUMBER, COUNT = {"type": "number"}, {"type": "integer"}
TEXT: dict[str, Any] = {"type": "string"}
CASES: dict[str, tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]], str, Any, Any]] = {
    "by the description": (
        ("duration", {**NUMBER, "description": "How long, in hours."}),
        ("duration", {**NUMBER, "description": "How long, in minutes."}),
        "h -> min",
        1.5,
        90,
    ),
    "by the name": (("timeout_s", NUMBER), ("timeout_ms", COUNT), "s -> ms", 1.5, 1500),
    "another name and text": (
        ("hours", {**NUMBER, "description": "Hours of standstill."}),
        ("minutes", {**COUNT, "description": "Minutes of standstill."}),
        "h -> min",
        0.5,
        30,
    ),
    "by a name that is a unit": (("days", COUNT), ("weeks", COUNT), "d -> weeks", 14, 2),
    "another zero": (("heat_c", COUNT), ("heat_f", COUNT), "C -> F", 225, 437),
    "cents": (
        ("amount", {**NUMBER, "description": "The amount in euros."}),
        ("amount", {**COUNT, "description": "The amount in cents."}),
        "units -> cents",
        12.5,
        1250,
    ),
    "a text with commas": (
        ("tags", {**TEXT, "description": "Tags, separated by commas."}),
        ("tags", {"type": "array", "items": TEXT, "description": "Tags."}),
        "commas -> list",
        "a,b",
        ["a", "b"],
    ),
    "a list": (
        ("tags", {"type": "array", "items": TEXT}),
        ("tags", {**TEXT, "description": "Comma-separated."}),
        "list -> commas",
        ["a", "b"],
        "a,b",
    ),
    "a date in words, and seconds": (
        ("day", {**TEXT, "description": "The day, YYYY-MM-DD."}),
        ("day", {**COUNT, "description": "The day, unix seconds of its start."}),
        "date -> unix seconds",
        "2026-03-09",
        1773014400,
    ),
    "a date": (
        ("day", {**TEXT, "format": "date"}),
        ("day", {**TEXT, "format": "date-time"}),
        "date -> date-time",
        "2026-03-09",
        "2026-03-09T00:00:00Z",
    ),
}


def tool(*params: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    inputs = {
        "type": "object",
        "properties": dict(params),
        "required": [name for name, _ in params],
    }
    return {"name": "log_downtime", "description": "Log it.", "inputSchema": inputs}


def read(old: Any, new: Any, answers: Answers | None = None) -> Settling:
    sides = [side_of("mcp", name, [tool(one)]) for name, one in (("old", old), ("new", new))]
    return read_release(sides[0], sides[1], answers or Answers())


@pytest.mark.parametrize("case", CASES)
def test_another_unit_is_one_question_whose_answer_is_carried(case: str) -> None:
    old, new, how, was, now = CASES[case]
    settling = read(old, new)
    (question,) = settling.open
    assert question.path == ("param_units", "log_downtime", old[0])
    assert question.guess == how
    carriages = [row.carriage for row in settling.reading.rows if row.severity != "harmless"]
    assert "asked" in carriages
    settling = read(old, new, Answers(param_units={"log_downtime": {old[0]: how}}))
    assert settling.open == ()
    release = settling.shift.release()
    (route,) = release.routes["log_downtime"]
    assert route.inward({new[0]: now}, release.before.sources["log_downtime"]) == {old[0]: was}
    assert route.restated[old[0]].outward(was) == now


@pytest.mark.parametrize(("one", "other"), [("weight_kg", "weight_lb"), ("minutes", "months")])
def test_a_unit_that_nothing_converts_is_said_until_it_is_answered(one: str, other: str) -> None:
    told = Answers(params={"log_downtime": {one: other}})
    (row,) = read((one, COUNT), (other, COUNT), told).reading.rows
    assert (row.severity, row.carriage) == ("breaking", "said")
    assert f'[param_units.log_downtime] {one} = ""' in row.note
    same = Answers(params=told.params, param_units={"log_downtime": {one: ""}})
    (row,) = read((one, COUNT), (other, COUNT), same).reading.rows
    assert row.carriage == "carried"


@pytest.mark.parametrize(("seconds", "severity"), [(1800, "harmless"), (60, "maybe")])
def test_a_default_in_another_unit_is_held_against_that_of_today(
    seconds: int, severity: str
) -> None:
    old, new = ({**COUNT, "default": default} for default in (30, seconds))
    answers = Answers(
        params={"log_downtime": {"hold_minutes": "hold_seconds"}},
        param_units={"log_downtime": {"hold_minutes": "min -> s"}},
    )
    rows = read(("hold_minutes", old), ("hold_seconds", new), answers).reading.rows
    (row,) = [one for one in rows if one.change and one.change.kind == "default_changed"]
    assert row.severity == severity


def test_a_number_that_becomes_a_text_is_carried() -> None:
    (row,) = read(("offset", COUNT), ("offset", TEXT)).reading.rows
    assert (row.severity, row.carriage) == ("breaking", "carried")


def test_no_conversion_is_an_answer_too() -> None:
    old, new, *_ = CASES["by the description"]
    settling = read(old, new, Answers(param_units={"log_downtime": {"duration": ""}}))
    assert settling.open == ()
    (route,) = settling.shift.release().routes["log_downtime"]
    before = settling.shift.release().before.sources["log_downtime"]
    assert route.inward({"duration": 2}, before) == {"duration": 2}


def test_a_conversion_that_there_is_not_is_refused() -> None:
    old, new, *_ = CASES["by the name"]
    with pytest.raises(WrongMapping, match="h -> min"):
        read(old, new, Answers(param_units={"log_downtime": {"timeout_s": "hours -> minutes"}}))


@given(st.sampled_from([*conversions()]), st.integers(-(10**6), 10**6))
@settings(max_examples=60, deadline=None)
def test_a_conversion_back_gives_the_value_again(how: str, number: int) -> None:
    if any(word in how for word in ("unix", "date", "list")):
        return
    assert converted(converted(number, how), reversed_way(how)) == pytest.approx(number)


def _named(name: str, kind: str = "number", text: str = "") -> Named:
    return name, {"type": kind, "description": text}, frozenset((kind,))


@pytest.mark.parametrize(
    ("was", "now", "how"),
    [
        (_named("amount"), _named("amount_cents", "integer"), "units -> cents"),
        (_named("amount"), _named("amount_eur"), "cents -> units"),
        (_named("rate"), _named("rate_percent"), "fraction -> percent"),
        (_named("amount", text="In cents."), _named("amount_cents"), ""),
        (_named("timeout"), _named("timeout_ms"), ""),  # it may have been in any other unit
        (_named("amount"), _named("amount", text="In cents."), ""),  # the text may only say more
        (_named("amount", "string"), _named("amount_cents", "string"), ""),
    ],
)
def test_a_unit_that_only_the_new_name_says_is_asked_where_it_can_be_but_one(
    was: Named, now: Named, how: str
) -> None:
    assert unit_gained(was, now) == how
