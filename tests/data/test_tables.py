"""Traces in tables: the same rows as CSV, TSV and Parquet say what they say as JSON lines."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running import Run

from toolshift.core.errors import UsageError
from toolshift.core.files import read_bytes
from toolshift.core.intake import NotRead
from toolshift.data.tables import table_lines
from toolshift.data.trace_files import lines_of
from toolshift.drift.sources import events_in, read_source

TRACES = sorted((Path(__file__).parent / "traces" / "files").iterdir())
Row = dict[str, Any]
Cell = Callable[[Any], Any]


def rows_of(path: Path) -> list[Row]:
    return [json.loads(line) for line in lines_of(path)]


def as_json(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


def as_python(value: Any) -> Any:
    """As `DataFrame.to_csv` writes it."""
    return str(value) if isinstance(value, dict | list) else value


def write_csv(rows: list[Row], path: Path, cell: Cell = as_json, between: str = ",") -> Path:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=between)
        writer.writerow(["", *names])  # pandas writes its index first, which has no name
        for number, row in enumerate(rows):
            writer.writerow([number, *(cell(row.get(name)) for name in names)])
    return path


def write_parquet(rows: list[Row], path: Path) -> Path:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        try:
            columns[name] = arrow.array(values)
            parquet.write_table(arrow.table({name: columns[name]}), io.BytesIO())
        except (ValueError, TypeError, NotImplementedError):  # Parquet has no objects without keys
            columns[name] = arrow.array([as_json(value) for value in values])
    parquet.write_table(arrow.table(columns), path)
    return path


def tables_of(rows: list[Row], folder: Path) -> Iterator[Path]:
    yield write_csv(rows, folder / "traces.csv")
    yield write_csv(rows, folder / "printed.csv", as_python)
    yield write_csv(rows, folder / "traces.tsv", between="\t")
    yield write_csv(rows, folder / "semicolons.csv", between=";")
    packed = folder / "traces.csv.gz"
    packed.write_bytes(gzip.compress((folder / "traces.csv").read_bytes()))
    yield packed
    yield write_parquet(rows, folder / "traces.parquet")


def told(path: Path) -> list[str]:
    return [repr(event) for event in events_in(path)]


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.partition(".")[0])
def test_a_table_says_what_the_rows_said(path: Path, tmp_path: Path) -> None:
    expected = told(path)
    assert any("Called" in event for event in expected)
    for table in tables_of(rows_of(path), tmp_path):
        assert told(table) == expected, table.name


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = next(path for path in TRACES if path.name.startswith("langsmith"))
    return write_csv(rows_of(path), tmp_path / "runs.csv")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_each_command_reads_a_table(
    ending: str, runs: Path, toolshift: Run, tmp_path: Path
) -> None:
    table = runs
    if ending == ".parquet":
        table = write_parquet(rows_of(runs), tmp_path / "runs.parquet")
    code, _, said = toolshift("watch", str(table))
    assert (code, "5 calls of 2 tools, 3 endings: 0 alarms." in said) == (0, True), said
    assert toolshift("lock", str(table), "--out", "t.lock")[0] == 0
    code, out, _ = toolshift("verify", "t.lock", str(table), "--calls", str(table), "--json")
    assert (code, json.loads(out)["report"]["calls"]) == (0, 5)
    words = ("--writes", "refund_order", "--out", "tasks.yaml", "--json")
    code, out, said = toolshift("world", "from-traces", str(table), *words)
    assert code == 0, said
    assert (json.loads(out)["tasks"], json.loads(out)["conversations"]) == (2, 3)
    words = ("--alpha", "1", "--shift", "identity_erasure", "--out", "out.jsonl")
    code, _, said = toolshift("augment", str(table), *words)
    assert code == 0, said
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 3


def test_traces_of_mlflow_as_search_traces_gives_them(tmp_path: Path) -> None:
    path = next(path for path in TRACES if path.name.startswith("mlflow"))
    rows = [
        {"trace_id": f"tr-{number}", "trace": line.decode(), "state": "OK", "request": "{}"}
        for number, line in enumerate(read_bytes(path).splitlines())
    ]
    assert told(write_csv(rows, tmp_path / "traces.csv")) == told(path)
    assert told(write_parquet(rows, tmp_path / "traces.parquet")) == told(path)


def test_spans_with_a_column_for_each_attribute(tmp_path: Path) -> None:
    rows = [
        {
            "trace_id": "t", "span_id": f"s{number}", "name": "execute_tool find",
            "start_time": "17.5", "end_time": "17.75",
            "attributes.gen_ai.operation.name": "execute_tool",
            "attributes.gen_ai.tool.name": "find",
            "attributes.gen_ai.tool.call.arguments": '{"city": "Rome"}',
        }
        for number in range(3)
    ]  # fmt: skip
    (first, *more) = events_in(write_csv(rows, tmp_path / "spans.csv"))
    assert (first.tool, first.arguments, first.ms) == ("find", {"city": "Rome"}, 250.0)  # type: ignore[union-attr]
    assert len(more) == 2


STRANGE = {
    "nothing that is known": ("a,b\n1,2\n", "row 1", ""),
    "a table of Langfuse without its types": (
        "id,traceId,startTime,input,output\n1,t,2026-01-01,{},{}\n", "row 1",
        "observations of Langfuse",
    ),
    "runs of LangSmith without inputs": (
        "run_type,trace_id,outputs\nllm,t,{}\n", "row 1", "runs of LangSmith",
    ),
    "a row that is too short": ("run_type,inputs,outputs\nllm\n", "row 1", ""),
}  # fmt: skip


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize(
    "words",
    [
        ("watch", "t.csv"),
        ("lock", "t.csv", "--out", "t.lock"),
        ("world", "from-traces", "t.csv", "--out", "t.yaml"),
    ],
    ids=lambda words: words[0],
)
def test_what_is_not_known_is_said_with_the_first_row_and_the_nearest_form(
    kind: str, words: tuple[str, ...], toolshift: Run, tmp_path: Path
) -> None:
    text, where, near = STRANGE[kind]
    (tmp_path / "t.csv").write_text(text)
    code, _, said = toolshift(*words)
    assert code == 2
    assert where in said
    assert near in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'a,b\n"x,1\n', "not CSV"),
        (b"a,b\n\xff\xfe\xfa,1\n", "no text in UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "the file is UTF-16"),
        (b"PAR1nothing", "not a Parquet file"),
        (b"", "empty"),
    ],
)
def test_a_damaged_table_is_named(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / ("t.parquet" if content.startswith(b"PAR1") else "t.csv")
    path.write_bytes(content)
    with pytest.raises((UsageError, NotRead), match=why) as caught:
        read_source(str(path))
    assert str(path) in str(caught.value)


def test_without_pyarrow_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(UsageError, match="needs pyarrow, which is not installed; run:"):
        list(table_lines(tmp_path / "t.parquet"))


TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0\r"), max_size=20)
VALUES = st.recursive(
    TEXTS | st.integers(-9, 9) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.lists(VALUES, max_size=3) | st.dictionaries(TEXTS, VALUES, max_size=3)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(OBJECTS, min_size=1, max_size=4), st.sampled_from([as_json, as_python]))
def test_a_cell_is_the_object_that_it_holds(tmp_path: Path, values: list[Any], cell: Cell) -> None:
    path = write_csv(
        [{"inputs": value, "plain": "x"} for value in values], tmp_path / "t.csv", cell
    )
    assert [json.loads(line)["inputs"] for line in table_lines(path)] == values
