"""Where a run is stored: a local folder, or an address that fsspec knows."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from toolshift.core.errors import UsageError, naming_folder
from toolshift.core.importing import load
from toolshift.core.installation import extra
from toolshift.core.terminal import say


@dataclass(frozen=True)
class RunLocation:
    """A run folder, and what it is called.

    Attributes:
        path: of the folder on this machine.
        shown: as the user named it.
        stream: sends what is new to where it goes; does nothing for a folder.
    """

    path: Path
    shown: str
    stream: Callable[[], None]


COPY = "aws s3 cp --recursive"
_COMMON = "s3a?|gs|gcs|abfss?|az|adl|hdfs|memory|file|https?|s?ftp"
_SCHEME = re.compile(rf"([a-z][a-z0-9+.-]+(?=:/)|{_COMMON}):/*", re.IGNORECASE)
"""How an address begins; one letter before the colon is a drive of Windows, and other words with
a colon and no slash may be folders."""


def is_address(out: str) -> bool:
    """Whether a location is an address of an object store, not a folder."""
    return "://" in out.lstrip(":/")


def check_address(out: str, what: str) -> None:
    """Checks that a local path does not look like a mistyped address."""
    _check_scheme(out, what)
    match = None if is_address(out) else _SCHEME.match(out)
    if match:
        scheme, rest = match[1].lower(), out[match.end() :]
        meant = f"{scheme}://{'/' if scheme == 'file' else ''}{rest}"
        raise UsageError(f"{what} {out}: did you mean {meant}? A folder of that name is ./{out}")


def _check_scheme(out: str, what: str) -> None:
    if out.startswith(":/"):  # such as "$STORE://bucket", where the variable is not set
        raise UsageError(
            f"{what} {out}: it looks like an address, but has no kind before the colon"
        )


def check_local(path: str, what: str) -> None:
    """Checks that a local path is no address, which would create a folder `s3:`."""
    _check_scheme(path, what)
    match = _SCHEME.match(path)
    if not match:
        return
    if match[1].lower() == "file":
        root = "/" if match[0].endswith("/") else ""
        raise UsageError(
            f"{what} {path}: addresses work only with `toolshift run --out`. On this machine it "
            f"is {root}{path[match.end() :]}"
        )
    raise UsageError(
        f"{what} {path}: addresses work only with `toolshift run --out`; here use a file or "
        f"folder of this machine. Copy the run to this machine first (`{COPY} {path} FOLDER`), "
        "and copy results there afterwards"
    )


@contextmanager
def placed(out: str | Path) -> Iterator[RunLocation]:
    """A folder to run in; for an address, a local folder that is uploaded."""
    if not is_address(str(out)):
        yield RunLocation(Path(out), str(out), lambda: None)
        return
    try:
        store: Any = load("toolshift.runs.object_store:Store")(str(out))
    except ImportError as fault:
        raise UsageError(
            f"--out {out} needs packages that are not installed ({fault}): {extra('ray')}"
        ) from None
    if store.passing:
        say(
            f"{out} is in the memory of this process: the run is gone when it ends. Name a folder "
            "or another address to keep it.",
            err=True,
        )
    folder = Path(mkdtemp(prefix="toolshift-"))
    try:
        store.check()
        store.bring(folder)
    except BaseException:  # half of a run is not sent back over the whole one
        shutil.rmtree(folder, ignore_errors=True)
        raise
    try:
        with naming_folder(folder, str(out)):
            yield RunLocation(folder, str(out), lambda: store.stream(folder))
    except BaseException:
        _keep(store, folder)
        raise
    store.finish(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _keep(store: Any, folder: Path) -> None:
    """Uploads what there is of a stopped run; if that fails, the local folder stays."""
    try:
        if any(folder.iterdir()):
            store.stream(folder, now=True)
    except Exception as fault:  # of any store's own kind
        raise UsageError(
            f"{store.url} cannot be written ({type(fault).__name__}: {fault}): what is finished is "
            f"in {folder}"
        ) from None
    shutil.rmtree(folder, ignore_errors=True)
