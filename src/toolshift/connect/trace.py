"""The trace of a proxy: one JSON line for each call, request or list of tools, without secrets.

Left out are the values of keys that look like credentials, what looks like a credential inside a
text, and the values of such variables in the proxy's own environment wherever they turn up.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.redaction import Redactor
from toolshift.core.tool import JSON


class Trace:
    """Appends records to a file; one that goes wrong costs the record, never the call.

    Args:
        path: of the file.
        known: secrets that are hidden wherever they stand.

    Raises:
        UsageError: where the file cannot be written.
    """

    def __init__(self, path: Path, known: tuple[str, ...] = ()) -> None:
        self._redactor = Redactor(known)
        self._number = 0
        self._tools: Any = None
        self._failed = False
        try:
            self._file = path.open("ab")
        except OSError as fault:
            raise UsageError(f"{path}: cannot write the trace ({fault.strerror})") from None

    def write(self, record: Mapping[str, Any]) -> None:
        """Appends one record."""
        self._append(self._redactor.clean(record))

    def write_tools(self, tools: Sequence[Any]) -> None:
        """Appends the tools on offer, where they are not those that were written last."""
        listed = self._redactor.document(tools)
        if listed != self._tools:
            self._tools = listed
            self._append({"listed": listed})

    def _append(self, clean: Mapping[str, Any]) -> None:
        self._number += 1
        try:
            line = JSON.encode({"n": self._number, "time": round(time.time(), 3), **clean})
        except (ValueError, msgspec.MsgspecError, RecursionError):
            line = JSON.encode({"n": self._number, "lost": "it could not be written as JSON"})
        try:
            self._file.write(line + b"\n")
            self._file.flush()
        except OSError as fault:
            if not self._failed:
                said = f"{self._file.name}: cannot write the trace ({fault.strerror or fault})"
                print(f"toolshift: {said}; calls go on without it", file=sys.stderr)
            self._failed = True

    def close(self) -> None:
        """Closes the file."""
        with suppress(OSError):  # what is left of a record for which there was no room
            self._file.close()
