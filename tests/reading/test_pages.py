"""Whether a result says that it goes on."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.core.render import FORMS
from toolshift.reading.pages import offers_more

MORE = [
    {"next_page": 2},
    {"next": "https://example.com/items?page=2"},
    {"next_cursor": "abc=="},
    {"nextPageToken": "CAUQAA"},
    {"has_more": True},
    {"pageInfo": {"hasNextPage": True, "endCursor": "x"}},
    {"page": 1, "total_pages": 3},
    {"meta": {"current_page": 2, "last_page": 3}},
    {"links": {"next": "/items?page=2"}},
    {"_links": {"next": {"href": "/items?page=2"}}},
    {"@odata.nextLink": "https://example.com"},
    {"NextToken": "t"},
    {"IsTruncated": True},
]
LAST = [
    {"next_page": None},
    {"next": ""},
    {"next_cursor": None},
    {"has_more": False},
    {"page": 3, "total_pages": 3},
    {"current_page": 1, "last_page": 1},
    {"links": {"next": None, "prev": "/items?page=1"}},
    {"next_steps": "call us", "context": "next", "text": "What is next?"},
    {"nextPageToken": ""},
    {"total_pages": 3},
    {},
]


@pytest.mark.parametrize("data", MORE)
def test_a_result_that_goes_on(data: dict[str, object]) -> None:
    assert offers_more(json.dumps({"items": ["a", "b"], **data}))
    assert offers_more(json.dumps(data, indent=2))


@pytest.mark.parametrize("data", LAST)
def test_a_result_that_does_not(data: dict[str, object]) -> None:
    assert not offers_more(json.dumps({"items": ["a", "b"], **data}))
    assert not offers_more(json.dumps({**data, "items": []}, indent=2))


@pytest.mark.parametrize("form", ["json", "yaml", "pairs"])
def test_other_forms_of_results(form: str) -> None:
    assert offers_more(FORMS[form].write({"item": "a", "next_page": 2}))
    assert not offers_more(FORMS[form].write({"item": "a", "has_more": False}))


def test_a_header_of_links() -> None:
    assert offers_more('Link: <https://example.com?page=2>; rel="next"')
    assert not offers_more('Link: <https://example.com?page=1>; rel="prev"')


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    offers_more(text)
