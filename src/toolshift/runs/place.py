"""Where a run goes: a folder of this machine, or an address that fsspec knows."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from toolshift.core.errors import UsageError
from toolshift.core.importing import load


@dataclass(frozen=True)
class Place:
    """A run folder, and what it is called.

    Attributes:
        path: of the folder on this machine.
        shown: as the user named it.
        stream: sends what is new to where it goes; does nothing for a folder.
    """

    path: Path
    shown: str
    stream: Callable[[], None]


def is_address(out: str) -> bool:
    """Whether a place is an address of an object store and no folder."""
    return "://" in out


@contextmanager
def placed(out: str | Path) -> Iterator[Place]:
    """A folder to run in; for an address, one of this machine that is sent there.

    Args:
        out: a folder, or an address such as `s3://bucket/run`.

    Yields:
        The folder. However the block ends, what is finished is in the store afterwards.

    Raises:
        UsageError: where the store cannot be used.
    """
    if not is_address(str(out)):
        yield Place(Path(out), str(out), lambda: None)
        return
    try:
        store: Any = load("toolshift.runs.store:Store")(str(out))
    except ImportError as fault:
        raise UsageError(
            f"--out {out} needs packages that are not installed ({fault}): "
            "pip install 'toolshift[ray]'"
        ) from None
    folder = Path(mkdtemp(prefix="toolshift-"))
    try:
        store.bring(folder)
    except BaseException:  # half of a run is not sent back over the whole one
        shutil.rmtree(folder, ignore_errors=True)
        raise
    try:
        yield Place(folder, str(out), lambda: store.stream(folder))
    except BaseException:
        _keep(store, folder)
        raise
    store.finish(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _keep(store: Any, folder: Path) -> None:
    """Sends what there is of a run that was stopped; where that fails, the folder stays."""
    try:
        if any(folder.iterdir()):
            store.stream(folder, now=True)
    except Exception as fault:  # of any store's own kind
        raise UsageError(
            f"{store.url} cannot be written ({type(fault).__name__}: {fault}): what is finished is "
            f"in {folder}"
        ) from None
    shutil.rmtree(folder, ignore_errors=True)
