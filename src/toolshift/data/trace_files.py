"""Files of traces: JSON lines, one JSON document as an export's page or list is, or a table.

is_trace(path)                  by its first row
lines_of(path)                  its rows as JSON lines, whichever of these it is
conversation_lines(path)        the conversations that it tells, as rows of OpenAI messages
read_recorded(paths)            the same as conversations that took place, with their results
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.files import PACKED, opened, sound
from toolshift.core.intake import Intake, no_text
from toolshift.core.tool import JSON
from toolshift.data.conversation import RowFault
from toolshift.data.formats import read_as, recognised
from toolshift.data.formats.openai import OPENAI
from toolshift.data.tables import is_table, table_lines
from toolshift.data.traces import TraceReader, not_known, raws_of
from toolshift.data.traces.recorded import Recorded, as_conversation, of_conversation, recorded_in
from toolshift.data.traces.spans import Raw, Span


def lines_of(path: Path) -> Iterator[bytes]:
    """The rows of a file as JSON lines; those of a `.json` file may be one list, or one object."""
    if is_table(path):
        yield from table_lines(path)
        return
    with opened(path) as file, sound(path):
        if not _may_be_document(path):
            yield from file
            return
        raw = file.read()
    try:
        whole = msgspec.json.decode(raw.removeprefix(BOM_UTF8))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        yield from raw.splitlines(
            keepends=True
        )  # JSON lines, as the OpenTelemetry Collector writes
        return
    for row in whole if isinstance(whole, list) else [whole]:
        yield JSON.encode(row) + b"\n"


def part_of(path: Path) -> str:
    """What the parts of a file are counted by."""
    return "row" if is_table(path) else "line"


def _may_be_document(path: Path) -> bool:
    name = path.with_suffix("") if path.suffix in PACKED else path
    return name.suffix == ".json"


def is_trace(path: Path) -> bool:
    """Whether a file holds traces, by the first of its rows."""
    try:
        first = next((line for line in lines_of(path) if line.strip()), b"")
    except OSError:
        return False
    row = _object(first)
    return row is not None and raws_of(row) is not None


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        row = msgspec.json.decode(line.removeprefix(BOM_UTF8))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def read_recorded(paths: Iterable[Path]) -> tuple[list[Recorded], list[Intake]]:
    """The conversations of some files of traces or of conversations, and what of each was read."""
    spans: list[Span] = []
    found: list[Recorded] = []
    intakes = []
    for path in paths:
        part = part_of(path)
        reader, intake = TraceReader(), Intake(str(path), part)
        for number, line in enumerate(lines_of(path), 1):
            if not line.strip():
                continue
            where = f"{part} {number}"
            row = _object(line)
            known = reader.read(row) if row is not None else None
            if row is None:
                intake = intake.missed(where, no_text(line) or "not a JSON object", line)
            elif known is None:
                try:
                    said = read_as(recognised(row), row)
                except RowFault as fault:
                    intake = intake.missed(where, str(fault), line)
                    continue
                found.append(of_conversation(said, f"{path.name}:{number}"))
                intake = intake.took()
            else:
                intake = msgspec.structs.replace(intake, unit="span")
                for span in known:
                    told = span.run is not None or span.turn is not None
                    intake = intake.took() if told else intake.passed()
                for raw in reader.unknown:
                    intake = intake.missed(where, not_known(raw), raw.name)
                spans += known
        intakes.append(intake)
    return [*recorded_in(spans), *found], intakes


def conversation_lines(path: Path) -> Iterator[bytes]:
    """The conversations of a file as rows of OpenAI messages; last come parts that are not known.

    These are left as they came, so that whoever reads the rows counts them and says what they are.
    """
    reader, spans, strange = TraceReader(), list[Span](), list[bytes]()
    for line in lines_of(path):
        row = _object(line) if line.strip() else None
        found = reader.read(row) if row is not None else None
        if found is None:
            strange += [line] if line.strip() else []
            continue
        spans += found
        strange += [_as_line(raw) for raw in reader.unknown]
    for recorded in recorded_in(spans):
        if recorded.said:
            yield JSON.encode(OPENAI.write(as_conversation(recorded), None)) + b"\n"
    yield from strange


def _as_line(raw: Raw) -> bytes:
    return JSON.encode({"name": raw.name, "attributes": raw.attributes}) + b"\n"
