"""Tables of traces as JSON lines: CSV and TSV as platforms export them, and Parquet.

A table has no objects, so exporters write them into cells as JSON, or as Python prints a list or a
dictionary (`DataFrame.to_csv`): such a cell is read as what it holds. An empty one is null.
"""

from __future__ import annotations

import ast
import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolshift.core.errors import UsageError
from toolshift.core.files import PACKED, opened, sound
from toolshift.core.intake import no_text
from toolshift.core.tool import JSON
from toolshift.data.parquet import as_line, rows_of, without_holes
from toolshift.data.traces.spans import decoded

TABLES = (".csv", ".tsv", ".parquet")
"""What the names of tables end in; CSV and TSV may be compressed."""
_BETWEEN = (",", ";", "\t")
_LONGEST_CELL = 1 << 30
"""A conversation in one cell is longer than the 131,072 characters that Python allows at first."""


def is_table(path: Path) -> bool:
    """Whether a file is a table, by its name."""
    return _ending(path) in TABLES


def table_lines(path: Path) -> Iterator[bytes]:
    """The rows of a table as JSON lines.

    A row that has not one cell for each column is given as a list of its cells, which is no row:
    whoever reads the lines counts it among what is not understood.
    """
    if _ending(path) == ".parquet":
        for row in rows_of(path):
            yield as_line({key: _as_object(without_holes(cell)) for key, cell in row.items()})
        return
    with opened(path) as file, sound(path):
        start = file.readline()
        if what := no_text(start):
            raise UsageError(f"{path}: {what}")
        file.seek(0)
        text = io.TextIOWrapper(file, "utf-8-sig", newline="")
        between = "\t" if _ending(path) == ".tsv" else _between(start.decode(errors="replace"))
        yield from _csv_lines(path, csv.reader(text, delimiter=between, strict=True))


def _ending(path: Path) -> str:
    return (path.with_suffix("") if path.suffix in PACKED else path).suffix.lower()


def _between(head: str) -> str:
    """The character between the columns, by the line that names these."""
    return max(_BETWEEN, key=head.count)


def _csv_lines(path: Path, rows: Any) -> Iterator[bytes]:
    csv.field_size_limit(_LONGEST_CELL)
    try:
        head: list[str] = next(rows, [])
        for cells in rows:
            if len(cells) != len(head):
                if cells:  # an empty line is nothing
                    yield JSON.encode(cells) + b"\n"
                continue
            named = zip(head, cells, strict=True)
            row = {name: _as_object(cell) if cell else None for name, cell in named if name}
            yield JSON.encode(row) + b"\n"
    except csv.Error as fault:
        raise UsageError(
            f"{path}, line {rows.line_num}: not CSV ({fault}): export it again, or as JSON lines"
        ) from None
    except UnicodeDecodeError as fault:
        raise UsageError(f"{path}: it is no text in UTF-8 ({fault.reason})") from None


def _as_object(cell: Any) -> Any:
    """A cell as the object or the list that its text holds; any other one as it is."""
    found = decoded(cell)
    if not isinstance(found, str) or found.lstrip()[:1] not in ("{", "["):
        return found
    try:
        told = ast.literal_eval(found.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return found
    return told if isinstance(told, dict | list) else found
