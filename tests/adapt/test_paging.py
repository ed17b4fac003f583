"""Pages are told from a notice, and put together as one list."""

from __future__ import annotations

import pytest

from toolshift.adapt.paging import chooses_page, is_list, joined, next_page


@pytest.mark.parametrize(
    ("notice", "found"),
    [
        ("More rows follow; continue by passing `page_token` ab12 along.", ("page_token", "ab12")),
        ("To get the next page, call again with page_token=7.", ("page_token", "7")),
        ("More rows follow.", None),
        ("page_token 7 was used; city 9 is next.", None),
        ("next_page_token is 7", None),
    ],
)
def test_the_next_page_is_what_one_parameter_and_its_value_say(
    notice: str, found: tuple[str, str] | None
) -> None:
    assert next_page(f"[1]\nNotice: {notice}", {"page_token": 0, "city": 0}) == found


def test_pages_are_one_list_and_what_is_no_list_changes_nothing() -> None:
    first = "[1]\nNotice: more"
    assert joined(first, "[2]\nNotice: even more", False) == "[1,2]\nNotice: even more"
    assert joined(first, "[2]", False) == "[1,2]"
    for after, failed in (("[2]", True), ("a: 2", False), ('{"a":2}', False), ("[2", False)):
        assert joined(first, after, failed) == first
    assert (is_list("[]\nNotice: more"), is_list("{}"), is_list("- a")) == (True, False, False)


def test_a_call_that_chooses_how_much_it_wants_is_told() -> None:
    assert chooses_page({"maxResults": 3})
    assert chooses_page({"page_token": "a"})
    assert not chooses_page({"city": "Rome"})
