"""Records that stand inside a text: JSON, Markdown tables, CSV and `key: value` lines.

    for piece in pieces(text): ...        # their texts, joined, are the text
    piece.data                            # a record, a list of records, or None for mere words
    piece.write(data)                     # other data in the way in which the piece is written

Only what can hardly be anything else counts as records. A text of one sentence, a log, a patch, a
table whose rows differ in length: these stay words.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

Record = dict[str, Any]
Records = Record | list[Record]
MAX_TEXT = 500_000
"""Characters of a text that is still looked through."""
MAX_BROKEN = 50
"""Brackets that open no JSON, after which a text is not looked through for it any more."""
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_PAIR = re.compile(r"([A-Za-z][\w.()/-]*(?: [\w.()/-]+){0,3}):[ \t]+(\S.*)")
_RULE = re.compile(r"\|?(?:[ \t]*:?-{2,}:?[ \t]*\|)*[ \t]*:?-{2,}:?[ \t]*\|?[ \t]*")
_OPENS = re.compile(r"[\[{]")
_DECODER = json.JSONDecoder()


Read = Callable[[str, int], tuple["Piece | None", int]]
"""Reads records that begin at a place; says too up to where it need not try again."""


def _words(data: Records) -> str:
    raise TypeError("words are not written anew")


@dataclass(frozen=True)
class Piece:
    """A part of a text: records, or words that stay as they are."""

    text: str
    data: Records | None = None
    write: Callable[[Records], str] = _words


def pieces(text: str) -> list[Piece]:
    """A text in its parts."""
    found: list[Piece] = []
    reader = _Reader(text)
    start = place = 0
    while place < len(text) <= MAX_TEXT:
        piece, offset = reader.at(place)
        if piece is not None:
            if offset > start:
                found.append(Piece(text[start:offset]))
            found.append(piece)
            start = place = offset + len(piece.text)
        end = text.find("\n", place)
        place = len(text) if end < 0 else end + 1
    if start < len(text):
        found.append(Piece(text[start:]))
    return found


class _Reader:
    """Looks for records line by line; what was no table or list is not looked at again."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._broken = 0
        self._closed: dict[Read, int] = dict.fromkeys((_table, _csv, _pairs), 0)

    def at(self, place: int) -> tuple[Piece | None, int]:
        """The records that begin in the line at a place, and where they begin."""
        end = self.text.find("\n", place)
        line = self.text[place : len(self.text) if end < 0 else end]
        opening = _OPENS.search(line)
        if opening is not None and self._broken < MAX_BROKEN:
            offset = place + opening.start()
            piece = _json(self.text, offset)
            if piece is not None:
                return piece, offset
            self._broken += 1
        for read, closed in self._closed.items() if line.strip() else ():
            if place >= closed:
                piece, self._closed[read] = read(self.text, place)
                if piece is not None:
                    return piece, place
        return None, place


def _lines(text: str, place: int) -> Iterator[str]:
    """The lines from a place on, up to the first empty one."""
    while place < len(text):
        end = text.find("\n", place)
        end = len(text) if end < 0 else end
        line = text[place:end]
        if not line.strip():
            return
        yield line
        place = end + 1


def _are_records(data: Any) -> bool:
    if isinstance(data, list):
        return bool(data) and all(isinstance(one, dict) and one for one in data)
    return isinstance(data, dict) and bool(data)


def _rows(data: Records) -> tuple[list[str], list[Record]]:
    """The columns of records, and the records."""
    rows = data if isinstance(data, list) else [data]
    return list(dict.fromkeys(key for row in rows for key in row)), rows


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# -- JSON --------------------------------------------------------------------------------------


def _json(text: str, place: int) -> Piece | None:
    """JSON that ends its line."""
    try:
        data, end = _DECODER.raw_decode(text, place)
    except (ValueError, RecursionError):
        return None
    if not _are_records(data) or text[end:].partition("\n")[0].strip():
        return None
    source = text[place:end]
    return Piece(source, data, partial(_write_json, source))


def _write_json(source: str, data: Records) -> str:
    indent = re.search(r"[\[{]\n( +)", source)
    loose = '": ' in source or indent is not None
    separators = (", " if loose and indent is None else ",", ": " if loose else ":")
    width = len(indent[1]) if indent else None
    return json.dumps(data, ensure_ascii=False, indent=width, separators=separators)


# -- Markdown tables -----------------------------------------------------------------------------


def _table(text: str, place: int) -> tuple[Piece | None, int]:
    lines = _lines(text, place)
    head, rule = next(lines), next(lines, "")
    if "|" not in head or not _RULE.fullmatch(rule) or "|" not in rule:
        return None, place
    names = _cells(head)
    if len(set(names)) != len(names) or not all(names) or len(_cells(rule)) != len(names):
        return None, place
    rows, taken = [], [head, rule]
    for line in lines:
        cells = _cells(line)
        if "|" not in line or len(cells) != len(names):
            break
        rows.append(dict(zip(names, cells, strict=True)))
        taken.append(line)
    return (Piece("\n".join(taken), rows, _write_table) if rows else None), place


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


def _write_table(data: Records) -> str:
    names, rows = _rows(data)
    cells = [names, ["---"] * len(names), *([_cell(row.get(n)) for n in names] for row in rows)]
    return "\n".join("| " + " | ".join(map(_escaped, line)) + " |" for line in cells)


def _escaped(cell: str) -> str:
    return cell.replace("|", r"\|").replace("\n", " ")


# -- CSV -----------------------------------------------------------------------------------------


def _csv(text: str, place: int) -> tuple[Piece | None, int]:
    """A whole paragraph of rows of one length under a head of names."""
    first = list(islice(_lines(text, place), 2))
    for mark in (",", "\t", ";"):
        names = first[0].split(mark)
        plain = all(_NAME.fullmatch(name) for name in names) and len(set(names)) == len(names)
        if not plain or len(names) < 2 or len(first) < 2:
            continue
        lines = list(_lines(text, place))
        try:
            rows = list(csv.reader(lines[1:], delimiter=mark, strict=True))
        except csv.Error:
            rows = [[]]
        if all(len(row) == len(names) for row in rows):
            data = [dict(zip(names, row, strict=True)) for row in rows]
            return Piece("\n".join(lines), data, partial(_write_csv, mark)), place
        return None, place + sum(len(line) + 1 for line in lines)
    return None, place


def _write_csv(mark: str, data: Records) -> str:
    names, rows = _rows(data)
    file = io.StringIO()
    out = csv.writer(file, delimiter=mark, lineterminator="\n")
    out.writerow(names)
    out.writerows([_cell(row.get(name)) for name in names] for row in rows)
    return file.getvalue().removesuffix("\n")


# -- key: value lines ----------------------------------------------------------------------------


def _pairs(text: str, place: int) -> tuple[Piece | None, int]:
    """At least two such lines; the first key once more begins the next record."""
    records: list[Record] = []
    taken: list[str] = []
    for line in _lines(text, place):
        pair = _PAIR.fullmatch(line)
        if pair is None:
            break
        key, value = pair.groups()
        if not records or key == next(iter(records[-1])):
            records.append({})
        elif key in records[-1]:
            break
        records[-1][key] = value
        taken.append(line)
    if not records or any(len(record) < 2 for record in records):
        return None, place + sum(len(line) + 1 for line in taken)
    data = records if len(records) > 1 else records[0]
    return Piece("\n".join(taken), data, _write_pairs), place


def _write_pairs(data: Records) -> str:
    _, rows = _rows(data)
    return "\n".join(f"{key}: {_cell(value)}" for row in rows for key, value in row.items())
