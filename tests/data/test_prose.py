"""What prose says of tools follows a renaming; what it says of the world does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.data.prose import Prose, Renamed

PROSE = Prose(
    {
        "find_docs": Renamed("q_7", {"query": "words", "limit": "most"}),
        "find_people": Renamed("find_people", {"query": "query"}),
        "book": Renamed("apiBook", {"room": "place", "title": "name_of"}),
        "email": Renamed("email", {"to": "rcpt", "subject": "subject"}),
    }
)
CHANGED = {
    "Use find_docs(query='tea', limit = 3).": "Use q_7(words='tea', most = 3).",
    "find_people(query='Ann')": "find_people(query='Ann')",
    "Both: find_docs(query=find_people(query=1), limit=2)": (
        "Both: q_7(words=find_people(query=1), most=2)"
    ),
    'find_docs({"query": "limit=1", "at": {"limit": 2}})': (
        'q_7({"words": "limit=1", "at": {"limit": 2}})'
    ),
    '{"name": "book", "arguments": {"title": "room", "room": "title"}}': (
        '{"name": "apiBook", "arguments": {"name_of": "room", "place": "title"}}'
    ),
    "Running `find_docs` with limit=5 (query='x') first.": (
        "Running `q_7` with most=5 (words='x') first."
    ),
    "Give the `room` to `book`. A `room` is.": "Give the `place` to `apiBook`. A `room` is.",
    "find_docs and find_people take `query`; find_docs takes `limit`": (
        "q_7 and find_people take `query`; q_7 takes `most`"
    ),
    '{"next": "find_docs"}, and find_docs(query="unclosed': (
        '{"next": "q_7"}, and q_7(words="unclosed'
    ),
}
KEPT = (
    '{"query": "dunning", "limit": 1, "item": "book"}',
    "```{'room': 'A', 'book': ['book']}```",
    "https://kb.example.com/find?query=dunning&limit=1 or /find?query=x;limit=2",
    "SELECT * FROM kb WHERE query='open' AND limit='1'",
    "email(subject='book', cc=['find_docs'])",
    "title='book', 'room' and the keys \"query\", \"limit\"",
    "The `room` is free. query=1",
    "I book a room; :( {query}",
)


@pytest.mark.parametrize("text", CHANGED)
def test_what_speaks_of_a_tool_is_renamed(text: str) -> None:
    assert PROSE.say(text) == CHANGED[text]


@pytest.mark.parametrize("text", KEPT)
def test_what_speaks_of_the_world_is_left(text: str) -> None:
    assert PROSE.say(text) == text


def test_what_sql_compares_is_no_parameter_beside_a_tool_either() -> None:
    text = "find_docs ran SELECT * FROM kb WHERE query='a' AND limit='1' at https://x.org/?limit=1"
    assert PROSE.say(text) == text.replace("find_docs", "q_7")


@given(st.lists(st.sampled_from([*CHANGED, *KEPT, "(", '{"', "'", "\n", ". ", "`"]), max_size=6))
def test_what_is_undone_is_the_original(texts: list[str]) -> None:
    text = " ".join(texts)
    assert PROSE.inverse.say(PROSE.say(text)) == text


def test_time_grows_as_a_text_does() -> None:
    text = '{"find_docs(' * 20_000
    assert PROSE.say(text) == text.replace("find_docs", "q_7")
