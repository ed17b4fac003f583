"""Counts what was read of an input and what was not, so that unread input is never a success.

    intake = Intake("spans.jsonl", "line")
    intake = intake.took()                                   # for each part that is understood
    intake = intake.missed("line 2", "not JSON", line)       # for each that is not
    check_read(intake, WANTED, READ)                         # ends the command where nothing was

Every reader of a stream, a file, a list or a document of others fills one of these. A command says
on standard error, and in its JSON as `unread`, what it could not read.
"""

from __future__ import annotations

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections.abc import Iterable

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.text import one_line

LONGEST_QUOTE = 80
"""Characters of an input that a message shows."""
_KINDS_OF_BYTES = (
    ((b"\x1f\x8b",), "the file is compressed with gzip; unpack it"),
    ((b"\xfd7zXZ",), "the file is compressed with xz; unpack it"),
    ((BOM_UTF32_LE, BOM_UTF32_BE), "the file is UTF-32; write it as UTF-8"),
    ((BOM_UTF16_LE, BOM_UTF16_BE), "the file is UTF-16; write it as UTF-8"),
)


class Unread(msgspec.Struct, frozen=True):
    """A part of an input that was not understood.

    Attributes:
        where: such as "line 3".
        why: it was not understood.
        quote: how it begins, on one line and fit to show; "" where it is no text.
    """

    where: str
    why: str
    quote: str = ""

    def __str__(self) -> str:
        """In words."""
        return f"{self.where}: {self.why}{f': {self.quote}' if self.quote else ''}"


class Intake(msgspec.Struct, frozen=True):
    """What was read of an input.

    Attributes:
        source: how messages name the input.
        unit: what its parts are, such as "line".
        read: parts that were understood and say something.
        blank: parts that were understood and say nothing of tools, empty lines left out.
        unread: parts that were not understood.
        first: the first of these.
    """

    source: str
    unit: str
    read: int = 0
    blank: int = 0
    unread: int = 0
    first: Unread | None = None

    @property
    def total(self) -> int:
        """All parts."""
        return self.read + self.blank + self.unread

    def took(self) -> Intake:
        """The same with one more part that was understood."""
        return Intake(self.source, self.unit, self.read + 1, self.blank, self.unread, self.first)

    def passed(self) -> Intake:
        """The same with one more part that says nothing."""
        return Intake(self.source, self.unit, self.read, self.blank + 1, self.unread, self.first)

    def missed(self, where: str, why: str, raw: bytes | str = b"") -> Intake:
        """The same with one more part that was not understood."""
        first = self.first or Unread(where, one_line(why), quoted(raw))
        return Intake(self.source, self.unit, self.read, self.blank, self.unread + 1, first)

    def missing(self) -> str:
        """How much was not understood, and the first such part; "" if everything was."""
        if self.first is None:
            return ""
        were = "was" if self.unread == 1 else "were"
        whole = counted(self.total, self.unit)
        return f"{self.unread:,} of {whole} {were} not understood. The first is {self.first}"


class NotRead(UsageError):
    """An input, or what is needed of it, was not understood, so there is no result.

    Args:
        message: what is wrong, and what to do.
        intake: what was met.
    """

    def __init__(self, message: str, intake: Intake) -> None:
        super().__init__(message)
        self.intake = intake


def check_read(intake: Intake, wanted: str, understood: str) -> None:
    """Raises an error if nothing was read."""
    if intake.read:
        return
    if not intake.total:
        what = "it is empty"
    elif intake.first is None:
        what = f"none of its {counted(intake.total, intake.unit)} holds {wanted}"
    else:
        what = intake.missing()
    raise NotRead(f"{intake.source}: nothing was read: {what}. {understood}", intake)


def some_unread(intakes: Iterable[Intake]) -> list[Intake]:
    """The intakes that have an unread part."""
    return [intake for intake in intakes if intake.unread]


def counted(count: int, unit: str) -> str:
    """A number of things, such as "1 line" or "2 lines"."""
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def quoted(raw: bytes | str) -> str:
    """How a text begins, on one line and with hidden characters named."""
    if isinstance(raw, bytes):
        if no_text(raw):
            return ""
        raw = raw.removeprefix(BOM_UTF8)[: 4 * LONGEST_QUOTE].decode(errors="replace")
    line = one_line(raw[: 4 * LONGEST_QUOTE])
    return line if len(line) <= LONGEST_QUOTE else f"{line[: LONGEST_QUOTE - 3]}..."


def no_text(raw: bytes) -> str:
    """Says what bytes are that are no text in UTF-8."""
    for beginnings, what in _KINDS_OF_BYTES:
        if raw.startswith(beginnings):
            return what
    return "it is no text in UTF-8" if b"\0" in raw[:1000] else ""
