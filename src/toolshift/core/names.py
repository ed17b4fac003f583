"""Names that are not known, with the nearest that are."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that is not known.

    Args:
        what: the kind of thing, as "shift".
        name: that was given.
        known: the names that there are.

    Returns:
        A clause with the nearest names, or with all of them where none is near.
    """
    names = sorted(known)
    near = get_close_matches(name, names, n=3, cutoff=0.4)
    offer = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(names)}"
    return f"unknown {what} {name!r}: {offer}"
