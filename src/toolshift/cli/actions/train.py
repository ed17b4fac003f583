"""`toolshift train sft` and `toolshift train paft`."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from toolshift.cli.actions.data import MixOptions, warn
from toolshift.core.errors import UsageError
from toolshift.core.terminal import print_json, progress
from toolshift.lm.checkpoint import training_record
from toolshift.train.data import make_rows, shifted_of
from toolshift.train.model import find_base, require_training, with_start
from toolshift.train.presets import EVAL_EVERY, TRAJECTORIES, Settings, preset
from toolshift.train.rows import read_rows
from toolshift.train.scenes import Mix, check_share
from toolshift.train.settings import TrainSettings, check_rank, first_process, steps_of

if TYPE_CHECKING:
    from toolshift.train.callbacks import Evaluate
    from toolshift.train.model import Base


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
        """The settings that are asked for, completed by what the run starts from.

        Args:
            settings: those of the method; what has another name there is no setting.

        Raises:
            UsageError: for steps that cannot be read, and where no such adapter ships.
        """
        named = set(settings.__struct_fields__) - {"preset", "share"}  # --share is of the mix
        given = {name: getattr(self, name, None) for name in sorted(named)}
        given = {name: value for name, value in given.items() if value is not None}
        if self.save_at is not None:
            given["save_at"] = steps_of(self.save_at)
        return with_start(given)

    def start(self) -> bool | int:
        """Whether to go on from the last checkpoint, or from that of which step.

        Raises:
            UsageError: for what is no step.
        """
        if self.resume is None or self.resume == "last":
            return self.resume == "last"
        if not self.resume.isdigit():
            raise UsageError(f"--resume {self.resume}: give the step of a checkpoint, or nothing")
        return int(self.resume)


@dataclass(frozen=True, kw_only=True)
class TrainOptions(RunOptions):
    """What supervised training is asked for.

    Attributes:
        show_mask: print a row with what is learned, and stop.
    """

    show_mask: bool = False
    epochs: int | None = None
    accumulate: int | None = None
    max_tokens: int | None = None

    def settings(self) -> Settings:
        """The preset, changed by what is asked for, and checked.

        Raises:
            UsageError: for a setting out of range, and where the result has no place to go.
        """
        if self.out is None and not self.show_mask:
            raise UsageError("give --out, the folder for the result")
        settings = preset(self.preset, **self.changes(Settings))
        check_rank(self.rank, self.adapter, settings.full)
        return settings


@dataclass(frozen=True, kw_only=True)
class SftOptions(TrainOptions):
    """What `toolshift train sft` is asked for."""

    data: Path


@dataclass(frozen=True, kw_only=True)
class PaftOptions(MixOptions, TrainOptions):
    """What `toolshift train paft` is asked for: training, on trajectories of a mix.

    Attributes:
        count: trajectories; 0 for as many as the preset takes.
    """

    count: int = 0


def sft_command(options: SftOptions) -> None:
    """Trains on the rows of a file."""
    require_training()
    settings, data = options.settings(), options.data
    rows = read_rows(data)
    how = {"file": data.name, "sha256": hashlib.sha256(data.read_bytes()).hexdigest()}
    _train(rows, settings, options, how, None)


def paft_command(options: PaftOptions) -> None:
    """Trains on the oracle's trajectories, a share of them in shifted scenes."""
    settings, mix = options.settings(), options.mix()
    find_base(settings)  # before the trajectories are made
    amount = options.count or TRAJECTORIES[settings.preset]
    with progress("trajectories") as watch:
        rows = make_rows(mix, amount, watch)
    warn(check_share(shifted_of(rows), mix, amount))
    _train(rows, settings, options, {"mix": msgspec.to_builtins(mix), "count": amount}, mix)


def _train(
    rows: Sequence[Mapping[str, Any]],
    settings: Settings,
    options: TrainOptions,
    data: Mapping[str, Any],
    mix: Mix | None,
) -> None:
    if options.show_mask:
        click.echo(_masked(_telling(rows), settings))
        return
    from toolshift.train.sft import train

    warn_of_evidence(settings)
    settings, evaluate = _evaluation(rows, settings, options.eval_every, mix)
    assert options.out is not None  # or its settings are refused
    with progress("rows tokenized") as watch:
        out = train(
            rows,
            settings,
            options.out,
            resume=options.start(),
            data=data,
            evaluate=evaluate,
            watch=watch,
        )
    if first_process():
        _say_done(out, settings, options.as_json)


def warn_of_evidence(settings: TrainSettings) -> None:
    """Says that the result of a run will be no evidence, where that is so."""
    from toolshift.train.record import NO_EVIDENCE

    if not settings.evidence and first_process():
        warn(f"Preset {settings.preset}: {NO_EVIDENCE}.")


def _evaluation(
    rows: Sequence[Mapping[str, Any]], settings: Settings, asked: int | None, mix: Mix | None
) -> tuple[Settings, Callable[[Base], Evaluate] | None]:
    """How often the live model is evaluated, and by what.

    Raises:
        UsageError: where an evaluation was asked for that the rows do not allow.
    """
    every = EVAL_EVERY[settings.preset] if asked is None else asked
    settings = msgspec.structs.replace(settings, eval_every=every)
    if not every:
        return settings, None
    from toolshift.train.evaluation import evaluation

    try:
        return settings, evaluation(rows, settings, mix)
    except UsageError as fault:
        if asked is not None:
            raise
        warn(f"No evaluation on the way: {fault}")
        return msgspec.structs.replace(settings, eval_every=0), None


def _telling(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The first row with a message that is context only, or else the first."""
    masked = (row for row in rows if any(m.get("weight") == 0 for m in row["messages"]))
    return next(masked, rows[0])


def _masked(row: Mapping[str, Any], settings: Settings) -> str:
    """One row as the model reads it; what is learned is green and in brackets."""
    from toolshift.train.batches import Encoder, show_mask

    base = find_base(settings)
    encoder = Encoder(base.tokenizer, base.template, settings.layout, base.tool_role)
    marks = ("\x1b[32m[[", "]]\x1b[0m") if sys.stdout.isatty() else ("[[", "]]")
    example = encoder.encode(row)
    share = int((example.weights != 0).sum())
    return (
        f"{show_mask(example, base.tokenizer, marks)}\n"
        f"{share} of {len(example.tokens)} tokens are learned; they stand between [[ and ]]."
    )


def _say_done(out: Path, settings: Settings, as_json: bool) -> None:
    record = training_record(out)
    if as_json:
        print_json(record)
        return
    what = "model" if settings.full else "adapter"
    size = sum(file.stat().st_size for file in out.glob("*.safetensors"))
    click.echo(
        f"{what} in {out} ({size / 1e6:.1f} MB): {record['steps']} steps, {record['tokens']:,} "
        f"tokens, {record['wall_seconds']:.0f} s, mean loss of the last 10 steps "
        f"{record['last_loss']:.3f}"
    )
