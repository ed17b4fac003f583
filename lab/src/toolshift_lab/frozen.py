"""Stages that were made earlier, found through a table and never through a key that is made anew.

`studies/stages.toml` stands beside the folder of stages. A key depends on the code, which moves and
changes; a finished stage does not. So it is found by what its study declares, and its folder and
runs are named. The folders themselves are in one archive, `studies/stages.tar.xz`: they are much
alike, and take less than half of the room together. Git ignores where they are unpacked.
"""

from __future__ import annotations

import lzma
import tarfile
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.files import read_bytes, stored

LAST = "episodes.jsonl"
"""The file of a run that is unpacked last: where it is, all others are."""


class Frozen(msgspec.Struct, frozen=True):
    """A finished stage.

    Attributes:
        arm: its arm, by name.
        scale: the preset.
        seed: of the training run.
        recipe: a hash of what the study declared of its training; another recipe is another stage.
        folder: its name in the folder of stages.
        commit: that has its weights, or its measurement where it has none.
        curves_sha256: of its curves as they were written, of which the tree has every tenth step;
            "" where there are none.
        runs: the folders in which it was measured, by pool and a hash of what the study declared
            of the measurement, as "test 1a2b3c4d".
        episodes_sha256: of the episodes in each of these folders, not compressed.
        last_in: the last commit that has the folder, of a stage that is no longer in the tree; ""
            of one that is.
    """

    arm: str
    scale: str
    seed: int
    recipe: str
    folder: str
    commit: str
    curves_sha256: str = ""
    runs: dict[str, str] = {}
    episodes_sha256: dict[str, str] = {}
    last_in: str = ""


class _Table(msgspec.Struct):
    stage: list[Frozen]


def table_of(work: Path) -> Path:
    """The file of the table of a folder of stages: `studies/stages.toml` of `studies/stages`."""
    return work.with_name(f"{work.name}.toml")


def archive_of(work: Path) -> Path:
    """The archive of a folder of stages: `studies/stages.tar.xz` of `studies/stages`."""
    return work.with_name(f"{work.name}.tar.xz")


def unpack(work: Path) -> Path:
    """Unpacks the archive of a folder of stages into it, but for the files that are there.

    A folder that has no archive is left as it is. Several processes may unpack at once: each file
    is moved to its place whole.
    """
    archive = archive_of(work)
    kept = [each for each in frozen_stages(work) if not each.last_in]
    runs = [work / each.folder / run for each in kept for run in each.episodes_sha256]
    if not archive.is_file() or all(stored(run / LAST).exists() for run in runs):
        return work
    work.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=work.parent, prefix=f".{work.name}-") as made:
        try:
            with tarfile.open(archive) as packed:
                packed.extractall(made, filter="data")
        except (tarfile.TarError, lzma.LZMAError, EOFError) as fault:
            raise UsageError(
                f"{archive} is damaged ({fault}): restore it from the repository"
            ) from None
        files = [path for path in Path(made).rglob("*") if path.is_file()]
        for file in sorted(files, key=lambda path: (path.name == LAST, path)):
            target = work / file.relative_to(made)
            target.parent.mkdir(parents=True, exist_ok=True)
            if not stored(target).exists():
                file.replace(target)
    return work


def frozen_stages(work: Path) -> list[Frozen]:
    """The stages that the table lists; none where there is no table."""
    file = table_of(work)
    return list(_read(file, file.stat().st_mtime_ns)) if file.is_file() else []


def find_frozen(work: Path, arm: str, scale: str, seed: int, recipe: str) -> Frozen | None:
    """The finished stage of an arm and seed, if the table has one of this recipe."""
    wanted = (arm, scale, seed, recipe)
    for each in frozen_stages(work):
        if (each.arm, each.scale, each.seed, each.recipe) == wanted:
            return each
    return None


@lru_cache(maxsize=4)
def _read(file: Path, changed: int) -> tuple[Frozen, ...]:
    try:
        return tuple(msgspec.toml.decode(read_bytes(file), type=_Table).stage)
    except (ValueError, RecursionError) as fault:
        raise UsageError(f"{file} is damaged ({fault}): restore it from the repository") from None
