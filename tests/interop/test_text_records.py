"""Records inside texts: what is certain is read and written back, everything else stays words."""

from __future__ import annotations

from typing import Any

import pytest

from toolshift.interop.text_records import pieces


def data_of(text: str) -> list[Any]:
    found = pieces(text)
    assert "".join(piece.text for piece in found) == text
    return [piece.data for piece in found if piece.data is not None]


PAIRS = "Commit: 'a1'\nAuthor: Mara Lind\nDate: 2026-01-02 10:00:00\n"


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('Found it:\n{\n  "a": [1, 2]\n}\nThat is all.', [{"a": [1, 2]}]),
        ('Result: {"a": 1}', [{"a": 1}]),
        ('```json\n[{"a": 1}, {"a": 2}]\n```\n', [[{"a": 1}, {"a": 2}]]),
        ('{"a": 1}\n{"a": 2}', [{"a": 1}, {"a": 2}]),
        ("id,name\n1,tea\n2,milk", [[{"id": "1", "name": "tea"}, {"id": "2", "name": "milk"}]]),
        ('id;text\n1;"a;b"\n', [[{"id": "1", "text": "a;b"}]]),
        ("Stock:\n\nid\tname\n1\ttea\n\nDone.", [[{"id": "1", "name": "tea"}]]),
        ("| id | name |\n|----|:----:|\n| 1 | a \\| b |\nEnd", [[{"id": "1", "name": "a | b"}]]),
        (PAIRS, [{"Commit": "'a1'", "Author": "Mara Lind", "Date": "2026-01-02 10:00:00"}]),
        ("Log:\n" + PAIRS + PAIRS.replace("a1", "b2"), [[
            {"Commit": "'a1'", "Author": "Mara Lind", "Date": "2026-01-02 10:00:00"},
            {"Commit": "'b2'", "Author": "Mara Lind", "Date": "2026-01-02 10:00:00"},
        ]]),
    ],
)  # fmt: skip
def test_what_is_certain_is_read(text: str, data: list[Any]) -> None:
    assert data_of(text) == data


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The kettle costs 25.50 euros, and the lamp 40.",
        "Note: the shop is closed.",
        "ERROR disk: full\nERROR disk: full\nERROR disk: still full",
        "Meet at 12:30\nor at 13:30",
        "see https://example.com: it is there\nand {not json}",
        "one, two\nthree, four",
        "a,b\n1,2,3",
        "a,a\n1,2",
        "| a | b |\n| 1 | 2 |",
        "| a | b |\n|---|\n| 1 |",
        "[1, 2, 3]",
        "[]",
        "{}",
        '{"a": 1} and more',
        "--- a/menu.txt\n+++ b/menu.txt\n@@ -1 +1 @@\n-tea: 2\n+tea: 3",
        "  indented: yes\n  also: yes",
        "x" * 600_000,
    ],
)
def test_what_is_not_certain_stays_words(text: str) -> None:
    assert data_of(text) == []


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "b": "é"}',
        '{"a":1,"b":[{"c":null}]}',
        '{\n  "a": {\n    "b": 1\n  }\n}',
        'id,name\n1,tea\n2,"a,b"',
        "| id | name |\n| --- | --- |\n| 1 | a \\| b |",
        "Name: tea\nPrice: 2 EUR\nName: milk\nPrice: 1 EUR",
    ],
)
def test_what_is_read_is_written_in_the_same_way(text: str) -> None:
    (piece,) = pieces(text)
    assert piece.data is not None
    assert piece.write(piece.data) == text


def test_a_text_full_of_brackets_is_read_in_linear_time() -> None:
    assert data_of("[{" * 100_000) == []
    assert data_of("a: b\n" * 50_000) == []
