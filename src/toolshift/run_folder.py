"""A run on disk: plain files that survive a kill, and can be read without ToolShift.

    manifest.json    what was run: versions, agents, suite, seeds, the hash of the plan
    plan.jsonl       the cells, and those that were not applicable
    episodes.jsonl   one episode a line: steps, end, usage, grade; nothing of a clock
    timings.jsonl    seconds of each episode
    report.json      the report, and report.txt, the same for reading

Episodes are appended whole lines at a time and synced every second, so that a killed run loses
none that it has finished; a torn last line is cut off and that episode is run again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from toolshift.agent import Usage
from toolshift.episode import End, Step
from toolshift.errors import UsageError
from toolshift.grade import Grade
from toolshift.plan import Plan, Planned
from toolshift.suite import Selection
from toolshift.tool import JSON

FORMAT = 1
SYNC_SECONDS = 1.0
T = TypeVar("T")


class Reading(msgspec.Struct, frozen=True):
    """Bytes that an agent read over all its turns, beside those the oracle would have read."""

    agent: int = 0
    oracle: int = 0


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One finished episode."""

    episode: str
    agent: str
    cell: str
    end: End
    grade: Grade
    steps: tuple[Step, ...] = ()
    usage: Usage = Usage()
    reading: Reading = Reading()


class Timing(msgspec.Struct, frozen=True):
    """How long an episode took, in seconds."""

    episode: str
    seconds: float


class Manifest(msgspec.Struct, frozen=True):
    """What a run is; holds no secret and no private path."""

    format: int
    toolshift: str
    python: str
    platform: str
    packages: dict[str, str]
    suite: str
    selection: Selection
    shifts: dict[str, int]
    plan_hash: str
    agents: list[dict[str, Any]]
    started: str


class _Format(msgspec.Struct):
    format: int


class RunFolder:
    """A run folder, open for adding episodes or only for reading."""

    def __init__(self, path: Path, manifest: Manifest, plan: Plan) -> None:
        self.path, self.manifest, self.plan = path, manifest, plan
        self.done: set[str] = set()
        self._episodes: BinaryIO | None = None
        self._timings: BinaryIO | None = None
        self._lock: BinaryIO | None = None
        self._synced = 0.0

    @classmethod
    def start(cls, path: Path, manifest: Manifest, plan: Plan) -> RunFolder:
        """Makes the folder, or takes up the run that is in it.

        Raises:
            UsageError: where another run is in it, it is damaged, in use, or cannot be written.
        """
        path = Path(path)
        try:
            if (path / "manifest.json").exists():
                folder = cls.read(path)
                _same(folder, manifest)
            else:
                folder = cls._make(path, manifest, plan)
            folder._open()
        except OSError as fault:
            raise UsageError(f"{path}: cannot write there ({fault.strerror or fault})") from None
        return folder

    @classmethod
    def read(cls, path: Path) -> RunFolder:
        """Opens a folder for reading.

        Raises:
            UsageError: where there is no run, or it is damaged or of a newer format.
        """
        path = Path(path)
        if not (path / "manifest.json").is_file():
            raise UsageError(f"{path} holds no run: there is no manifest.json in it")
        raw = _bytes(path / "manifest.json")
        form = _decode(raw, _Format, f"{path}/manifest.json").format
        if form > FORMAT:
            raise UsageError(
                f"{path} was written by a newer ToolShift (format {form}, this one reads up to "
                f"{FORMAT}): upgrade to read it"
            )
        manifest = _decode(raw, Manifest, f"{path}/manifest.json")
        rows = tuple(_lines(path / "plan.jsonl", Planned))
        plan = Plan(manifest.selection, manifest.shifts, rows)
        if plan.hash != manifest.plan_hash:
            raise UsageError(
                f"{path}/plan.jsonl does not belong to its manifest: it was cut or changed. "
                "Restore it, or start a new run in another folder."
            )
        return cls(path, manifest, plan)

    @classmethod
    def _make(cls, path: Path, manifest: Manifest, plan: Plan) -> RunFolder:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise UsageError(f"{path} is not empty and holds no run: name another folder")
        path.mkdir(parents=True, exist_ok=True)
        _write(path / "plan.jsonl", b"".join(JSON.encode(row) + b"\n" for row in plan.rows))
        _write(path / "manifest.json", msgspec.json.format(JSON.encode(manifest), indent=2) + b"\n")
        return cls(path, manifest, plan)

    # -- writing -------------------------------------------------------------------------------

    def add(self, records: Sequence[Record], seconds: Sequence[float]) -> None:
        """Appends finished episodes."""
        assert self._episodes
        assert self._timings
        try:
            self._episodes.write(b"".join(JSON.encode(record) + b"\n" for record in records))
            self._timings.write(
                b"".join(
                    JSON.encode(Timing(record.episode, round(took, 6))) + b"\n"
                    for record, took in zip(records, seconds, strict=True)
                )
            )
            self._episodes.flush()
            self._timings.flush()
            if time.monotonic() - self._synced > SYNC_SECONDS:
                self._synced = time.monotonic()
                os.fsync(self._episodes.fileno())
        except OSError as fault:
            raise UsageError(
                f"{self.path}: cannot write ({fault.strerror or fault}). What is there is kept; "
                "make room and run the same command again."
            ) from None
        self.done.update(record.episode for record in records)

    def close(self) -> None:
        """Syncs and closes the files."""
        for file in (self._episodes, self._timings, self._lock):
            if file is not None:
                with suppress(OSError):
                    os.fsync(file.fileno())
                file.close()
        self._episodes = self._timings = self._lock = None

    def settle(self, order: Sequence[str]) -> None:
        """Puts the episodes into the order of the plan, whatever order they ended in."""
        path = self.path / "episodes.jsonl"
        places = {episode: place for place, episode in enumerate(order)}
        found, offset = [], 0
        with path.open("rb") as file:
            for line in file:
                named = _decode(line, _Named, str(path))
                found.append((places.get(named.episode, -1), offset, len(line)))
                offset += len(line)
            if found == sorted(found):
                return
            with _draft(path) as draft:
                for _, start, length in sorted(found):
                    file.seek(start)
                    draft.write(file.read(length))

    def write(self, name: str, content: bytes) -> None:
        """Writes a file of the folder, whole or not at all."""
        try:
            _write(self.path / name, content)
        except OSError as fault:
            raise UsageError(f"{self.path / name}: cannot write ({fault.strerror})") from None

    # -- reading -------------------------------------------------------------------------------

    def records(self) -> Iterator[Record]:
        """The finished episodes, in the order of the file."""
        path = self.path / "episodes.jsonl"
        if path.exists():
            yield from _lines(path, Record, torn=True)

    # -- inside --------------------------------------------------------------------------------

    def _open(self) -> None:
        self._lock = (self.path / ".lock").open("ab")
        _hold(self._lock, self.path)
        for name in ("episodes.jsonl", "timings.jsonl"):
            _cut_torn_line(self.path / name)
        episodes = self.path / "episodes.jsonl"
        self.done = {named.episode for named in _lines(episodes, _Named)}
        self._episodes = episodes.open("ab")
        self._timings = (self.path / "timings.jsonl").open("ab")


class Memory:
    """A run that is kept in memory only; the same to add to as a `RunFolder`."""

    def __init__(self) -> None:
        self.done: set[str] = set()
        self.kept: list[Record] = []

    def add(self, records: Sequence[Record], seconds: Sequence[float]) -> None:
        """Keeps finished episodes."""
        self.kept.extend(records)
        self.done.update(record.episode for record in records)

    def records(self) -> Iterator[Record]:
        """The finished episodes."""
        return iter(self.kept)


class _Named(msgspec.Struct):
    episode: str


def _same(folder: RunFolder, manifest: Manifest) -> None:
    """Checks that the run in a folder is the one that is asked for."""
    old, new = folder.manifest, manifest
    if old.plan_hash != new.plan_hash:
        kept, asked = map(msgspec.structs.asdict, (old.selection, new.selection))
        changed = [name for name in kept if kept[name] != asked[name]]
        what = ", ".join(changed) or "the shifts or worlds themselves have changed"
        raise UsageError(
            f"{folder.path} holds a run of another plan ({what}): resume it with its own "
            "options, or name another folder"
        )
    if old.agents != new.agents:
        names = [", ".join(str(agent["name"]) for agent in m.agents) for m in (old, new)]
        raise UsageError(
            f"{folder.path} holds a run of other agents or agent settings ({names[0]}; now "
            f"{names[1]}): resume it with the same ones, or name another folder"
        )


def _lines(path: Path, type_: type[T], torn: bool = False) -> Iterator[T]:
    if not path.is_file():
        raise UsageError(f"{path} is missing: the run folder is incomplete")
    decoder = msgspec.json.Decoder(type_)
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            if torn and not line.endswith(b"\n"):  # the run was killed here
                return
            try:
                yield decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
                raise UsageError(
                    f"{path}, line {number} is damaged ({fault}): restore it, or delete the line"
                ) from None


def _cut_torn_line(path: Path) -> None:
    with path.open("ab+") as file:
        file.seek(0)
        content = file.read()
        if content and not content.endswith(b"\n"):
            file.truncate(content.rfind(b"\n") + 1)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as fault:
        raise UsageError(f"{path}: cannot read ({fault.strerror or fault})") from None


def _bytes(path: Path) -> bytes:
    with _opened(path) as file:
        return file.read()


def _decode(raw: bytes, type_: type[T], where: str) -> T:
    try:
        return msgspec.json.decode(raw, type=type_)
    except msgspec.MsgspecError as fault:
        raise UsageError(f"{where} is damaged ({fault}): restore it or start a new run") from None


def _write(path: Path, content: bytes) -> None:
    with _draft(path) as draft:
        draft.write(content)


@contextmanager
def _draft(path: Path) -> Iterator[BinaryIO]:
    """A new version of a file, which takes the place of the old one when it is complete."""
    draft = path.with_name(f".{path.name}.new")
    with draft.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _hold(file: BinaryIO, path: Path) -> None:
    """Keeps a second process out; where the system has no such locks, nothing happens."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UsageError(f"{path} is in use by another process: wait for it, or stop it") from None
