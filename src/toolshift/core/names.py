"""Unknown names, with the nearest known ones, and names that are too long."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from hashlib import blake2b

MAX_NAME = 64
"""The longest name of a tool that the clients of the large model providers accept."""


def is_taken_by_all(name: str) -> bool:
    """Whether the clients of all large model providers accept a name of a tool."""
    return re.fullmatch(rf"[A-Za-z0-9_-]{{1,{MAX_NAME}}}", name) is not None


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that is not known."""
    return f"unknown {what} {name!r}: {nearest(name, known)}"


def nearest(name: str, known: Iterable[str]) -> str:
    """The names nearest to one that is not known."""
    names = sorted(known)
    near = get_close_matches(name, names, n=3, cutoff=0.4)
    return f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(names)}"


def letters(name: str) -> str:
    """The letters and digits of a name in lower case, by which `getHours` is `get_hours`."""
    return re.sub(r"[\W_]", "", name).lower()


def short(name: str) -> str:
    """Shortens a name to `MAX_NAME`: a hash of four letters replaces the middle."""
    if len(name) <= MAX_NAME:
        return name
    mark = blake2b(name.encode(), digest_size=2).hexdigest()
    head, tail = name[: MAX_NAME // 2], name[-(MAX_NAME // 2 - len(mark) - 2) :]
    head = head.rpartition("_")[0] or head
    tail = tail.partition("_")[2] or tail
    return f"{head}_{mark}_{tail}"
