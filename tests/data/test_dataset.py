"""Rows in memory and data sets of Hugging Face."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from conversations import openai, question

import toolshift
from toolshift.core.errors import UsageError
from toolshift.core.tool import JSON
from toolshift.data.augment import COLUMN, DEFAULT, Recipe
from toolshift.data.conversation import RowFault
from toolshift.data.files import Job, augment_file
from toolshift.data.formats import FORMATS, ONLY_BACK
from toolshift.data.parquet import without_holes
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


def flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what fixed columns fill in."""
    said = [
        {key: value for key, value in each.items() if value is not None and value != 1}
        for each in row["messages"]
    ]
    tools = row["tools"]
    return {
        **row,
        "messages": said,
        "tools": json.loads(tools) if isinstance(tools, str) else tools,
        COLUMN: row.get(COLUMN, ""),
    }


@pytest.mark.parametrize("shifts", [("SBP",), DEFAULT], ids=["names", "all"])
def test_rows_become_what_the_command_makes_of_them(
    tmp_path: Path, shifts: tuple[str, ...]
) -> None:
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_list(strings(ROWS))
    rows = [without_holes(row) for row in dataset]  # its columns order the keys of messages
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(b"".join(JSON.encode(row) + b"\n" for row in rows))
    augment_file(Job(source, out, Recipe(alpha=0.8, shifts=shifts, seed=5)))
    lines = out.read_bytes().splitlines()
    made = toolshift.augment(rows, alpha=0.8, shifts=shifts, seed=5)
    assert [JSON.encode(row) for row in made] == lines
    again = toolshift.augment(dataset, alpha=0.8, shifts=shifts, seed=5)
    assert [flat(row) for row in again] == [flat(json.loads(line)) for line in lines]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("objects", [False, True], ids=["texts", "objects"])
def test_a_row_of_a_data_set_keeps_its_keys(streaming: bool, objects: bool) -> None:
    """Its parts, thoughts and further keys, also where the first rows have none of them."""
    datasets = pytest.importorskip("datasets")
    rows = strings([{**openai(3), "id": f"row {place}"} for place in range(300)])
    for place, row in enumerate(rows):
        row["meta"] = {"score": 0.5, "by": None if place < 290 else "me"}
        for said in row["messages"]:
            said["content"] = [{"type": "text", "text": said["content"] or ""}]
            said["mood"] = None if place < 290 else "glad"
            said["reasoning_content"] = "Hm."
            for call in (said.get("tool_calls") or ()) if objects else ():
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    dataset = datasets.Dataset.from_list(rows)
    before = {row["id"]: row for row in dataset}
    given = dataset.to_iterable_dataset() if streaming else dataset
    counts = {True: 0, False: 0}
    for row in toolshift.augment(given, alpha=0.5, shifts=("SBP", "EFP")):
        was = before[row["id"]]
        counts[bool(row[COLUMN])] += 1
        assert row["meta"] == was["meta"]
        assert {"mood", "reasoning_content", "content"} <= row["messages"][0].keys()
        for said in row["messages"]:
            assert said["content"] is None or said["content"][0]["type"] == "text"
        if row[COLUMN]:
            assert any(said["reasoning_content"] == "Hm." for said in row["messages"])
            continue
        for said, old in zip(row["messages"], was["messages"], strict=True):
            same = old.keys() - ({"tool_calls"} if objects else set())
            assert {key: said[key] for key in same} == {key: old[key] for key in same}
            for call, one in zip(said["tool_calls"] or (), old["tool_calls"] or (), strict=True):
                given = one["function"]["arguments"]
                if objects:
                    assert json.loads(call["function"]["arguments"]) == without_holes(given)
    assert min(counts.values()) > 50


def test_a_column_that_is_named_as_one_that_we_know_stays() -> None:
    datasets = pytest.importorskip("datasets")
    rows = [{**row, "content": [{"page": 1}], "details": {"a": None}} for row in strings(ROWS[:9])]
    made = toolshift.augment(datasets.Dataset.from_list(rows), alpha=0.5)
    assert all(row["content"] == [{"page": 1}] and row["details"] == {"a": None} for row in made)


def test_what_is_no_json_stays_in_its_column() -> None:
    day, picture = date(2026, 1, 31), object()
    rows = [{**row, "day": day, "picture": picture} for row in ROWS[:9]]
    made = list(toolshift.augment(rows, alpha=1.0, shifts=("SBP", "EFP")))
    assert sum(COLUMN in row for row in made) > 5
    assert all(row["day"] is day and row["picture"] is picture for row in made)


def test_rows_of_one_data_set_share_what_is_known_of_their_tools(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def taken_apart(*_: object) -> None:
        raise AssertionError("a plain row was taken apart")

    monkeypatch.setattr("toolshift.data.dataset.augmented", taken_apart)
    shifts = ("identity_erasure:3",)
    made = list(toolshift.augment(strings(ROWS), alpha=1.0, shifts=shifts))
    assert all(COLUMN in row for row in made)


def spoil(value: Any) -> None:
    """Changes everything in a row."""
    for each in list(value.values()) if isinstance(value, dict) else value:
        if isinstance(each, dict | list):
            spoil(each)
    if isinstance(value, dict):
        value["spoilt"] = True
    else:
        value.append("spoilt")


@pytest.mark.parametrize("entry", ["EFP", "SBP", "midway", "endings"])
@pytest.mark.parametrize("source", [n for n in FORMATS.names() if n not in ONLY_BACK])
@pytest.mark.parametrize("to", ["", "openai"])
def test_a_row_that_the_user_changes_is_no_part_of_another(
    source: str, to: str, entry: str
) -> None:
    form = FORMATS.find(source)

    def made() -> Any:
        rows = [
            question(seed)
            if source == "xlam"
            else openai(seed)
            if source == "openai"
            else form.write(OPENAI.read(openai(seed)), None)
            for seed in range(10)
        ]
        return toolshift.augment(rows, alpha=0.8, shifts=(entry,), to=to)

    before = json.dumps(list(made()))
    for row in made():
        spoil(row)
    assert json.dumps(list(made())) == before


BAD = {"messages": [{"role": "assistant", "tool_calls": "none"}], "tools": []}
WITH_BAD = [*ROWS[:3], BAD, *ROWS[3:6]]


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("shifts", [("SBP",), DEFAULT], ids=["one pass", "two"])
def test_a_row_that_cannot_be_read_is_named_by_its_place(
    alpha: float, shifts: tuple[str, ...]
) -> None:
    with pytest.raises(RowFault, match=r"^row 3, counted from 0: ."):
        list(toolshift.augment(WITH_BAD, alpha=alpha, shifts=shifts))
    with pytest.warns(UserWarning, match=r"^row 3, counted from 0, is left out: .") as said:
        made = list(toolshift.augment(WITH_BAD, alpha=alpha, shifts=shifts, strict=False))
    assert (len(said), len(made)) == (1, 6)


@pytest.mark.parametrize("streaming", [False, True])
def test_a_row_of_a_data_set_is_named_by_its_place(streaming: bool) -> None:
    datasets = pytest.importorskip("datasets")
    bad = {**ROWS[0], "messages": ROWS[0]["messages"], "tools": []}
    rows = [{"messages": row["messages"], "tools": json.dumps(row["tools"])} for row in ROWS[:4]]
    rows.insert(2, {**rows[0], "tools": json.dumps(bad["tools"])})
    dataset = datasets.Dataset.from_list(rows)
    if streaming:
        dataset = dataset.to_iterable_dataset()
    with pytest.raises(RowFault, match=r"^row 2, counted from 0: ."):
        list(toolshift.augment(dataset, alpha=1.0))
    with pytest.warns(UserWarning, match=r"^row 2, counted from 0, is left out: ."):
        made = list(toolshift.augment(dataset, alpha=1.0, seed=1, strict=False))
    assert len(made) >= 4


@pytest.mark.parametrize("shifts", [("SBP",), DEFAULT], ids=["one pass", "two"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda: iter(ROWS), "a list_iterator can be read only once"),
        (lambda: (row for row in ROWS), "a generator can be read only once"),
        (lambda: "base.jsonl", "'base.jsonl' is no rows: read the file first"),
        (lambda: Path("base.jsonl"), "is no rows: read the file first"),
        (lambda: ROWS[0], "a dict with .* is no list of rows: give a list of rows"),
    ],
    ids=["iterator", "generator", "name", "path", "row"],
)
def test_what_is_no_rows_is_said(given: Any, said: str, shifts: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=said):
        toolshift.augment(given(), alpha=1.0, shifts=shifts)


def test_splits_and_other_values_are_said() -> None:
    with pytest.raises(RowFault, match="row 1, counted from 0: a row is a dict, and not str"):
        list(toolshift.augment([ROWS[0], "a", ROWS[1]], alpha=1.0))
    datasets = pytest.importorskip("datasets")
    splits = datasets.DatasetDict(train=datasets.Dataset.from_list(strings(ROWS[:2])))
    with pytest.raises(UsageError, match=r"a DatasetDict with train .* give one of its splits"):
        toolshift.augment(splits)
