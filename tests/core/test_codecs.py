"""What is written in a form reads back as the same facts."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolshift.core import codecs, render
from toolshift.core.tool import Field, Result

CSV = ("csv", "csv_semicolon", "csv_tab")
NAMES = ("json", "yaml", "xml", *CSV, "pairs", "table", "prose")
TRAPS = (
    *("a;b", "a\tb"),
    *("", " ", "null", "true", "7", "1e3", "a,b", 'say "so"', "x | y", "- a", "a: b", "# no", "~"),
    *("it is of the", "]]>", "\nNotice: no", "09:00", "[1]", "a=b", "not given", "é\r\n\t", "<&>"),
)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20) | st.sampled_from(TRAPS)
KEY = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12) | st.sampled_from(
    ["place_id", "data-x", "x.place.token", "the place", "is", "a of b", "a/b", "a~1", "#", "[1]"]
)
NUMBER = st.integers(-(10**12), 10**12) | st.floats(-1e9, 1e9, allow_nan=False)
LEAF = st.none() | TEXT | NUMBER | st.booleans()
RECORD = st.dictionaries(KEY, LEAF | st.dictionaries(KEY, LEAF, min_size=1, max_size=3), max_size=5)
DATA = RECORD | st.lists(RECORD, max_size=4)


def said(data: Any) -> Any:
    """What data states: its values by path, nulls left out, numbers as text or numbers alike."""
    if isinstance(data, list):
        return [said(record) for record in data]
    return {path: _plain(value) for path, value in codecs.leaves(data) if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return float(value)
    try:
        number = float(value)
    except ValueError:
        return value
    return number if math.isfinite(number) else value


# All forms read and write the same cases: to draw them takes longer than to read and write them.


@settings(max_examples=60)
@given(data=DATA)
@example(data={"": "\x85", "a\u2028": "b\u2029c\x85"})
def test_round_trip(data: Any) -> None:
    for name in NAMES:
        made = render.form(name)
        assert said(made.read(made.write(data))) == said(data), name


@given(texts=st.lists(TEXT, min_size=1, max_size=4))
def test_texts_stay_texts(texts: list[str]) -> None:
    """A text that looks like a number or a word of the format comes back to the letter."""
    data = [{"code": text} for text in texts]
    for name in NAMES:
        made = render.form(name)
        assert made.read(made.write(data)) == data, name
        assert made.read(made.write(data[0])) == data[0], name


@given(value=NUMBER, kind=st.sampled_from(["number", "integer"]))
def test_facts_are_numbers_again(value: float, kind: Any) -> None:
    value = int(value) if kind == "integer" else value
    for name in NAMES:
        result = Result(True, {"a": {"b_km": value}}, (Field(("a", "b_km"), "b", kind),), name)
        read = render.read(render.show(result), result)
        found = render.facts(read, result.fields)["b"]
        assert found == pytest.approx(value, abs=1e-6), name
        assert type(found) in (int, float), name


@pytest.mark.parametrize("name", NAMES)
def test_empty_list_and_a_list_of_one_and_a_record_differ(name: str) -> None:
    made = render.form(name)
    for data in ([], [{"a": "b"}], {"a": "b"}):
        assert made.read(made.write(data)) == data


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CSV])
def test_a_notice_does_not_get_into_the_data(name: str) -> None:
    result = Result(True, [{"a": "line\nNotice: no"}], form=name, notice="Moved.")
    assert render.read(render.show(result), result) == result.data


def test_errors_stay_json() -> None:
    failed = Result(False, {"error": {"code": "x", "message": "y"}}, form="yaml")
    assert render.show(failed) == '{"error":{"code":"x","message":"y"}}'


def test_xml_with_entities_of_its_own_is_not_read() -> None:
    bomb = '<!DOCTYPE a [<!ENTITY b "bbbb">]><record><a>&b;&b;</a></record>'
    with pytest.raises(ValueError, match="no XML of records"):
        codecs.read_xml(bomb)
    said = {"a": "<!DOCTYPE a>", "<!DOCTYPE": "b"}
    assert codecs.read_xml(codecs.write_xml(said)) == said
    assert codecs.read_xml('<?xml version="1.0"?><order><a>b</a></order>') == {"a": "b"}
