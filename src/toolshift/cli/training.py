"""What all ways of training are asked for on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from toolshift.cli.data import warn
from toolshift.cli.options import AsJson
from toolshift.cli.parameters import given, option
from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.text import is_count
from toolshift.train.model import with_start
from toolshift.train.settings import NO_EVIDENCE, TrainSettings, first_process, steps_of

PRESET = "Default: the preset's."


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The model that is trained, and how; None leaves a setting as the preset has it."""

    preset: Annotated[
        str,
        option(
            help="smoke: takes seconds, only a test; small: SmolLM2-135M with LoRA on two cores; "
            "paper: Qwen2.5-7B-Instruct, all weights, on GPUs.",
        ),
    ] = "small"
    out: Annotated[Path | None, option(help="Folder for the result.")] = None
    model: Annotated[
        str | None,
        option(
            help="A base model of `toolshift list models`, scratch (tiny and untrained), a model "
            f"directory or a hub name. {PRESET}"
        ),
    ] = None
    adapter: Annotated[
        str | None, option(help="LoRA adapter to start from: a folder, or smol:paft.")
    ] = None
    full: Annotated[
        bool | None, option("--full/--lora", help="Train all weights, or a LoRA adapter.")
    ] = None
    rank: Annotated[int | None, option(help=f"Rank of the new LoRA adapter. {PRESET}")] = None
    lr: Annotated[float | None, option(help=f"Highest learning rate. {PRESET}")] = None
    steps: Annotated[int | None, option(help=f"Optimizer steps. {PRESET}")] = None
    batch: Annotated[int | None, option(help=f"Rows or episodes in one forward pass. {PRESET}")] = (
        None
    )
    layout: Annotated[
        str | None,
        option(
            help="How tools are listed: description-first, name-first, json, spaced or "
            "spaced-texts. Default: the layout of --adapter, or of the preset.",
        ),
    ] = None
    threads: Annotated[int | None, option(help=f"Torch's threads. {PRESET}")] = None
    seed: Annotated[int | None, option(help=f"Seed of all random choices. {PRESET}")] = None
    save_every: Annotated[
        int | None, option(help=f"Steps between checkpoints; the last one is kept. {PRESET}")
    ] = None
    as_json: AsJson = False

    def changes(self, settings: type[msgspec.Struct]) -> dict[str, Any]:
        """The settings that are asked for, completed by what the run starts from."""
        return with_start(given(self, settings, but=("preset", "share")))  # --share is of the mix


@dataclass(frozen=True, kw_only=True)
class RunOptions(ModelOptions):
    """What every command of `toolshift train` may be asked for beside.

    Attributes:
        resume: None, "last", or the step of a checkpoint.
    """

    checkpointing: Annotated[
        bool | None,
        option(
            "--checkpointing/--no-checkpointing",
            help=f"Save memory by recomputing activations, which is slower. {PRESET}",
        ),
    ] = None
    save_at: Annotated[
        str | None, option(metavar="STEP,STEP", help="Steps whose checkpoints are all kept.")
    ] = None
    eval_every: Annotated[
        int | None, option(help=f"Steps between evaluations; 0 turns them off. {PRESET}")
    ] = None
    eval_scenes: Annotated[
        int | None, option(help=f"Scenes of each arm of an evaluation. {PRESET}")
    ] = None
    resume: Annotated[
        str | None,
        option(
            is_flag=False,
            flag_value="last",
            metavar="[STEP]",
            help="Resume from the last checkpoint in --out, or from that of a step.",
        ),
    ] = None

    def changes(self, settings: type[msgspec.Struct]) -> dict[str, Any]:
        """As of every model, and the steps of the checkpoints that are kept."""
        kept = {} if self.save_at is None else {"save_at": steps_of(self.save_at)}
        return super().changes(settings) | kept

    def start(self) -> bool | int:
        """Whether to resume from the last checkpoint, or the step of the one to resume from."""
        if self.resume is None or self.resume == "last":
            return self.resume == "last"
        if not is_count(self.resume):
            raise UsageError(f"--resume {self.resume}: give the step of a checkpoint, or nothing")
        return int(self.resume)


def written_for(out: Path, settings: TrainSettings) -> str:
    """Says what a run has written, and for whom."""
    agent = f"local:{out}" if settings.full else f"local:{settings.model},adapter={out}"
    run = command("run", "--agent", agent)
    if settings.full:
        return f"Written: {out}, a model with its tokenizer for transformers, and for `{run}`."
    return f"Written: {out}, a LoRA adapter of {settings.model} for PEFT, and for `{run}`."


def warn_of_evidence(settings: TrainSettings) -> None:
    """Says that the result of a run will be no evidence, where that is so."""
    if not settings.evidence and first_process():
        warn(f"Preset {settings.preset}: {NO_EVIDENCE}.")
