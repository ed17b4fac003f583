"""What was read of an input, and what was not."""

from __future__ import annotations

import gzip

import pytest

from toolshift.core.intake import Intake, NotRead, check_read, no_text, quoted

EMPTY = Intake("x.jsonl", "line")


def check(intake: Intake) -> None:
    check_read(intake, "a call", "Traces are read")


def test_parts_are_counted_and_the_first_that_was_not_understood_is_kept() -> None:
    intake = EMPTY.took().passed().missed("line 3", "not\nJSON", b"{x").missed("line 4", "other")
    assert (intake.read, intake.blank, intake.unread, intake.total) == (1, 1, 2, 4)
    assert intake.missing() == (
        "2 of 4 lines were not understood. The first is line 3: not JSON: {x"
    )
    check(intake)


@pytest.mark.parametrize(
    ("intake", "why"),
    [
        (EMPTY, "it is empty"),
        (EMPTY.passed().passed(), "none of its 2 lines holds a call"),
        (EMPTY.missed("line 1", "not JSON", b"{"), "1 of 1 line was not understood"),
        (EMPTY.passed().missed("line 2", "not JSON"), "1 of 2 lines was not understood"),
    ],
)
def test_where_nothing_was_read_the_command_ends(intake: Intake, why: str) -> None:
    with pytest.raises(NotRead, match=why) as ended:
        check(intake)
    assert str(ended.value).startswith("x.jsonl: nothing was read: ")
    assert str(ended.value).endswith("Traces are read")
    assert ended.value.intake == intake


def test_a_quote_is_short_on_one_line_and_hides_nothing() -> None:
    assert quoted(b"\xef\xbb\xbf{\x1b[2J\n\xff" + b"x" * 999).startswith(
        "{[ESC][2J \N{REPLACEMENT CHARACTER}xx"
    )
    assert len(quoted("x" * 999)) == 80
    assert quoted(gzip.compress(b"{}", mtime=0)) == quoted(b"a\0b") == ""


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (gzip.compress(b"{}", mtime=0), "gzip"),
        ("{}".encode("utf-16"), "UTF-16"),
        ("{}".encode("utf-16-le"), "no text in UTF-8"),
        (b"\x7fELF\0", "no text in UTF-8"),
        (b"{broken", ""),
        ("{\N{SNOWMAN}".encode(), ""),
    ],
)
def test_bytes_that_are_no_text_are_said(raw: bytes, what: str) -> None:
    said = no_text(raw)
    assert what in said
    assert bool(said) == bool(what)
