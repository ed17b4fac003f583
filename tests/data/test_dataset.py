"""Rows in memory and data sets of Hugging Face."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conversations import openai

import toolshift
from toolshift.core.errors import UsageError
from toolshift.data.augment import COLUMN
from toolshift.data.formats import FORMATS
from toolshift.data.replay import check

ROWS = [openai(seed) for seed in range(60)]
OPENAI = FORMATS.find("openai")


def test_any_iterable_of_rows() -> None:
    made = toolshift.augment(ROWS, alpha=0.5)
    first, again = list(made), list(made)
    assert first == again
    shifted = [row for row in first if COLUMN in row]
    assert 15 < len(shifted) < 45
    assert [row for row in first if COLUMN not in row] == [
        row for row in ROWS if row["id"] not in {each["id"] for each in shifted}
    ]
    with pytest.raises(UsageError, match="from 0 to 1"):
        toolshift.augment(ROWS, alpha=3)


def strings(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows as TRL takes them: tools as JSON in a string."""
    return [{**row, "tools": json.dumps(row["tools"])} for row in rows]


@pytest.mark.parametrize("streaming", [False, True])
def test_a_data_set_of_hugging_face(streaming: bool) -> None:
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_list(strings(ROWS))
    if streaming:
        dataset = dataset.to_iterable_dataset()
    made = list(toolshift.augment(dataset, alpha=0.5, seed=2))
    shifted = [row for row in made if row[COLUMN]]
    assert 15 < len(shifted) < 50
    weights = set()
    for row in made:
        conversation = OPENAI.read(row)
        check(conversation)
        weights |= {message["weight"] for message in row["messages"]}
        assert row["note"] == "stays"
    assert weights == {0, 1}
    plain = [OPENAI.read(row) for row in made if not row[COLUMN]]
    assert plain == [
        OPENAI.read(row) for row in ROWS if row["id"] not in {each["id"] for each in shifted}
    ]
