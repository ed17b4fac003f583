"""A run on disk: plain files that survive a kill, and can be read without ToolShift.

    manifest.json    what was run: versions, agents, suite, seeds, the hash of the plan
    plan.jsonl       the cells, and those that were not applicable
    episodes.jsonl   one episode a line: steps, end, usage, grade; nothing of a clock
    timings.jsonl    seconds of each episode;
                     a finished run may keep these three compressed, with `.gz` or `.xz` at the end
    spent.json       dollars spent, those of dropped episodes included; only where there are any
    judge.jsonl      verdicts of a judge of prose; only where there was one
    batches.jsonl    which requests were sent in which batch; only where they were
    decisions.jsonl  unclear answers that were decided by hand, who did it and when
    sealed.json      the sealed plan of a gate that it was made under; only where there was one
    report.json      the report, and report.txt, the same for reading
    own.json         what is kept of worlds and shifts of the user's own (`runs.own`); only where
                     there are such
    NAME@HASH.json   a copy of a shift that was made from a file; only where there is one
    .ahead.jsonl     what scripted agents have played before the plan is complete (`ahead`)

Episodes are appended whole lines at a time and synced every second, so that a killed run loses
none that it has finished; a torn last line is cut off and that episode is run again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.files import (
    NO_ROOM,
    PACKED,
    cut_torn_line,
    decode,
    draft,
    hold,
    lines,
    pack,
    read_bytes,
    stored,
    write,
    writing,
)
from toolshift.core.message import Usage
from toolshift.core.redaction import stored_without_secrets
from toolshift.core.scene import Applied, Scene, Stack
from toolshift.core.shift import split_version
from toolshift.core.step import Step
from toolshift.core.tool import JSON
from toolshift.episode.episode import End
from toolshift.episode.grade import Grade
from toolshift.runs import own
from toolshift.runs.cell import Cell
from toolshift.runs.design import FIXED, Design
from toolshift.runs.plan import Plan, Planned
from toolshift.runs.suite import SUITES, ResolvedSelection
from toolshift.runs.used_plugins import check_plugins, check_shifts
from toolshift.shifts.facts import know_facts
from toolshift.shifts.files import know_files
from toolshift.shifts.registry import as_stored, file_contents, know_versions

FORMAT = 3
"""Format 1 had other names for two causes; `Grade` reads them under their current names. Before
format 3 the manifest named no design and all episodes were played, and there was no `invented_tool`
and `invented_value`: which other causes these were only the traces tell, so such a run keeps its
causes until `toolshift regrade RUN --write`."""
REPORT_FORMAT = 2
"""Of the names in reports and comparisons."""
VERDICTS = "judge.jsonl"
BATCHES = "batches.jsonl"
DECISIONS = "decisions.jsonl"
SEALED = "sealed.json"
SYNC_SECONDS = 1.0
AHEAD = ".ahead.jsonl"
BEGINNINGS = frozenset((".lock", AHEAD, "plan.jsonl", ".plan.jsonl.new", ".manifest.json.new"))
"""The files that a run may leave if it is killed before its manifest is written."""
EMPTY = (
    "episodes.jsonl",
    "timings.jsonl",
    "manifest.json",
    "plan.jsonl",
    ".lock",
    SEALED,
    own.FILE,
)
"""The files in the folder of a run before its first episode."""


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


EpisodeListener = Callable[[Sequence[Record], Sequence[float]], None]
"""Called with finished episodes and their seconds as they are added to a run."""


class Named(msgspec.Struct, frozen=True):
    """What tells a finished episode from the others."""

    episode: str
    agent: str
    cell: str


class Timing(msgspec.Struct, frozen=True):
    """How long an episode took, in seconds."""

    episode: str
    seconds: float


class Manifest(msgspec.Struct, frozen=True):
    """The manifest of a run; holds no secret and no private path.

    Attributes:
        toolshift: the version that ran it.
        plugins: the files and modules of the user's own that its shifts and worlds come from.
        graded: the version that has graded it again; "" where its first verdicts stand.
        task_ids: for worlds of the user's own, by world and kind, what the file calls its tasks.
        design: which episodes of the plan are played; None in a run from before designs.
    """

    format: int
    toolshift: str
    python: str
    platform: str
    packages: dict[str, str]
    suite: str
    selection: ResolvedSelection
    shifts: dict[str, int]
    plan_hash: str
    agents: list[dict[str, Any]]
    started: str
    plugins: tuple[str, ...] = ()
    graded: str = ""
    task_ids: dict[str, dict[str, list[str]]] = {}
    design: Design | None = None

    def __post_init__(self) -> None:
        """A manifest whose agents have no names is damaged."""
        if not all(isinstance(agent.get("name"), str) for agent in self.agents):
            raise ValueError("an agent has no name")

    @property
    def sequential(self) -> bool:
        """Whether the run leaves out episodes that would not decide anything."""
        return self.design is not None and self.design.sequential

    @property
    def graded_by(self) -> str:
        """The version whose verdicts the run has."""
        return self.graded or self.toolshift


class _Format(msgspec.Struct):
    format: int


class RunFolder:
    """A run folder, open for adding episodes or only for reading."""

    def __init__(self, path: Path, manifest: Manifest, plan: Plan) -> None:
        self.path, self.manifest, self.plan = path, manifest, plan
        self.done: set[str] = set()
        self.told: EpisodeListener | None = None
        self._made = self._made_directory = False
        self._spent: dict[str, float] = {}
        self._episodes: BinaryIO | None = None
        self._timings: BinaryIO | None = None
        self._lock: BinaryIO | None = None
        self._synced = 0.0

    @classmethod
    def start(cls, path: Path, manifest: Manifest, plan: Plan) -> RunFolder:
        """Creates the folder, or resumes the run that is in it."""
        path = Path(path)
        try:
            if (path / "manifest.json").exists():
                folder = cls.read(path)
                _same(folder, manifest)
                folder._go_on_as(manifest.design)
                if not stored(path / own.FILE).exists():  # an older version has made it
                    folder._keep_own()
            else:
                folder = cls._make(path, manifest, plan)
            folder._open()
        except OSError as fault:
            raise UsageError(_cannot_write(path, fault, "cannot write there")) from None
        return folder

    @classmethod
    def read(cls, path: Path) -> RunFolder:
        """Opens a folder for reading; none of the user's code is run, and no server is called."""
        path = Path(path)
        if not (path / "manifest.json").is_file():
            raise UsageError(f"{path} contains no run: {_why_no_run(path)}")
        raw = read_bytes(path / "manifest.json")
        form = decode(raw, _Format, f"{path}/manifest.json").format
        if form > FORMAT:
            raise UsageError(
                f"{path} was written by a newer ToolShift (format {form}, this one reads up to "
                f"{FORMAT}): upgrade to read it"
            )
        manifest = decode(raw, Manifest, f"{path}/manifest.json")
        know_files(path / f"{name}.json" for name in manifest.shifts)
        know_facts(own.OwnParts(path).shifts())
        know_versions(manifest.shifts)
        check_shifts(path, manifest.plugins, manifest.shifts)
        rows = tuple(lines(stored(path / "plan.jsonl"), Planned))
        plan = Plan(manifest.selection, manifest.shifts, rows)
        if plan.hash != manifest.plan_hash:
            raise UsageError(
                f"{path}/plan.jsonl does not belong to its manifest: it was cut or changed. "
                "Restore it, or start a new run in another folder."
            )
        return cls(path, *_in_names_of_today(manifest, rows))

    @classmethod
    def _make(cls, path: Path, manifest: Manifest, plan: Plan) -> RunFolder:
        check_new(path)
        folder = cls(path, manifest, plan)
        folder._made_directory = not path.exists()
        path.mkdir(parents=True, exist_ok=True)
        folder._take()  # two processes may begin in one folder
        write(path / "plan.jsonl", b"".join(JSON.encode(row) + b"\n" for row in plan.rows))
        write(path / "manifest.json", msgspec.json.format(JSON.encode(manifest), indent=2) + b"\n")
        for name, content in file_contents(manifest.shifts).items():
            write(path / f"{name}.json", content)
        folder._keep_own()
        folder._made = True
        return folder

    def _keep_own(self) -> None:
        """Stores what is needed to read the user's own worlds and shifts."""
        content = own.own_file(self.plan)
        if content:
            write(self.path / own.FILE, content)

    # -- writing -------------------------------------------------------------------------------

    def add(self, records: Sequence[Record], seconds: Sequence[float]) -> None:
        """Appends finished episodes."""
        lines = stored_without_secrets(map(JSON.encode, records))
        names = [record.episode for record in records]
        self._append(names, lines, [round(took, 6) for took in seconds])
        if self.told is not None:  # what is kept is what is told
            self.told([msgspec.json.decode(line, type=Record) for line in lines], seconds)

    def add_written(self, records: Sequence[msgspec.Raw], seconds: Sequence[float]) -> None:
        """Appends finished episodes that are JSON already."""
        names = [msgspec.json.decode(record, type=_Named).episode for record in records]
        lines = stored_without_secrets(map(bytes, records))
        self._append(names, lines, seconds)
        if self.told is not None:
            self.told([msgspec.json.decode(line, type=Record) for line in lines], seconds)

    def _append(self, names: list[str], lines: list[bytes], seconds: Sequence[float]) -> None:
        assert self._episodes
        assert self._timings
        try:
            # Timings first: one without its episode is dropped when the run is taken up again.
            self._timings.write(
                b"".join(
                    JSON.encode(Timing(name, took)) + b"\n"
                    for name, took in zip(names, seconds, strict=True)
                )
            )
            self._timings.flush()
            self._episodes.write(b"".join(line + b"\n" for line in lines))
            self._episodes.flush()
            if time.monotonic() - self._synced > SYNC_SECONDS:
                self._synced = time.monotonic()
                os.fsync(self._episodes.fileno())
        except OSError as fault:
            raise UsageError(
                f"{self.path}: cannot write ({fault.strerror or fault}). What was written is "
                "kept. Free some space and run the same command again."
            ) from None
        self.done.update(names)

    def close(self) -> None:
        """Syncs and closes the files."""
        for file in (self._episodes, self._timings, self._lock):
            if file is not None:
                with suppress(OSError):
                    os.fsync(file.fileno())
                file.close()
        self._episodes = self._timings = self._lock = None

    def discard(self) -> None:
        """Deletes what this object has created, if nothing was run."""
        with suppress(OSError):
            ours = {*EMPTY, *(f"{name}.json" for name in self.manifest.shifts)}
            if not self._made or self.done or _names(self.path) - ours:
                return
            for name in ours:
                (self.path / name).unlink(missing_ok=True)
            if self._made_directory:
                self.path.rmdir()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Locks the folder against other processes."""
        with writing(self.path):
            self._take()
        try:
            yield
        finally:
            self.close()

    def settle(self, order: Sequence[str]) -> None:
        """Sorts the episodes into the order of the plan."""
        try:
            self._settle(self.path / "episodes.jsonl", order)
        except OSError as fault:
            raise UsageError(
                f"{self.path}: cannot put the episodes in order ({fault.strerror or fault}). What "
                "was written is kept; free some space and run the same command again."
            ) from None

    def _settle(self, path: Path, order: Sequence[str]) -> None:
        places = {episode: place for place, episode in enumerate(order)}
        spans, offset = [], 0
        with path.open("rb") as file:
            for line in file:
                named = decode(line, _Named, str(path))
                spans.append((places.get(named.episode, -1), offset, len(line)))
                offset += len(line)
            if spans == sorted(spans):
                return
            with draft(path) as new:
                for _, start, length in sorted(spans):
                    file.seek(start)
                    new.write(file.read(length))

    def write(self, name: str, content: bytes) -> None:
        """Writes a file of the folder, whole or not at all."""
        try:
            write(self.path / name, content)
        except OSError as fault:
            raise UsageError(_cannot_write(self.path / name, fault)) from None

    def rewrite(self, records: Sequence[Record]) -> None:
        """Replaces the stored episodes; they stay compressed if they were."""
        kept = stored_without_secrets(map(JSON.encode, records))
        content = b"".join(line + b"\n" for line in kept)
        path = self.episodes
        self.write(path.name, pack(content, path.suffix) if path.suffix in PACKED else content)

    def note_grading(self, version: str, judge: dict[str, Any] | None = None) -> RunFolder:
        """Notes in the manifest who has graded the run again."""
        raw = msgspec.json.decode(read_bytes(self.path / "manifest.json"))
        raw |= {"format": FORMAT, "graded": version}
        if judge is not None:
            raw["agents"] = [{**agent, "judge": judge} for agent in raw["agents"]]
        content = msgspec.json.format(JSON.encode(raw), indent=2)
        self.write("manifest.json", content + b"\n")
        return RunFolder.read(self.path)

    def _go_on_as(self, design: Design | None) -> None:
        """Notes another budget in the manifest, or that all episodes are played from now on."""
        if design == (self.manifest.design or FIXED):
            return
        raw = msgspec.json.decode(read_bytes(self.path / "manifest.json"))
        raw |= {"format": FORMAT, "design": design}
        self.write("manifest.json", msgspec.json.format(JSON.encode(raw), indent=2) + b"\n")
        self.manifest = msgspec.structs.replace(self.manifest, design=design)

    # -- reading -------------------------------------------------------------------------------

    @property
    def episodes(self) -> Path:
        """The file of the finished episodes; compressed where only that is there."""
        return stored(self.path / "episodes.jsonl")

    def task_id(self, cell: Cell) -> str:
        """What the user's own file calls the task of a cell; "" where it has no name."""
        ids = self.manifest.task_ids.get(cell.world, {}).get(cell.kind, [])
        return ids[cell.index] if cell.index < len(ids) else ""

    def records(self) -> Iterator[Record]:
        """The finished episodes, in the order of the file."""
        path, seen = self.episodes, set[tuple[str, str]]()
        for record in lines(path, Record, torn=True) if path.exists() else ():
            self.check(record, seen)
            yield record

    def check(self, record: Record | Named, seen: set[tuple[str, str]]) -> None:
        """Checks that an episode is one of the run, and is no other one again."""
        self.cell(record)
        own = (record.agent, record.cell)
        wrong = "is there twice" if own in seen else ""
        if record.agent not in self._agents:
            wrong = f"is of agent {record.agent}, which manifest.json does not have"
        if wrong:
            said = f"{self.episodes}: episode {record.episode} {wrong}"
            raise UsageError(f"{said}: restore the file, or delete the line")
        seen.add(own)

    @cached_property
    def _agents(self) -> set[str]:
        """The names of the agents."""
        return {str(agent.get("name", "")) for agent in self.manifest.agents}

    def some(self, episodes: Collection[str]) -> Iterator[Record]:
        """The finished episodes of these names; the others are passed over."""
        path = self.episodes
        rows = lines(path, msgspec.Raw, torn=True) if episodes and path.exists() else ()
        for number, line in enumerate(rows, 1):
            where = f"{path}, line {number}"
            if decode(bytes(line), _Named, where).episode in episodes:
                yield decode(bytes(line), Record, where)

    def timings(self) -> dict[str, float]:
        """The seconds of each episode; empty where they were not kept."""
        path = stored(self.path / "timings.jsonl")
        rows = lines(path, Timing, torn=True) if path.exists() else ()
        return {timing.episode: timing.seconds for timing in rows}

    @cached_property
    def cells(self) -> dict[str, Cell]:
        """The cells of the plan by their ids, in its order; an id takes a while to make."""
        return {cell.id: cell for cell in self.plan.cells}

    def cell(self, record: Record | Named) -> Cell:
        """The cell of an episode."""
        if record.cell not in self.cells:
            raise UsageError(
                f"{self.episodes}: episode {record.episode} is of a scene that is not "
                f"in plan.jsonl ({record.cell}): restore the line, or delete it"
            )
        return self.cells[record.cell]

    @cached_property
    def own(self) -> own.OwnParts:
        """What the folder keeps of the user's own worlds and shifts."""
        return own.OwnParts(self.path)

    def scene(self, cell: Cell) -> Scene:
        """The scene of a cell, for reading only."""
        return self.own.scene(cell)

    def require_code(self) -> None:
        """Checks that the plugins needed to replay this run are loaded."""
        manifest = self.manifest
        check_plugins(self.path, manifest.plugins, manifest.shifts, manifest.selection.worlds)

    def spent(self, cost_limit: str) -> float:
        """Dollars that a cost_limit has paid for this run so far."""
        path = self.path / "spent.json"
        if path.exists():
            self._spent = decode(read_bytes(path), dict[str, float], str(path))
        return self._spent.get(cost_limit, 0.0)

    def keep_spent(self, cost_limit: str, dollars: float) -> None:
        """Keeps what a cost_limit has paid, whether or not the episodes are ever finished."""
        self._spent[cost_limit] = round(dollars, 9)
        self.write("spent.json", JSON.encode(self._spent) + b"\n")

    # -- inside --------------------------------------------------------------------------------

    def _open(self) -> None:
        self._take()
        episodes, timings = self.path / "episodes.jsonl", self.path / "timings.jsonl"
        for path in (episodes, timings):
            packed = stored(path)
            if packed != path:  # lines are appended, so it is kept plain from here on
                write(path, read_bytes(packed))
                packed.unlink()
            cut_torn_line(path)
        if not (self.path / SEALED).exists():  # a sealed run is asked once
            _drop_outages(episodes)
        self.done = {named.episode for named in lines(episodes, _Named)}
        self._drop_lone_timings(timings)
        self._episodes = episodes.open("ab")
        self._timings = timings.open("ab")

    def _drop_lone_timings(self, path: Path) -> None:
        """Removes timings without an episode, left when the run was killed between the two."""
        kept = {
            timing.episode: timing for timing in lines(path, Timing) if timing.episode in self.done
        }
        content = b"".join(JSON.encode(timing) + b"\n" for timing in kept.values())
        if len(content) != path.stat().st_size:
            write(path, content)

    def _take(self) -> None:
        if self._lock is None:
            lock = (self.path / ".lock").open("ab")
            hold(lock, self.path)
            self._lock = lock


def _drop_outages(path: Path) -> None:
    """Removes episodes that say nothing since an endpoint failed, so that they are played again.

    Other void ones, such as a question that the simulated user did not understand, are kept.
    """
    with path.open("rb") as file:
        rows = file.readlines()
    kept = [row for row in rows if not _is_outage(row, path)]
    if len(kept) < len(rows):
        write(path, b"".join(kept))


def _is_outage(row: bytes, path: Path) -> bool:
    """Whether a line is of an episode whose endpoint failed."""
    if b'"infrastructure"' not in row:
        return False
    return decode(row, Record, str(path)).grade.cause == "infrastructure"


def _why_no_run(path: Path) -> str:
    """What is at the path where a run was expected, and which path to use instead."""
    within = sorted(manifest.parent for manifest in path.glob("*/manifest.json"))
    if within:
        return f"name one of those in it, such as {' or '.join(map(str, within[-3:]))}"
    if path.is_dir():
        return "there is no manifest.json in it. Name the folder that `toolshift run` has made"
    what = "it is a file" if path.exists() else "there is no such folder"
    return f"{what}. Name the folder that `toolshift run` has made"


def check_new(path: Path) -> None:
    """Checks that a run can begin in a folder."""
    if path.exists() and (not path.is_dir() or _names(path) - BEGINNINGS):
        raise UsageError(f"{path} is not empty and contains no run: name another folder")


class InMemoryStore:
    """A run in memory only; episodes are added to it as to a `RunFolder`."""

    def __init__(self) -> None:
        self.done: set[str] = set()
        self.kept: list[Record] = []
        self.told: EpisodeListener | None = None

    def add(self, records: Sequence[Record], seconds: Sequence[float]) -> None:
        """Keeps finished episodes."""
        self.kept.extend(records)
        self.done.update(record.episode for record in records)
        if self.told is not None:
            self.told(records, seconds)

    def add_written(self, records: Sequence[msgspec.Raw], seconds: Sequence[float]) -> None:
        """Keeps finished episodes that are JSON already."""
        self.add([msgspec.json.decode(record, type=Record) for record in records], seconds)

    def records(self) -> Iterator[Record]:
        """The finished episodes."""
        return iter(self.kept)


class _Named(msgspec.Struct):
    episode: str


def _in_names_of_today(manifest: Manifest, rows: tuple[Planned, ...]) -> tuple[Manifest, Plan]:
    """Renames each shift of a former version in a manifest and its plan to `NAME@VERSION`.

    A name alone in a run folder is the version that the manifest says; in this process it is the
    version of today. A suite without a version is one of before suites had versions: the first.
    """
    names = {name: as_stored(name, version) for name, version in manifest.shifts.items()}
    change = msgspec.structs.replace

    known: dict[Stack, Stack] = {}  # thousands of rows share some hundred stacks

    def stack(shifts: Stack) -> Stack:
        if shifts not in known:
            known[shifts] = tuple(
                Applied(names.get(applied.shift, applied.shift), applied.severity)
                for applied in shifts
            )
        return known[shifts]

    selection = change(
        manifest.selection,
        suite=_suite(manifest.selection.suite),
        arms=tuple(change(arm, shifts=stack(arm.shifts)) for arm in manifest.selection.arms),
        under=stack(manifest.selection.under),
    )
    versions = {names[name]: version for name, version in manifest.shifts.items()}
    renamed = tuple(
        change(r, cell=change(r.cell, shifts=stack(r.cell.shifts), under=stack(r.cell.under)))
        for r in rows
    )
    read = change(manifest, suite=_suite(manifest.suite), selection=selection, shifts=versions)
    return read, Plan(selection, versions, renamed)


def _cannot_write(path: Path, fault: OSError, what: str = "cannot write") -> str:
    """The message for a file of a run that cannot be written; on a full disk, how to resume."""
    go_on = ". What was written is kept. Free some space and run the same command again"
    return f"{path}: {what} ({fault.strerror or fault}){go_on if fault.errno in NO_ROOM else ''}"


def _suite(stored: str) -> str:
    name, changed, rest = stored.partition(" ")
    known = {split_version(known_name)[0] for known_name in SUITES.names()}
    return f"{name}@1{changed}{rest}" if name in known else stored


def _same(folder: RunFolder, manifest: Manifest) -> None:
    """Checks that the run in a folder is the one that is asked for."""
    old, new = folder.manifest, manifest
    if old.plan_hash != new.plan_hash:
        kept, wanted = map(msgspec.structs.asdict, (old.selection, new.selection))
        changed = [name for name in kept if kept[name] != wanted[name]]
        what = ", ".join(changed) or "the shifts or worlds themselves have changed"
        raise UsageError(
            f"{folder.path} contains a run of another plan ({what}): resume it with its own "
            "options, or name another folder"
        )
    if old.agents != new.agents:
        raise UsageError(
            f"{folder.path} contains a run of other agents or agent settings "
            f"({_difference(old.agents, new.agents)}): resume it with the same ones, or name "
            "another folder"
        )
    was, now = old.design or FIXED, new.design or FIXED
    same = msgspec.structs.replace(was, budget="") == msgspec.structs.replace(now, budget="")
    if now.sequential and not same:
        raise UsageError(
            f"{folder.path} contains a run of the {was.name} design{_terms(was)}, and this one "
            f"is {now.name}{_terms(now)}: resume it with its own design, continue with --design "
            "fixed, which runs everything that is left, or name another folder"
        )


def _terms(design: Design) -> str:
    return f" (margin {design.margin:g})" if design.margin else ""


def _difference(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> str:
    names = [[str(agent["name"]) for agent in agents] for agents in (old, new)]
    if names[0] != names[1]:
        return f"{', '.join(names[0])}; now {', '.join(names[1])}"
    changed = [
        f"{before['name']}: {key}"
        for before, after in zip(map(_flat, old), map(_flat, new), strict=True)
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    ]
    return f"changed: {', '.join(changed)}"


def _flat(agent: dict[str, Any]) -> dict[str, Any]:
    return {**agent, **agent.get("settings", {}), "settings": None}


def _names(path: Path) -> set[str]:
    return {file.name for file in path.iterdir()}
