"""The files of a run folder: written whole or not at all, read line by line, by one process."""

from __future__ import annotations

import errno
import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

import msgspec

from toolshift.core.errors import InUse, UsageError

try:
    import lzma
except ImportError:  # a Python that was built without it: everything but `.xz` works
    lzma = None  # type: ignore[assignment]

T = TypeVar("T")
PACKED = (".gz", ".xz")
"""What the name of a compressed file ends in."""
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, *([lzma.LZMAError] if lzma else []))
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says where a file finds no room: a full disk, a quota, a limit."""


def lines(path: Path, type_: type[T], torn: bool = False) -> Iterator[T]:
    """The lines of a file, decoded; `torn` leaves an unfinished last one out."""
    if not path.is_file():
        raise UsageError(f"{path} is missing: the run folder is incomplete")
    decoder = msgspec.json.Decoder(type_)
    with opened(path) as file, sound(path):
        for number, line in enumerate(file, 1):
            if torn and not line.endswith(b"\n"):  # the run was killed here
                return
            try:
                yield decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
                raise UsageError(
                    f"{path}, line {number} is damaged ({fault}): restore it, or delete the line"
                ) from None


def stored(path: Path) -> Path:
    """Where a file is kept: at `path`, or compressed beside it as `path` with `.gz` or `.xz`."""
    if path.exists():
        return path
    packed = (path.with_name(f"{path.name}{suffix}") for suffix in PACKED)
    return next((file for file in packed if file.is_file()), path)


def pack(content: bytes, suffix: str = ".gz") -> bytes:
    """Compresses, without a time or a name in it, so that the same content gives the same bytes."""
    if suffix == ".xz":
        return lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)
    return gzip.compress(content, 9, mtime=0)


@contextmanager
def sound(path: Path) -> Iterator[None]:
    """Names the file in the error when compressed content is cut off."""
    try:
        yield
    except _DAMAGED as fault:
        raise UsageError(f"{path} is damaged ({fault}): restore it") from None


def cut_torn_line(path: Path) -> None:
    """Cuts off a last line that was never finished; makes the file where there is none."""
    with path.open("ab+") as file:
        file.seek(0)
        content = file.read()
        if content and not content.endswith(b"\n"):
            file.truncate(content.rfind(b"\n") + 1)


def opened(path: Path) -> BinaryIO:
    """Opens a file for reading; one whose name is of a compressed file is read as what it holds."""
    try:
        if path.suffix == ".xz":
            if not lzma:
                raise UsageError(f"{path}: this Python was built without lzma; install one with it")
            return cast(BinaryIO, lzma.open(path))
        return cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb")
    except OSError as fault:
        raise UsageError(f"{path}: cannot read ({fault.strerror or fault})") from None


def read_bytes(path: Path) -> bytes:
    """The content of a file."""
    with opened(path) as file, sound(path):
        return file.read()


def read_given(path: Path) -> bytes:
    """The content of a file that a user or a document names.

    A name that no file can have (half a character, a zero byte) is an `OSError` as well.
    """
    try:
        return path.read_bytes()
    except ValueError as odd:
        raise OSError(errno.EINVAL, f"no file has such a name: {odd}") from None


def decode(raw: bytes, type_: type[T], where: str) -> T:
    """Reads JSON."""
    try:
        return msgspec.json.decode(raw, type=type_)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise UsageError(f"{where} is damaged ({fault}): restore it or start a new run") from None


def write(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all."""
    with draft(path) as file:
        file.write(content)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Names the file in the error when the system does not, as for a full disk."""
    try:
        yield
    except OSError as fault:
        if fault.filename is None:
            fault.filename = str(path)
        raise


@contextmanager
def writing(place: Path | str) -> Iterator[None]:
    """Says which place that the user named cannot be written to."""
    try:
        yield
    except OSError as fault:
        raise UsageError(f"{place}: cannot write there ({fault.strerror or fault})") from None


def save(path: Path, content: bytes, make_folder: bool = False) -> None:
    """Writes a file that the user named, whole or not at all."""
    with writing(path):
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        write(path, content)


def check_writable(path: Path, option: str) -> None:
    """Checks before long work that the result can be written; changes nothing."""
    if path.is_dir():
        raise UsageError(f"{option} {path} is a folder: name a file in it")
    new = path.with_name(f".{path.name}.new")
    with writing(f"{option} {path}"):
        new.open("wb").close()
        new.unlink()


OF_THE_SYSTEM = (Path("/dev"), Path("/dev/fd"))
"""Where streams of this process have names; below `/dev/shm` lie files like any other."""


@contextmanager
def draft(path: Path) -> Iterator[BinaryIO]:
    """A new version of a file, which takes the place of the old one when it is complete.

    A link stays, and what it leads to is replaced. Pipes and devices are written to.
    """
    special = path.exists() and not (path.is_file() or path.is_dir())
    if special or path.parent in OF_THE_SYSTEM or path.parts[:2] == ("/", "proc"):
        with naming(path), path.open("ab") as file:
            yield file
        return
    path = Path(os.path.realpath(path)) if path.is_symlink() else path
    new = path.with_name(f".{path.name}.new")
    try:
        with naming(path), new.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def hold(file: BinaryIO, path: Path) -> None:
    """Locks the file against a second process; does nothing on systems without such locks."""
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InUse(f"{path} is in use by another process: wait for it, or stop it") from None
