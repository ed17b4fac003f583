"""Names that are not known, with the nearest that are."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that is not known."""
    names = sorted(known)
    near = get_close_matches(name, names, n=3, cutoff=0.4)
    offer = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(names)}"
    return f"unknown {what} {name!r}: {offer}"
