"""The errors that a user can mend: each says what was wrong, where, and what to do."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

_LIBRARIES = tuple(
    {str(Path(__file__).parents[1]), *map(sysconfig.get_path, ("stdlib", "purelib", "platlib"))}
)


class UsageError(Exception):
    """Something that was asked for or configured cannot work; the message says what to change."""


class BudgetSpent(UsageError):
    """The money allowed for a run, or left on the account, is spent.

    A study that meets it keeps the episodes that are finished and can be resumed.
    """


def described(fault: BaseException) -> str:
    """An exception of somebody else's code in one line: its type, its words, and where it arose.

    Args:
        fault: the exception, as it was caught.

    Returns:
        Such as "KeyError: 'city' (my_agent.py, line 12)". The place is the innermost line outside
        of ToolShift, the standard library and installed packages; without such a line none is
        named. Of the path only the last part is shown, for the rest may be private.
    """
    text = f"{type(fault).__name__}: {fault}"
    for frame in reversed(traceback.extract_tb(fault.__traceback__)):
        if not frame.filename.startswith((*_LIBRARIES, "<frozen")):
            return f"{text} ({Path(frame.filename).name}, line {frame.lineno})"
    return text
