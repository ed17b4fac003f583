"""Errors that a user can fix: each says what was wrong, where, and what to do."""

from __future__ import annotations

import inspect
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path

from toolshift.core.redaction import READ, without_secrets
from toolshift.core.text import storable

_OURS = str(Path(__file__).parents[1])
_STANDARD = sysconfig.get_path("stdlib")

LONGEST = 2000
"""The maximum length of an exception's own text in a message."""


IN_THE_LAB = (
    "the studies and former versions are in ToolShift's lab; in a clone of its repository: "
    "pip install ./lab"
)
"""The advice for what was moved out of the package."""


class UsageError(Exception):
    """Something that was asked for or configured cannot work; the message says what to change."""


class BudgetSpent(UsageError):
    """The money allowed for a run, or left on the account, is spent.

    A study that meets it keeps the episodes that are finished and can be resumed.
    """


class Resumable(UsageError):
    """What a run stands on has failed: a worker, the cluster, the disk.

    What was asked for is not at fault: the same command can be run again. Where it resumes, whoever
    keeps what is finished says so.
    """

    def __init__(self, message: str, kept: bool = False) -> None:
        super().__init__(f"{message}; what is finished is kept" if kept else message)


class InUse(UsageError):
    """Another process is at work on the same folder or file."""


def cause_of(fault: BaseException) -> BaseException:
    """The first cause inside a group of them, at any depth; any other exception as it is."""
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return fault


class MissingPlugin(UsageError):
    """A run needs plugins that are not loaded.

    Args:
        message: what is missing.
        plugins: the files or modules to load.
    """

    def __init__(self, message: str, plugins: tuple[str, ...]) -> None:
        super().__init__(message)
        self.plugins = plugins


class FitsNoTask(UsageError):
    """A shift can be applied to none of the tasks that were chosen.

    Args:
        message: what is wrong, in words.
        reasons: by lineage of a task, why not.
    """

    def __init__(self, message: str, reasons: Mapping[str, str]) -> None:
        super().__init__(message)
        self.reasons = reasons


class ConnectionDropped(UsageError):
    """A server of the user's broke off the connection during a call; the next one may go well."""


class WorldFault(UsageError):
    """The code of a world failed. Its author has to fix it; no agent is to blame."""


class ShiftFault(Exception):
    """The code of a shift failed. Its author has to fix it; no agent is to blame."""


class ExplainedFault(Exception):
    """A fault in foreign code whose message is shown as it is, without a type or a place."""


@contextmanager
def naming_folder(folder: Path, name: str) -> Iterator[None]:
    """Makes errors name the path that the user gave, not our temporary folder."""
    # The longest first: on some systems one of them is the end of the other.
    ours = sorted({str(folder), str(folder.resolve())}, key=len, reverse=True)

    def named(text: str) -> str:
        for part in ours:
            text = text.replace(part, name)
        return text

    try:
        yield
    except UsageError as fault:
        fault.args = tuple(named(part) if isinstance(part, str) else part for part in fault.args)
        raise
    except OSError as fault:
        if isinstance(fault.filename, str):
            fault.filename = named(fault.filename)
        raise


def described(fault: BaseException) -> str:
    """Describes an exception of foreign code in one line: type, message and place."""
    try:
        words = without_secrets(storable(" ".join(str(fault)[:READ].split())))
    except Exception:  # its own text fails, too
        words = ""
    words = words if len(words) <= LONGEST else f"{words[:LONGEST]}..."
    if isinstance(fault, ExplainedFault):
        return words
    text = f"{type(fault).__name__}: {words}" if words else type(fault).__name__
    return placed(text, place_of(fault))


def ended(fault: BaseException) -> str:
    """Describes an exception of imported code in one line; for an exit, says what to do."""
    if not isinstance(fault, SystemExit):
        return described(fault)
    return f"{described(fault)}: what runs the file as a script goes under `if __name__ == ...`"


def kind_of(returned: object) -> str:
    """The type of what foreign code returned, by name.

    A coroutine is closed: Python would warn that nobody awaits it, before the error that says so.
    """
    if inspect.iscoroutine(returned):
        returned.close()
    return type(returned).__name__


def placed(text: str, place: str) -> str:
    """Adds the place in brackets to a text, if it is known and not in the text yet."""
    return f"{text} ({place})" if place and place not in text else text


def place_of(fault: BaseException) -> str:
    """Where an exception arose in somebody else's code."""
    if isinstance(fault, SyntaxError) and fault.filename and fault.lineno:
        return f"{Path(fault.filename).name}, line {fault.lineno}"
    if place := outside(fault):
        return place
    frames = traceback.extract_tb(fault.__traceback__)
    called = [
        frame
        for caller, frame in pairwise(frames)
        if caller.filename.startswith(_OURS)
        and frame.filename.startswith(_installed(tuple(sys.path)))
        and not frame.filename.startswith(_OURS)
    ]
    return f"{Path(called[-1].filename).name}, line {called[-1].lineno}" if called else ""


def outside(fault: BaseException, called_by_us: bool = False) -> str:
    """The innermost line of an exception outside ToolShift, the standard library and packages.

    With `called_by_us` it is one that our innermost line has called, and no line around that one.
    """
    known = (_OURS, _STANDARD, *_installed(tuple(sys.path)), "<frozen", "<string>")
    for frame in reversed(traceback.extract_tb(fault.__traceback__)):
        if called_by_us and frame.filename.startswith(_OURS):
            break
        if not frame.filename.startswith(known):
            return f"{Path(frame.filename).name}, line {frame.lineno}"
    return ""


@cache
def _installed(path: tuple[str, ...]) -> tuple[str, ...]:
    """The folders of packages: the interpreter's, and those on the path that hold their records."""
    usual = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    others = (one for one in path if next(Path(one).glob("*.dist-info"), None) is not None)
    return (*usual, *others)


def defined_at(thing: object) -> str:
    """Where a function or a class stands."""
    made = getattr(thing, "func", thing)  # of a functools.partial
    if not (isinstance(made, type) or inspect.isroutine(made)):
        made = type(made)
    try:
        made = inspect.unwrap(made)
        file, line = inspect.getsourcefile(made), inspect.getsourcelines(made)[1]
    except (TypeError, OSError):  # built in, or typed into a notebook
        return ""
    return f"{Path(file).name}, line {line}" if file else ""
