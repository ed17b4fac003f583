"""The scenes of an exported package: an endless stream, in which a number always is one scene."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from itertools import count
from pathlib import Path

import msgspec

from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.files import decode, read_bytes
from toolshift.core.scene import Scene
from toolshift.core.tool import JSON
from toolshift.runs.cell import write_stack
from toolshift.runs.suite import Selection, select
from toolshift.shifts.files import know_files
from toolshift.shifts.registry import find_shift
from toolshift.train.scenes import Mix, check, check_scenes, draw
from toolshift.worlds.own import OwnWorld, load
from toolshift.worlds.registry import find_world

FORMAT = 2
WITHOUT_FILES = 1
"""What a package says that takes no file along, so that older versions read it."""
RECORDING = "recording"
FILE = "scenes.json"
LOOKED_AT = 64
"""Scenes that are drawn at an export, to see whether its shifts can be applied to them."""


class Exported(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a package is made of.

    Attributes:
        toolshift: the version that it was exported with.
        versions: of the shifts, by name; other versions make other scenes.
        mix: that scenes are drawn from.
        worlds: files in the package of worlds of the user's own.
        shifts: files in the package of shifts that were made from files.
    """

    format: int
    toolshift: str
    versions: dict[str, int]
    mix: Mix
    worlds: tuple[str, ...] = ()
    shifts: tuple[str, ...] = ()

    def scene(self, number: int) -> Scene:
        """The scene of a number, from 0 up; the same on every machine and in every process."""
        return draw(self.mix, number)

    def stream(self, begin: int = 0) -> Iterator[tuple[int, Scene]]:
        """Scenes without end, each with its number."""
        return ((number, self.scene(number)) for number in count(begin))

    def encoded(self) -> bytes:
        """The content of `scenes.json`."""
        return msgspec.json.format(JSON.encode(self), indent=2) + b"\n"


def export_scenes(asked: Selection, alpha: float) -> Exported:
    """What a selection is as a stream for a trainer."""
    found = select(asked)
    names = {applied.shift for arm in found.arms for applied in arm.shifts}
    own = [world for world in map(find_world, found.worlds) if isinstance(world, OwnWorld)]
    shifts = tuple(write_stack(arm.shifts) for arm in found.arms)
    mix = Mix(
        worlds=found.worlds,
        kinds=found.kinds,
        alpha=alpha if shifts else 0.0,
        shifts=shifts,
        severities=(2,),
        seed=asked.seed,
        size=asked.size,
        pool=asked.pool,
    )
    check(mix)
    check_scenes(mix, LOOKED_AT)
    versions = {name: find_shift(name).version for name in sorted(names)}
    worlds = tuple(_packed(world).name for world in own)
    files = tuple(f"{name}.json" for name in sorted(names) if find_shift(name).file)
    form = FORMAT if worlds or files else WITHOUT_FILES
    return Exported(form, version("toolshift"), versions, mix, worlds, files)


def carried_files(exported: Exported) -> dict[str, bytes]:
    """The files of the user's that a package takes along, by their names in it."""
    files: dict[str, bytes] = {}
    for name in exported.shifts:
        files[name] = find_shift(name.removesuffix(".json")).file or b""
    for world in map(find_world, exported.mix.worlds):
        if isinstance(world, OwnWorld):
            path = _packed(world)
            for file in (path, path.parent / str(world.file.tools[RECORDING])):
                files[file.name] = read_bytes(file)
    return files


def _packed(world: OwnWorld) -> Path:
    """The file of a world that a package can take along, with its recording beside it.

    A package goes to other machines, where the user's servers and modules are not.
    """
    path, recording = world.file.path, str(world.file.tools.get(RECORDING) or "")
    if not recording:
        record = command("world", "record", path.name, "--out", "recording.jsonl")
        raise UsageError(
            f"the tools of {path} are not available where the package is installed: record them "
            f"(`{record}`), name the recording in a copy of the file (`tools: {{recording: "
            "recording.jsonl}`), and export that"
        )
    if Path(recording).name != recording:
        raise UsageError(f"{path}: put its recording, {recording}, into the same folder")
    return path


def read_scenes(folder: Path) -> Exported:
    """Reads `scenes.json` of a package."""
    path = Path(folder) / FILE
    found = decode(read_bytes(path), Exported, str(path))
    if found.format > FORMAT:
        raise UsageError(
            f"{path} was written by a newer ToolShift ({found.toolshift}): install that one"
        )
    know_files(path.parent / name for name in found.shifts)
    for name, then in found.versions.items():
        now = find_shift(name).version
        if now != then:
            raise UsageError(
                f"{path}: {name} was version {then} at the export and is version {now} here, so "
                f"the scenes would be others: install toolshift=={found.toolshift}, or export again"
            )
    for name in found.worlds:
        load(path.parent / name)
    return found
