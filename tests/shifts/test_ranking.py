"""BM25 over tools: as the formula says, deterministic, and whatever the tools are."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolshift.core.tool import Param, Tool
from toolshift.shifts.foreign import by_rule
from toolshift.shifts.ranking import Index, words_in

TOOLS = tuple(one.tool for one in by_rule("train", 0, 300, frozenset()))
INDEX = Index(TOOLS)


def tool(name: str, text: str, *params: str) -> Tool:
    return Tool(name, text, tuple(Param(p, "", {"type": "string"}) for p in params), ())


def test_the_score_is_that_of_the_formula() -> None:
    tools = (tool("red", "green"), tool("red", "red blue"), tool("blue", ""))
    (first, second) = Index(tools).search("red", 9)
    assert (first, second) == (tools[1], tools[0])
    index, weight = Index(tools), log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    longer = 1 - 0.75 + 0.75 * 3 / 2
    assert index.score("red")[1] == pytest.approx(weight * 2 * 2.2 / (2 + 1.2 * longer))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("get_hours", ["get", "hour"]),
        ("listHTTPRoutes", ["list", "http", "route"]),
        ("incidents-fetch-entries", ["incident", "fetch", "entry"]),
        ("Größe in 40 km", ["größe", "in", "40", "km"]),
        ("天気を調べる", ["天気を調べる"]),
        ("address", ["address"]),
    ],
)
def test_words_of_names_and_texts(text: str, words: list[str]) -> None:
    assert words_in(text) == words


@given(st.text(max_size=60), st.integers(0, 12))
@settings(max_examples=40)
def test_any_text_is_a_query_and_finds_what_shares_a_word_with_it(query: str, most: int) -> None:
    found = INDEX.search(query, most)
    assert len(found) == len(set(map(id, found))) <= most
    asked = set(words_in(query))
    for one in found:
        texts = (one.name, one.description, *(p.name for p in one.params))
        texts += tuple(p.schema.get("description", "") for p in one.params)
        assert asked & set(words_in(" ".join(texts)))
    assert found == INDEX.search(query, most)


@settings(max_examples=20)
@given(st.sampled_from(TOOLS))
def test_a_tool_is_found_by_what_is_said_of_it(one: Tool) -> None:
    assert one in INDEX.search(f"{one.name} {one.description}", 7)


def test_no_tools_and_no_words_find_nothing() -> None:
    assert Index(()).search("anything", 5) == ()
    assert INDEX.search("", 5) == INDEX.search("?!", 5) == ()
