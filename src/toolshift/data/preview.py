"""What augmenting would do to some rows, before it is done: the row, and the lines that change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

import msgspec

from toolshift.core.intake import NotRead
from toolshift.core.tool import JSON
from toolshift.data.conversation import Row
from toolshift.data.files import (
    Job,
    Tally,
    each_made,
    gather_row,
    intake_of,
    none_left,
    nothing_shifted,
)

AROUND = 1
"""Lines that stay, around each change."""
LONG = 160
"""Letters of a line that is shown whole; a longer text is cut between its sentences."""


class Preview(msgspec.Struct, frozen=True):
    """A row that would be shifted.

    Attributes:
        line: of the file, counted from 1.
        shifts: that would be applied.
        before: the row as it was read.
        after: as it would be written.
    """

    line: int
    shifts: str
    before: Row
    after: Row

    def diff(self) -> Iterator[str]:
        """The lines that change, as in a unified diff; "@@" alone stands between parts."""
        lines = unified_diff(_lines(self.before), _lines(self.after), n=AROUND, lineterm="")
        for line in lines:
            if line not in ("--- ", "+++ "):
                yield "@@" if line.startswith("@@") else line


def _lines(row: Row) -> list[str]:
    """A row as JSON in lines: JSON that stands in a text is opened, a long text is cut."""
    return msgspec.json.format(JSON.encode(_opened(row)), indent=1).decode().splitlines()


_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?;])\s+(?=\S)|(?<=[\u3002\uff01\uff1f])(?=\S)")
"""A space after a mark that ends a sentence; Chinese and Japanese have no space there."""


def _opened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _opened(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_opened(one) for one in value]
    if not isinstance(value, str):
        return value
    if value.lstrip()[:1] in ("{", "["):
        try:
            return _opened(msgspec.json.decode(value))
        except (msgspec.DecodeError, RecursionError):
            pass  # a text that begins so, or is nested deeper than can be read
    parts = [part for line in value.split("\n") for part in _sentences(line)]
    return parts if len(parts) > 1 else value


def _sentences(line: str) -> list[str]:
    """A line, or the sentences of a long one, so that a change in one leaves the others alone."""
    return re.split(_BETWEEN_SENTENCES, line) if len(line) > LONG else [line]


def previews(job: Job, tally: Tally) -> Iterator[Preview]:
    """The rows of a file that would be shifted; each is tried, whatever the share is."""
    recipe = msgspec.structs.replace(job.recipe, alpha=1.0)
    for row_made in each_made(job.source, recipe):
        gather_row(tally, row_made)
        if row_made.made.shifts:
            made = row_made.made
            yield Preview(row_made.line, made.shifts, row_made.row, made.rows[0])
    if not tally.rows:
        why = none_left(job.source, tally.faults, "could be read")
        raise NotRead(why, intake_of(job.source, tally))
    if nothing := nothing_shifted(job.source, recipe, tally):
        raise NotRead(f"{job.source}: {nothing}", intake_of(job.source, tally))
