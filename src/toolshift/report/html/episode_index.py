"""The episodes of runs that may still be going on, found again by where they stand in their files.

Only the index is kept in memory; a trace is read from the disk when it is asked for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.files import PACKED, decode, opened, sound
from toolshift.report.html.episodes.catalog import Catalog, Head, Row
from toolshift.report.html.episodes.pack import Pack
from toolshift.runs.run_folder import Record, RunFolder

LONGEST = 5_000_000
"""Characters of a text that are served; the page shows its beginning and has a button for all."""


@dataclass(frozen=True)
class Place:
    """A line of an episodes file."""

    row: Row
    offset: int
    length: int


class _Log:
    """How far one episodes file has been read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self.lines = 0
        self.file = 0

    def replaced(self) -> bool:
        """Whether it is another file now, as when a finished run is put in order."""
        if not self.path.exists():
            return self.offset > 0
        now = self.path.stat()
        packed = self.path.suffix in PACKED  # which is always smaller
        cut = now.st_size < self.offset and not packed
        return self.offset > 0 and (now.st_ino != self.file or cut)

    def news(self) -> list[tuple[Head, int, int]]:
        """The whole lines that have been added, with their places."""
        if not self.path.exists():
            return []
        with opened(self.path) as file, sound(self.path):
            self.file = os.fstat(file.fileno()).st_ino
            file.seek(self.offset)
            content = file.read()
        found = []
        for line in content.splitlines(keepends=True):
            if not line.endswith(b"\n"):  # still being written
                break
            self.lines += 1
            head = decode(line, Head, f"{self.path}, line {self.lines}")
            found.append((head, self.offset, len(line)))
            self.offset += len(line)
        return found


class Book:
    """The index of some runs, brought up to date at each look; safe for several threads."""

    def __init__(self, folders: Sequence[RunFolder]) -> None:
        self.catalog = Catalog(folders)
        self.planned = sum(len(f.plan.cells) * len(f.manifest.agents) for f in folders)
        self._lock = threading.Lock()
        self._generation = 0
        self._begin()

    @property
    def version(self) -> str:
        """Changes where rows that have been handed out are no longer good."""
        return f"{os.getpid()}-{self._generation}"

    def look(self) -> int:
        """Reads what is new."""
        with self._lock:
            if any(log.replaced() for log in self._logs):
                self._generation += 1
                self._begin()
            for run, log in enumerate(self._logs):
                for head, offset, length in log.news():
                    row = self.catalog.row(run, head)
                    if row is not None:
                        self._places[row.key] = Place(row, offset, length)
                        self._by_scene[run, head.agent, head.cell] = row.key
            return len(self._places)

    def rows(self, start: int, version: str) -> dict[str, Any]:
        """The rows from a number on; all of them where the version has changed."""
        self.look()
        with self._lock:
            places = list(self._places.values())[start if version == self.version else 0 :]
            rows = [(p.row.head.episode, self.catalog.numbers(p.row)) for p in places]
            return {"version": self.version, "planned": self.planned, "rows": rows}

    def trace(self, key: str) -> dict[str, Any] | None:
        """An episode and its clean partner, with their scenes; None where there is none."""
        self.look()
        with self._lock:
            place = self._places.get(key)
            if place is None:
                return None
            row = place.row
            cell = self.catalog.clean_cell(row.run, row.cell)
            partner = self._by_scene.get((row.run, row.head.agent, cell.id)) if cell else None
            beside = self._places[partner] if partner else None
            record, clean = self._read(place), self._read(beside) if beside else None
        pack = Pack(self.catalog.scene, LONGEST)
        pack.add(row, record, (beside.row, clean) if beside and clean else None)
        return pack.to_dict()

    def _begin(self) -> None:
        folders = self.catalog.folders
        self._logs = [_Log(folder.episodes) for folder in folders]
        self._places: dict[str, Place] = {}
        self._by_scene: dict[tuple[int, str, str], str] = {}

    def _read(self, place: Place) -> Record:
        path = self._logs[place.row.run].path
        with opened(path) as file, sound(path):
            file.seek(place.offset)
            line = file.read(place.length)
        try:
            return msgspec.json.decode(line, type=Record)
        except (ValueError, RecursionError) as fault:
            raise UsageError(f"{path} is damaged, or has just changed ({fault})") from None
