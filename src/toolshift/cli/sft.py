"""`toolshift train sft`, and what all supervised training has in common."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import msgspec

from toolshift.cli.data import warn
from toolshift.cli.options import machine
from toolshift.cli.parameters import option, options_struct
from toolshift.cli.sectioned import Sectioned
from toolshift.cli.training import PRESET, RunOptions, warn_of_evidence, written_for
from toolshift.core.errors import UsageError
from toolshift.core.importing import load
from toolshift.core.terminal import print_json, progress, say
from toolshift.lm.checkpoint import training_record
from toolshift.train.model import find_base, require_training
from toolshift.train.presets import EVAL_EVERY, Settings, preset
from toolshift.train.rows import read_rows
from toolshift.train.scenes import Mix
from toolshift.train.settings import SFT, check_rank, first_process

if TYPE_CHECKING:
    from toolshift.train.callbacks import Evaluate
    from toolshift.train.model import Base


@dataclass(frozen=True, kw_only=True)
class TrainOptions(RunOptions):
    """What supervised training is asked for.

    Attributes:
        show_mask: print a row with what is learned, and stop.
    """

    show_mask: Annotated[
        bool, option(help="Print a row with the learned text marked, and stop.")
    ] = False
    epochs: Annotated[int | None, option(help=f"Passes over the rows. {PRESET}")] = None
    steps: Annotated[int | None, option(help=f"Optimizer steps, instead of --epochs. {PRESET}")] = (
        None
    )
    accumulate: Annotated[int | None, option(help=f"Forward passes in one step. {PRESET}")] = None
    max_tokens: Annotated[int | None, option(help=f"Leave longer rows out. {PRESET}")] = None
    eval_every: Annotated[
        int | None,
        option(
            help="Steps between evaluations on the dev pool; 0 turns them off. Default: 100 at "
            "`small`, else 0.",
        ),
    ] = None

    def settings(self) -> Settings:
        """The preset, changed by what is asked for, and checked."""
        if self.out is None and not self.show_mask:
            raise UsageError("give --out, the folder for the result")
        settings = preset(self.preset, **self.changes(Settings))
        check_rank(self.rank, self.adapter, settings.full)
        return settings


@dataclass(frozen=True, kw_only=True)
class SftOptions(TrainOptions):
    """What `toolshift train sft` is asked for."""

    data: Annotated[
        Path,
        option(
            help="Rows with the columns messages and tools (`toolshift data`), or of another "
            "format that `toolshift augment` reads.",
        ),
    ]


def sft_command(options: SftOptions) -> None:
    """Trains on the rows of a file."""
    require_training()
    settings, data = options.settings(), options.data
    rows = read_rows(data)
    how = {"file": data.name, "sha256": hashlib.sha256(data.read_bytes()).hexdigest()}
    fine_tune(rows, settings, options, how, None)


def fine_tune(
    rows: Sequence[Mapping[str, Any]],
    settings: Settings,
    options: TrainOptions,
    data: Mapping[str, Any],
    mix: Mix | None,
) -> None:
    """Trains on rows, or shows what would be learned of one."""
    if options.show_mask:
        say(_masked(_telling(rows), settings))
        return
    warn_of_evidence(settings)
    settings, evaluate = _evaluation(rows, settings, options.eval_every, mix)
    assert options.out is not None  # or its settings are refused
    with progress("rows tokenized") as watch:
        out = load(SFT)(
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


def _evaluation(
    rows: Sequence[Mapping[str, Any]], settings: Settings, wanted: int | None, mix: Mix | None
) -> tuple[Settings, Callable[[Base], Evaluate] | None]:
    """How often the live model is evaluated, and by what."""
    every = EVAL_EVERY[settings.preset] if wanted is None else wanted
    settings = msgspec.structs.replace(settings, eval_every=every)
    if not every:
        return settings, None
    try:
        return settings, load("toolshift.train.evaluation:evaluation")(rows, settings, mix)
    except UsageError as fault:
        if wanted is not None:
            raise
        warn(f"No evaluation during training: {fault}")
        return msgspec.structs.replace(settings, eval_every=0), None


def _telling(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The first row with a message that is context only, or else the first."""
    masked = (row for row in rows if any(m.get("weight") == 0 for m in row["messages"]))
    return next(masked, rows[0])


def _masked(row: Mapping[str, Any], settings: Settings) -> str:
    """One row as the model reads it; what is learned is green and in brackets."""
    base, batches = find_base(settings), load("toolshift.train.batches")
    encoder = batches.Encoder(base.tokenizer, base.template, settings.layout, base.tool_role)
    marks = ("\x1b[32m[[", "]]\x1b[0m") if sys.stdout.isatty() else ("[[", "]]")
    example = encoder.encode(row)
    share = int((example.weights != 0).sum())
    return (
        f"{batches.show_mask(example, base.tokenizer, marks)}\n{share} of {len(example.tokens)} "
        "tokens are learned; they are between [[ and ]]."
    )


def _say_done(out: Path, settings: Settings, as_json: bool) -> None:
    record = training_record(out)
    if as_json:
        print_json(record)
        return
    what = "model" if settings.full else "adapter"
    size = sum(file.stat().st_size for file in out.glob("*.safetensors"))
    say(
        f"{what} in {out} ({size / 1e6:.1f} MB): {record['steps']} steps, {record['tokens']:,} "
        f"tokens, {record['wall_seconds']:.0f} s, mean loss of the last 10 steps "
        f"{record['last_loss']:.3f}"
    )
    say(written_for(out, settings))


@click.command(
    cls=Sectioned,
    first=("data", "out", "preset", "model", "adapter", "steps", "resume", "show_mask"),
)
@options_struct(SftOptions)
@machine
def sft(options: SftOptions) -> None:
    """Fine-tune on the assistant's messages in the rows of a file.

    \b
    toolshift train sft --data static.jsonl --out runs/static
    toolshift train sft --data static.jsonl --show-mask
    """
    sft_command(options)
