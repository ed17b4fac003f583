"""A replay bundle: the failures of an agent in one archive that works on any machine.

The archive is a run folder of its own, with only the cells that failed: any command that reads runs
reads it once it is unpacked. Beside it stand the shifts that were read from files, the files of the
user's own worlds and plugins, and FAILURES.md with the command that replays each. The same failures
give the same bytes.
"""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from toolshift.core import plugins
from toolshift.core.command_line import command
from toolshift.core.errors import UsageError, naming_folder
from toolshift.core.files import PACKED, decode, save
from toolshift.core.text import one_line
from toolshift.core.tool import JSON
from toolshift.measure.two_runs import by_cell
from toolshift.runs import own
from toolshift.runs.cell import Cell
from toolshift.runs.plan import Plan, Planned
from toolshift.runs.run_folder import Record, RunFolder
from toolshift.shifts.registry import file_contents
from toolshift.worlds.names import BFCL, OWN, TAU2, is_file
from toolshift.worlds.own import file_of

FORMAT = 1
INDEX, PAGE, FILES = "failures.json", "FAILURES.md", "files/"
MAX_BYTES = 2**30
"""The largest size of an unpacked archive, in bytes."""
_SIBLINGS = (".py", ".json", ".jsonl", ".yaml", ".yml", ".toml")
_CODE = (".py", ".yaml", ".yml")
"""Files that may run code when a bundle is read: a world's file may start programs."""
_STAMP = (1980, 1, 1, 0, 0, 0)


class Failure(msgspec.Struct, frozen=True):
    """One episode of a bundle, and how to replay it.

    Attributes:
        cell: the scene: world, kind, index, seed, pool, size, shifts, trial and the task's hash.
        lost: the baseline passed it.
        command: what plays it again.
    """

    episode: str
    agent: str
    cell: Cell
    cause: str
    lost: bool
    command: str


class Index(msgspec.Struct, frozen=True):
    """What a bundle holds.

    Attributes:
        toolshift: the version that ran the episodes.
        failures: those that were lost first.
        worlds: files of the user's own worlds, and `plugins` those of plugins, as they lie here.
        modules: plugins that are installed by name and do not travel.
    """

    format: int
    toolshift: str
    failures: list[Failure]
    worlds: list[str] = []
    plugins: list[str] = []
    modules: list[str] = []


def check_bundle_name(path: Path) -> None:
    """Checks the name of an archive before anything is run."""
    if path.suffix != ".zip":
        raise UsageError(
            f"--bundle {path}: this is an archive, so name it {path.stem or 'failed'}.zip"
        )


def passed_in(run: RunFolder, agent: str) -> frozenset[str]:
    """The ids of the cells that an agent passed."""
    return frozenset(cell for cell, record in by_cell(run, agent).items() if record.grade.passed)


def make_bundle(
    run: RunFolder, agent: str, path: Path, passed_before: frozenset[str] = frozenset()
) -> int:
    """Packs the failures of an agent; void episodes are no failures and are left out."""
    failed = [
        record
        for record in run.records()
        if record.agent == agent and not record.grade.passed and not record.grade.void
    ]
    failed.sort(key=lambda record: record.cell not in passed_before)  # stable: else in run order
    content = _contents(run, agent, failed, path.name, passed_before)
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, raw in content.items():
            archive.writestr(zipfile.ZipInfo(name, _STAMP), raw, zipfile.ZIP_DEFLATED)
    save(path, packed.getvalue(), make_folder=True)
    return len(failed)


def _contents(
    run: RunFolder, agent: str, failed: list[Record], name: str, passed_before: frozenset[str]
) -> dict[str, bytes]:
    """The files of an archive."""
    cells = [run.cell(record) for record in failed]
    used = {applied.shift for cell in cells for applied in cell.shifts}
    versions = {shift: number for shift, number in run.plan.versions.items() if shift in used}
    plan = Plan(run.plan.selection, versions, tuple(map(Planned, cells)))
    manifest = msgspec.structs.replace(
        run.manifest,
        shifts=versions,
        plan_hash=plan.hash,
        agents=[entry for entry in run.manifest.agents if entry["name"] == agent],
    )
    worlds, named = _world_files(run, {cell.world for cell in cells}), _plugin_files()
    code = _with_siblings(named)
    index = Index(
        format=FORMAT,
        toolshift=run.manifest.toolshift,
        failures=[
            Failure(
                record.episode,
                record.agent,
                cell,
                record.grade.cause,
                record.cell in passed_before,
                command("replay", name, record.episode, travels=True),
            )
            for record, cell in zip(failed, cells, strict=True)
        ],
        worlds=[entry for entry in worlds if is_file(entry)],
        plugins=list(named),
        modules=[entry for entry in plugins.named() if not entry.endswith(".py")],
    )
    return {
        PAGE: _page(index, name, agent).encode(),
        INDEX: msgspec.json.format(JSON.encode(index), indent=1) + b"\n",
        "manifest.json": msgspec.json.format(JSON.encode(manifest), indent=2) + b"\n",
        "plan.jsonl": b"".join(JSON.encode(row) + b"\n" for row in plan.rows),
        "episodes.jsonl": b"".join(JSON.encode(record) + b"\n" for record in failed),
        **_own_of(run),
        **{f"{shift}.json": raw for shift, raw in file_contents(versions).items()},
        **worlds,
        **code,
    }


def _world_files(run: RunFolder, worlds: set[str]) -> dict[str, bytes]:
    """The files of own worlds, and the files that these name; none is opened as a world."""
    contents: dict[str, bytes] = {}
    for name in sorted(world for world in worlds if "@" in world):
        kept = run.own.find(name)
        file = file_of(kept.called, kept.file) if kept else None
        if kept is None or file is None:
            raise UsageError(
                f"--bundle: the file of world {name} is not known and not in this folder, but a "
                f"replay needs it: change to its folder, or name it, as in {OWN}=my_tasks.yaml "
                "toolshift gate ..."
            )
        folder = f"{FILES}{kept.called}/"
        contents |= {f"{folder}{path.name}": path.read_bytes() for path in (file, *_named_in(file))}
    return contents


def _own_of(run: RunFolder) -> dict[str, bytes]:
    """What the run keeps of the user's own worlds and shifts, so that the bundle can be read."""
    kept = run.own.kept
    return {own.FILE: JSON.encode(kept[0][1]) + b"\n"} if kept else {}


def _plugin_files() -> dict[str, Path]:
    """Plugins that are files, each in a folder of its own: two may have one name."""
    files = [Path(plugin) for plugin in plugins.named() if plugin.endswith(".py")]
    return {f"{FILES}plugin-{number}/{file.name}": file for number, file in enumerate(files)}


def _with_siblings(files: dict[str, Path]) -> dict[str, bytes]:
    """The files, and those beside them that they name."""
    return {
        f"{name.rpartition('/')[0]}/{path.name}": path.read_bytes()
        for name, file in files.items()
        for path in (file, *_named_in(file))
    }


def _named_in(path: Path) -> list[Path]:
    """The files beside a file that it names, and those that these name."""
    beside = {
        sibling
        for sibling in path.parent.iterdir()
        if sibling.suffix in _SIBLINGS and sibling.is_file()
    } - {path}
    named: list[Path] = []
    open_ = [path]
    while open_:
        text = open_.pop().read_text(encoding="utf-8", errors="replace")
        for sibling in sorted(beside):
            word = sibling.stem if sibling.suffix == ".py" else sibling.name
            if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text):
                beside.discard(sibling)
                named.append(sibling)
                open_ += [sibling] if sibling.suffix in _CODE else []
    return named


def _page(index: Index, name: str, agent: str) -> str:
    """The text of FAILURES.md."""
    lines = [
        f"# {len(index.failures)} failures of {one_line(agent)}",
        "",
        f"Made by ToolShift {index.toolshift}. Each command creates the scene again, repeats the",
        "recorded calls in it, and shows whether the failure is the same; no model is called.",
        "With `--agent` your agent runs in the scene instead.",
        "",
        f"    {command('replay', name)}",
    ]
    if index.worlds or index.plugins:
        lines.append("\nIt contains code: read `files/`, then add `--trust`.")
    if index.modules:
        lines.append(f"\nIt needs these modules installed: {', '.join(index.modules)}.")
    lines += [
        "",
        "| scene | shifts | trial | cause | lost | command |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.cell.lineage} | {row.cell.stack or 'clean'} | {row.cell.trial} | {row.cause} "
        f"| {'yes' if row.lost else ''} | `{row.command}` |"
        for row in index.failures
    ]
    return "\n".join(lines) + "\n"


# -- opened again ----------------------------------------------------------------------------------


@contextmanager
def opened_bundle(path: Path, trust: bool = False) -> Iterator[RunFolder]:
    """Opens a bundle, or a run folder, for reading."""
    if path.is_dir():
        yield _read(path, trust)
        return
    with (
        TemporaryDirectory(prefix="toolshift-bundle-") as folder,
        naming_folder(Path(folder), str(path)),
    ):
        _unpack(path, Path(folder))
        yield _read(Path(folder), trust)


def _read(folder: Path, trust: bool) -> RunFolder:
    """The run of an unpacked bundle, or any run folder, which is taken as the reader's own."""
    if not (folder / INDEX).is_file():
        return RunFolder.read(folder)
    index = _known(folder, trust)
    run = RunFolder.read(folder)
    foreign = sorted({cell.world for cell in run.plan.cells if _is_code(cell.world)})
    if foreign and not trust:
        raise UsageError(
            f"this bundle has worlds that are code ({', '.join(foreign)}), and a replay runs "
            "this code: read it, then add --trust"
        )
    _check_whole(run, index)
    return run


def _check_whole(run: RunFolder, index: Index) -> None:
    """Checks that a bundle has all the episodes that it lists."""
    there = {record.episode for record in run.records()}
    listed = {failure.episode for failure in index.failures}
    again = "get the bundle again, or make it again with `toolshift gate --bundle`"
    if missing := len(listed - there):
        raise UsageError(
            f"{run.path}: {missing} of the {len(listed)} episodes that {INDEX} lists are missing "
            f"in {run.episodes.name}: {again}"
        )
    if more := len(there - listed):
        raise UsageError(
            f"{run.path}: {more} of the {len(there)} episodes in {run.episodes.name} are not "
            f"listed in {INDEX}: {again}"
        )


def _is_code(world: str) -> bool:
    """Whether the name of a world is a file or a module, whose code runs when it is loaded."""
    named = world.startswith((BFCL, TAU2))
    return not named and (is_file(world) or any(mark in world for mark in ":@/\\"))


def _unpack(path: Path, folder: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                raise UsageError(f"{path} would unpack to more than {MAX_BYTES:,} bytes")
            if packed := [name for name in archive.namelist() if name.endswith(PACKED)]:
                raise UsageError(
                    f"{path} contains {packed[0]}: a bundle must not contain packed files, which "
                    "can hide their size"
                )
            archive.extractall(folder)  # takes no absolute path and no "..": it removes them
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such bundle") from None
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError) as fault:
        raise UsageError(f"{path} is not a replay bundle, or it is damaged ({fault})") from None
    if not (folder / INDEX).is_file():
        raise UsageError(f"{path} is not a replay bundle: there is no {INDEX} in it")


def _known(folder: Path, trust: bool) -> Index:
    """Registers the worlds and plugins of a bundle; returns its index."""
    index = decode((folder / INDEX).read_bytes(), Index, INDEX)
    if index.format != FORMAT:
        raise UsageError(f"the bundle has format {index.format}, and this ToolShift reads {FORMAT}")
    code = [*index.worlds, *index.plugins]
    if code and not trust:
        raise UsageError(
            f"this bundle contains code of its author ({', '.join(code)}), and a replay runs "
            "this code: read it, then add --trust"
        )
    for name in index.plugins:
        plugins.name(str(_inside(folder, name)))
    own = [str(_inside(folder, name)) for name in index.worlds]
    known = [name for name in os.environ.get(OWN, "").split(os.pathsep) if name]
    if own:
        os.environ[OWN] = os.pathsep.join(dict.fromkeys([*own, *known]))
    return index


def _inside(folder: Path, name: str) -> Path:
    with suppress(OSError, ValueError):  # a name that no file can have
        path = (folder / name).resolve()
        if path.is_relative_to(folder.resolve()) and path.is_file():
            return path
    raise UsageError(f"{INDEX} names {one_line(name)[:200]}, which is not in the bundle")
