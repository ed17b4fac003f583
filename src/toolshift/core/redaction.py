"""Secrets in what is written down: by how they look, and by the keys that hold them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

GONE = "[redacted]"
LONGEST = 20_000
"""Characters of one text that a trace keeps."""
LONGEST_SECRET = 4_096
READ = 2 * LONGEST
"""Characters that are read for it: secrets that are taken out make room for what comes after."""
DEEPEST = 40
SHORTEST = 6
"""Characters of a value that is taken for a secret wherever it turns up."""
OWNED = re.compile(r"key(?!board|ring|map)|token|auth(?!or)|secret|passw|pwd$|credential", re.I)
"""Names of variables of the environment whose values are secret, if they are no plain words."""
OWNED_SURELY = re.compile(r"(?:key|token|secret|passw\w*|pwd|credentials?)(?:_?\d+)?$", re.I)
"""Names whose values are secret whatever they are."""
PLAIN = re.compile(r"[^\W\d_]+(?:[_.-][^\W\d_]+)*")
"""A setting, such as the `basic` of AUTH_METHOD."""
SHORTEST_OWNED = 8
"""The same, where it is taken out of what is stored of an episode, or shown on a terminal."""
SECRET_KEY = re.compile(
    r"pass(word|wd|phrase)?$|passw|secret|token(?!s$|s_|ize)|api[-_]?key|auth(?!ors?$)|cookie|credential"
    r"|private[-_]?key|access[-_]?key|session[-_]?id|signature|bearer|[-_]pat$|[-_]key$|pwd",
    re.IGNORECASE,
)
SECRET_TEXT = re.compile(
    r"(?i:\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bnpm_\w{20,}"
    r"|\bxox[abprs]-[\w-]{10,}|\bAKIA[A-Z0-9]{12,}|\bAIza[\w-]{20,}|\bhf_[A-Za-z0-9]{16,}"
    r"|(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)",
    re.DOTALL,
)
KEY = re.compile(r"\b(?:sk|pk|rk)[-_][\w-]{12,}")
RANDOM = re.compile(r"[A-Za-z0-9]{12}")
"""What a key has and a word with hyphens has not."""
ASSIGNED = re.compile(
    r"(?P<head>[\"']?(?<![\w.-])(?P<key>[\w.-]{2,})[\"']?\s*[:=]\s*[\"']?)(?P<value>[^\s\"',;&<>{}]{4,})"
)


def secrets_of_environment() -> tuple[str, ...]:
    """The values of the variables whose names say that they are secret, the longest first.

    Short ones are words that stand elsewhere too, and a path is no secret.
    """
    found = {
        value
        for key, value in os.environ.items()
        if OWNED.search(key)
        and len(value) >= SHORTEST_OWNED
        and value[0] != "/"
        and (OWNED_SURELY.search(key) or not PLAIN.fullmatch(value))
    }
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def without_secrets(text: str) -> str:
    """A text that is shown, without secrets of the environment, nor what looks like a key."""
    for secret in secrets_of_environment():
        text = text.replace(secret, GONE)
    return KEY.sub(_without_key, SECRET_TEXT.sub(GONE, text))


def stored_without_secrets(lines: Iterable[bytes]) -> list[bytes]:
    """JSON that is kept, without the secrets of the environment; all else is kept byte by byte.

    The environment is read once for all the lines: that takes longer than to look through one.
    """
    secrets = secrets_of_environment()
    if not secrets:
        return list(lines)
    found = _within_json(secrets)
    return [found.sub(GONE.encode(), line) if found.search(line) else line for line in lines]


@lru_cache(maxsize=8)
def _within_json(secrets: tuple[str, ...]) -> re.Pattern[bytes]:
    """Secrets as they stand within a text of JSON."""
    written = []
    for secret in secrets:
        once = json.dumps(secret, ensure_ascii=False)[1:-1]
        written += [json.dumps(once, ensure_ascii=False)[1:-1], once]  # JSON in a text, and as is
    return re.compile(b"|".join(re.escape(one.encode()) for one in written))


class Redactor:
    """Takes secrets out of what is written down.

    Args:
        known: values that are secret whatever they look like, unless they are very short.
    """

    def __init__(self, known: tuple[str, ...] = ()) -> None:
        owned = [value for key, value in os.environ.items() if SECRET_KEY.search(key)]
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
                if SECRET_KEY.search(str(key)) and not isinstance(inner, bool | None)
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
        return KEY.sub(_without_key, SECRET_TEXT.sub(GONE, known))[:LONGEST]

    def text(self, text: str) -> str:
        """A text without secrets; the time that it takes grows with what is kept of the text."""
        read = text[:READ]
        clean = self._known.sub(GONE, read) if self._known else read
        clean = KEY.sub(_without_key, SECRET_TEXT.sub(GONE, clean))
        clean = ASSIGNED.sub(_without_value, clean)
        if len(text) <= LONGEST:
            return clean
        # A secret that the end of what was read cuts in two is not known for one.
        safe = clean[:-LONGEST_SECRET] if len(text) > READ else clean
        kept = safe[:LONGEST]
        return f"{kept}... [{len(text) - LONGEST} more]"


def _without_key(found: re.Match[str]) -> str:
    return GONE if RANDOM.search(found[0], 3) else found[0]


def _without_value(found: re.Match[str]) -> str:
    return found["head"] + GONE if SECRET_KEY.search(found["key"]) else found[0]
