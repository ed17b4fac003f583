"""A run folder in an object store, through fsspec: `s3://bucket/run`, `file:///mnt/run`.

Object stores cannot append. So a run is made in a folder of this machine, and what it has finished
is sent every few seconds as one more numbered part; once the run is complete its folder is sent
whole, and the parts are deleted. A stopped run resumes from the store, on any machine. In the store
lie the files of a run folder and, until it is complete, `parts/NAME/NUMBER`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import fsspec
from fsspec.implementations.local import LocalFileSystem

from toolshift.core.errors import UsageError
from toolshift.core.terminal import say
from toolshift.runs.run_folder import AHEAD

SECONDS = 10.0
"""The least number of seconds between two parts."""
GROWING = ("episodes.jsonl", "timings.jsonl", AHEAD)
"""The files that are sent in parts; prefetched episodes go last, after the episodes."""
END_BYTES = 512
PARTS = "parts"
PROBE = ".probe"
TRIES = 3
_LOCAL = (".lock",)
T = TypeVar("T")


class Store:
    """The copy of a run folder in an object store.

    Args:
        url: of the run, as fsspec reads it.

    Raises:
        UsageError: where fsspec does not know such addresses, or a package for them is missing.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            self._files, root = fsspec.core.url_to_fs(url)
        except Exception as fault:  # of any store's own kind
            raise UsageError(f"--out {url}: {fault}") from None
        self.passing = "memory:" in url.lower()
        """Whether its content is lost with this process."""
        self._here = isinstance(self._files, LocalFileSystem)
        self._warned = False
        self._root = str(root).rstrip("/")
        self._sent: dict[str, int] = {}
        self._parts: dict[str, int] = {}
        self._ends: dict[str, tuple[bytes, bytes]] = {}
        self._whole: dict[str, tuple[int, int]] = {}
        self._last = 0.0

    def check(self) -> None:
        """Checks that the store can be written before a long run starts."""
        names = self._asked(self._names, "cannot be read")
        if names and not {"manifest.json", PARTS} & set(names):
            raise UsageError(f"{self.url} is not empty and contains no run: name another address")

        def probe() -> None:
            self._put(b"written to see whether it can be\n", PROBE)
            self._files.rm_file(self._at(PROBE))

        self._asked(probe, "cannot be written")

    def bring(self, folder: Path) -> None:
        """Downloads what the store has into an empty folder."""
        names = self._asked(self._names, "cannot be read")
        self._asked(lambda: self._bring(folder, names), "cannot be read")

    def stream(self, folder: Path, now: bool = False) -> None:
        """Sends what is new as a part, if the last part is some seconds old.

        A store that cannot be reached for a while is no fault: what was not sent goes with the
        next part.
        """
        if not now and time.monotonic() - self._last < SECONDS:
            return
        self._last = time.monotonic()
        try:
            self._stream(folder)
        except Exception as fault:  # of any store's own kind
            if now:
                raise
            if not self._warned:
                self._warned = True
                say(
                    f"{self.url} cannot be written now ({type(fault).__name__}: {fault}). The run "
                    "goes on, and what was not sent is sent later.",
                    err=True,
                )

    def finish(self, folder: Path) -> None:
        """Sends the complete run, and deletes the parts."""

        def send() -> None:
            for path in sorted(folder.iterdir()):
                if path.is_file() and path.name not in (*_LOCAL, AHEAD):
                    self._put(path, path.name)
            if self._files.exists(self._at(PARTS)):
                self._files.rm(self._at(PARTS), recursive=True)

        self._asked(send, f"cannot be written; the run is in {folder}")

    # -- inside --------------------------------------------------------------------------------

    def _names(self) -> list[str]:
        self._files.invalidate_cache()
        if not self._files.exists(self._root):
            return []
        names = [_last(path) for path in self._files.ls(self._root, detail=False)]
        return [name for name in names if name != PROBE]

    def _bring(self, folder: Path, names: list[str]) -> None:
        for name in names:
            if name != PARTS:
                (folder / name).write_bytes(self._files.cat_file(self._at(name)))
                self._know(folder / name)
        for name in GROWING if PARTS in names else ():
            parts = self._of(name)
            if name not in names and parts:
                with (folder / name).open("wb") as file:
                    for part in parts:
                        file.write(self._files.cat_file(part))
                self._know(folder / name)
            self._parts[name] = max((int(_last(part)) for part in parts), default=0)

    def _know(self, path: Path) -> None:
        """Marks a file as already in the store, so that it is not uploaded again."""
        if path.name in GROWING:
            self._sent[path.name] = _size(path)
            self._ends[path.name] = _ends(path, _size(path))
        else:
            self._whole[path.name] = _mark(path)

    def _of(self, name: str) -> list[str]:
        """The parts of a file, in order."""
        place = self._at(PARTS, name)
        return sorted(self._files.ls(place, detail=False)) if self._files.exists(place) else []

    def _stream(self, folder: Path) -> None:
        for path in sorted(folder.iterdir()):
            if path.name in (*GROWING, *_LOCAL) or path.name.endswith(".new") or path.is_dir():
                continue
            mark = _mark(path)
            if self._whole.get(path.name) != mark:
                self._put(path, path.name)
                self._whole[path.name] = mark
        for name in GROWING:
            self._send_part(name, folder / name)

    def _send_part(self, name: str, path: Path) -> None:
        """Sends the whole lines that are new."""
        sent = self._sent.get(name, 0)
        if (sent and _ends(path, sent) != self._ends[name]) or _size(path) < sent:
            for part in self._of(name):  # it was handed over, begun again, or has lost lines
                self._files.rm_file(part)
            self._sent[name] = sent = 0
        if not path.exists():
            return
        with path.open("rb") as file:
            file.seek(sent)
            new = file.read()
        new = new[: new.rfind(b"\n") + 1]
        if new:
            number = self._parts.get(name, 0) + 1
            self._put(new, PARTS, name, f"{number:09}")
            self._parts[name], self._sent[name] = number, sent + len(new)
            self._ends[name] = _ends(path, self._sent[name])

    def _put(self, content: bytes | Path, *names: str) -> None:
        path = self._at(*names)

        def put() -> None:
            if isinstance(content, bytes):
                self._files.pipe_file(path, content)
            else:
                self._files.put_file(str(content), path)

        try:
            put()
        except FileNotFoundError:
            if not self._root.startswith("/") and not self._here:
                raise  # there is no such bucket, and none is made for a slip of the pen
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            put()

    def _at(self, *names: str) -> str:
        return "/".join((self._root, *names))

    def _asked(self, what: Callable[[], T], failed: str) -> T:
        """Calls the store, with retries."""
        for left in reversed(range(TRIES)):
            try:
                return what()
            except UsageError:
                raise
            except Exception as fault:  # of any store's own kind
                if not left:
                    reason = f"{type(fault).__name__}: {fault}"
                    raise UsageError(f"{self.url} {failed} ({reason})") from None
                time.sleep(0.2)
        raise AssertionError("unreachable")


def _ends(path: Path, sent: int) -> tuple[bytes, bytes]:
    """The first line of a file and the end of what was sent, which tell it from any other."""
    if not path.exists():
        return b"", b""
    with path.open("rb") as file:
        head = file.readline()
        file.seek(max(0, sent - END_BYTES))
        return head, file.read(min(sent, END_BYTES))


def _mark(path: Path) -> tuple[int, int]:
    """A fingerprint that changes when a file changes."""
    seen = path.stat()
    return seen.st_size, seen.st_mtime_ns


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _last(path: Any) -> str:
    return str(path).rstrip("/").rpartition("/")[2]
