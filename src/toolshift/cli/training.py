"""What all ways of training are asked for on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from toolshift.cli.data import warn
from toolshift.core.errors import UsageError
from toolshift.core.text import is_count
from toolshift.train.model import with_start
from toolshift.train.settings import NO_EVIDENCE, TrainSettings, first_process, steps_of


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What every way of training may be asked for; None leaves a setting as the preset has it.

    Attributes:
        preset: whose settings are changed.
        out: the folder for the result.
        resume: None, "last", or the step of a checkpoint.
        as_json: print the record of the run.
    """

    preset: str = "small"
    out: Path | None = None
    resume: str | None = None
    as_json: bool = False
    model: str | None = None
    adapter: str | None = None
    full: bool | None = None
    rank: int | None = None
    lr: float | None = None
    steps: int | None = None
    batch: int | None = None
    layout: str | None = None
    checkpointing: bool | None = None
    threads: int | None = None
    seed: int | None = None
    save_every: int | None = None
    save_at: str | None = None
    eval_every: int | None = None
    eval_scenes: int | None = None

    def changes(self, settings: type[msgspec.Struct]) -> dict[str, Any]:
        """The settings that are asked for, completed by what the run starts from."""
        named = set(settings.__struct_fields__) - {"preset", "share"}  # --share is of the mix
        given = {name: getattr(self, name, None) for name in sorted(named)}
        given = {name: value for name, value in given.items() if value is not None}
        if self.save_at is not None:
            given["save_at"] = steps_of(self.save_at)
        return with_start(given)

    def start(self) -> bool | int:
        """Whether to go on from the last checkpoint, or from that of which step."""
        if self.resume is None or self.resume == "last":
            return self.resume == "last"
        if not is_count(self.resume):
            raise UsageError(f"--resume {self.resume}: give the step of a checkpoint, or nothing")
        return int(self.resume)


def warn_of_evidence(settings: TrainSettings) -> None:
    """Says that the result of a run will be no evidence, where that is so."""
    if not settings.evidence and first_process():
        warn(f"Preset {settings.preset}: {NO_EVIDENCE}.")
