"""The trace of a proxy: one JSON line for each call, request or list of tools, without secrets.

Left out are the values of keys that look like credentials, what looks like a credential inside a
text, and the values of such variables in the proxy's own environment wherever they turn up.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.tool import JSON

GONE = "[redacted]"
LONGEST = 20_000
"""Characters of one text that a trace keeps."""
LONGEST_SECRET = 4_096
READ = 2 * LONGEST
"""Characters that are read for it: secrets that are taken out make room for what comes after."""
DEEPEST = 40
SHORTEST = 6
"""Characters of a value that is taken for a secret wherever it turns up."""
_SECRET_KEY = re.compile(
    r"pass(word|wd|phrase)?$|passw|secret|token(?!s$|s_|ize)|api[-_]?key|auth(?!ors?$)|cookie|credential"
    r"|private[-_]?key|access[-_]?key|session[-_]?id|signature|bearer|[-_]pat$|[-_]key$|pwd",
    re.IGNORECASE,
)
_SECRET_TEXT = re.compile(
    r"(?i:\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bnpm_\w{20,}"
    r"|\bxox[abprs]-[\w-]{10,}|\bAKIA[A-Z0-9]{12,}|\bAIza[\w-]{20,}|\bhf_[A-Za-z0-9]{16,}"
    r"|(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)",
    re.DOTALL,
)
_KEY = re.compile(r"\b(?:sk|pk|rk)[-_][\w-]{12,}")
_RANDOM = re.compile(r"[A-Za-z0-9]{12}")
"""What a key has and a word with hyphens has not."""
_ASSIGNED = re.compile(
    r"(?P<head>[\"']?(?<![\w.-])(?P<key>[\w.-]{2,})[\"']?\s*[:=]\s*[\"']?)(?P<value>[^\s\"',;&<>{}]{4,})"
)


class Redactor:
    """Takes secrets out of what is written down.

    Args:
        known: values that are secret whatever they look like, unless they are very short.
    """

    def __init__(self, known: tuple[str, ...] = ()) -> None:
        owned = [value for key, value in os.environ.items() if _SECRET_KEY.search(key)]
        long = {value for value in (*known, *owned) if len(value) >= SHORTEST}
        every = sorted(long, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, every))) if every else None

    def clean(self, value: object, depth: int = 0) -> Any:
        """The value without secrets, and cut to a size that a trace can keep."""
        if depth > DEEPEST:
            return "[too deep]"
        if isinstance(value, Mapping):
            return {
                self.text(str(key)): GONE
                if _SECRET_KEY.search(str(key)) and not isinstance(inner, bool | None)
                else self.clean(inner, depth + 1)
                for key, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.clean(inner, depth + 1) for inner in value]
        return self.text(value) if isinstance(value, str) else value

    def document(self, value: object, depth: int = 0) -> Any:
        """A tool's document without secrets that are known or look like one.

        Its keys are names of parameters, so `token` says nothing of what stands below.
        """
        if isinstance(value, Mapping) and depth <= DEEPEST:
            return {str(key): self.document(inner, depth + 1) for key, inner in value.items()}
        if isinstance(value, list | tuple) and depth <= DEEPEST:
            return [self.document(inner, depth + 1) for inner in value]
        if not isinstance(value, str):
            return value if not isinstance(value, Mapping | list | tuple) else "[too deep]"
        known = self._known.sub(GONE, value[:READ]) if self._known else value[:READ]
        return _KEY.sub(_without_key, _SECRET_TEXT.sub(GONE, known))[:LONGEST]

    def text(self, text: str) -> str:
        """A text without secrets; the time that it takes grows with what is kept of the text."""
        read = text[:READ]
        clean = self._known.sub(GONE, read) if self._known else read
        clean = _KEY.sub(_without_key, _SECRET_TEXT.sub(GONE, clean))
        clean = _ASSIGNED.sub(_without_value, clean)
        if len(text) <= LONGEST:
            return clean
        # A secret that the end of what was read cuts in two is not known for one.
        safe = clean[:-LONGEST_SECRET] if len(text) > READ else clean
        kept = safe[:LONGEST]
        return f"{kept}... [{len(text) - LONGEST} more]"


def _without_key(found: re.Match[str]) -> str:
    return GONE if _RANDOM.search(found[0], 3) else found[0]


def _without_value(found: re.Match[str]) -> str:
    return found["head"] + GONE if _SECRET_KEY.search(found["key"]) else found[0]


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
            line = JSON.encode({"n": self._number, **clean})
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
