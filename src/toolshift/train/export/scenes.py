"""The scenes of an exported package: an endless stream, in which a number always is one scene."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from itertools import count
from pathlib import Path

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.files import decode, read_bytes
from toolshift.core.scene import Scene
from toolshift.core.tool import JSON
from toolshift.runs.cell import write_stack
from toolshift.runs.suite import Selection, select
from toolshift.shifts.registry import find_shift
from toolshift.train.scenes import Mix, check, check_scenes, draw

FORMAT = 1
FILE = "scenes.json"
LOOKED_AT = 64
"""Scenes that are drawn at an export, to see whether its shifts can be applied to them."""


class Exported(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a package is made of.

    Attributes:
        toolshift: the version that it was exported with.
        versions: of the shifts, by name; other versions make other scenes.
        mix: that scenes are drawn from.
    """

    format: int
    toolshift: str
    versions: dict[str, int]
    mix: Mix

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
    _check_files(found.worlds, names)
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
    return Exported(FORMAT, version("toolshift"), versions, mix)


def _check_files(worlds: Iterable[str], shifts: Iterable[str]) -> None:
    """A package goes to other machines, where a file of the user's is not."""
    files = [name for name in worlds if "@" in name]
    files += [name for name in shifts if find_shift(name).file]
    if files:
        raise UsageError(
            f"{', '.join(files)} is made from a file, which would not be where the package is "
            "installed: put it into a package of yours with an entry point "
            "(docs/add-a-world.md, docs/add-a-shift.md), or leave it out"
        )


def read_scenes(folder: Path) -> Exported:
    """Reads `scenes.json` of a package."""
    path = Path(folder) / FILE
    found = decode(read_bytes(path), Exported, str(path))
    if found.format > FORMAT:
        raise UsageError(
            f"{path} was written by a newer ToolShift ({found.toolshift}): install that one"
        )
    for name, then in found.versions.items():
        now = find_shift(name).version
        if now != then:
            raise UsageError(
                f"{path}: {name} was version {then} at the export and is version {now} here, so "
                f"the scenes would be others: install toolshift=={found.toolshift}, or export again"
            )
    return found
